package wheel_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

func TestQuietAtRest(t *testing.T) { // performance: 0 wake-ups at rest
	o, w := newWorld()
	startTicking(t, o, w)
	c := arm(w, new(call), 100*time.Millisecond)
	keepBusy(o, w, time.Second)
	o.advance(2 * time.Hour)
	if c.fired.Load() != 1 {
		t.Fatal("not fired")
	}
	n := w.Ticks()
	o.advance(24 * time.Hour)
	if w.Ticks() != n || o.pendingTimers() != 0 || w.Ticking() {
		t.Errorf("%d ticks at rest, %d timers", w.Ticks()-n, o.pendingTimers())
	}
}

func TestSparseCallsCostAWakeATimeout(t *testing.T) {
	o, w := newWorld()
	for range 400 {
		arm(w, new(call), 2*time.Second).finish()
		o.advance(50 * time.Millisecond)
	}
	if w.Ticking() || w.Ticks() > 20 { // 20 s
		t.Errorf("%d ticks, ticking %v", w.Ticks(), w.Ticking())
	}
}

func TestQuietExpiryIsWithinHalfATick(t *testing.T) { // T-5
	o, w := newWorld()
	w.Use(320 * time.Millisecond)
	half := time.Duration(w.TickLen()) / 2
	rng := rand.New(rand.NewPCG(2, 2))
	left := 0
	for range 500 {
		left++
		arm(w, &call{onExpire: func(c *call) func() {
			left--
			if late := time.Duration(o.clock() - c.began - c.limit); late < 0 || late > 2*half {
				t.Errorf("%v late, half a tick is %v", late, half)
			}
			return nil
		}}, 320*time.Millisecond+time.Duration(rng.IntN(1000))*time.Millisecond)
		o.advance(time.Duration(rng.IntN(40)) * time.Millisecond)
	}
	o.advance(2 * time.Second)
	if left != 0 {
		t.Errorf("%d have not fired", left)
	}
}

func TestTicksUntilTwoPassWithoutAnArm(t *testing.T) {
	o, w := newWorld()
	tick := time.Duration(w.TickLen())
	startTicking(t, o, w)
	keepBusy(o, w, 10*tick)
	if !w.Ticking() {
		t.Fatal("went quiet while calls came")
	}
	o.advance(tick)
	if !w.Ticking() {
		t.Fatal("went quiet after one tick without an arm")
	}
	o.advance(2 * tick)
	if w.Ticking() {
		t.Fatal("ticks on although no calls come")
	}
	startTicking(t, o, w)
	arm(w, new(call), time.Hour)
	o.stall(4 * tick)
	if w.Ticking() {
		t.Error("ticks on although they come late")
	}
	n := w.Ticks()
	for range 10 {
		burst(o, w)
	}
	if w.Ticking() || w.Ticks() > n+2 {
		t.Errorf("right after a late tick: ticking %v, %d ticks", w.Ticking(), w.Ticks()-n)
	}
	o.advance(2 * distrust)
	if !w.Ticking() {
		t.Error("ticks that were wanted meanwhile never began")
	}
}

const distrust = time.Duration(wheel.DistrustNS)

// Between Start and Arm the wheel goes quiet: nobody is going to tick for this
// entry's sake. interrupted: within Start, which then gets the number of the very
// tick that goes quiet.
func TestWheelGoesQuietBetweenStartAndArm(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		o, w := newWorld()
		tick := time.Duration(w.TickLen())
		startTicking(t, o, w)
		c := &call{limit: int64(time.Second)}
		var bound int64
		c.start, bound = w.Start(c.limit)
		if c.start < 0 {
			t.Fatalf("start %d while ticking", c.start)
		}
		for w.Ticking() {
			o.advance(tick)
		}
		if interrupted {
			c.start = w.Ticks()
		}
		began := o.clock()
		c.slot = w.Level(c.limit).Arm(c, bound)
		for c.fired.Load() == 0 && o.clock() < began+10*c.limit {
			o.advance(time.Millisecond)
		}
		if took := time.Duration(o.clock() - began - c.limit); took > 2*tick || interrupted && took < 0 {
			t.Errorf("interrupted %v: fired %v late", interrupted, took)
		}
	}
}

// hooked returns a world and a wheel, and a function that lets f run at the n-th
// reading of the clock from now.
func hooked() (*world, *testWheel, func(n int, f func())) {
	o := &world{now: 1}
	cfg := o.config()
	var hook func()
	left := 0
	cfg.Now = func() int64 {
		if f := hook; f != nil {
			if left--; left < 0 {
				hook = nil
				f()
			}
		}
		return o.clock()
	}
	w := wheel.New[call](cfg)
	w.Spawn(func(f func()) { f() })
	return o, w, func(n int, f func()) { left, hook = n, f }
}

// At each reading of the clock in a tick, one that goes quiet or one that does
// not, somebody arms. offset moves what the sweep looks at in that tick.
func TestArmInTheMiddleOfATick(t *testing.T) {
	for _, busy := range []bool{false, true} {
		for when := range 4 {
			for offset := range 4 {
				for _, limit := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond, 20 * time.Second} {
					armInTick(t, busy, when, offset, limit)
				}
			}
		}
	}
}

func armInTick(t *testing.T, busy bool, when, offset int, limit time.Duration) {
	t.Helper()
	o, w, at := hooked()
	w.Use(16 * time.Millisecond)
	tick := time.Duration(w.TickLen())
	arm(w, new(call), limit).finish()
	startTicking(t, o, w)
	keepBusy(o, w, time.Duration(offset)*tick)
	if busy {
		arm(w, new(call), limit).finish()
	} else {
		o.advance(tick + tick/2)
	}
	c := &call{onExpire: func(c *call) func() {
		if late := time.Duration(o.clock() - c.began - c.limit); late < 0 || late > 2*tick {
			t.Errorf("busy %v, reading %d, limit %v: %v late", busy, when, limit, late)
		}
		return nil
	}}
	at(when, func() { arm(w, c, limit) })
	o.now += int64(3 * time.Millisecond) // late, but not too late
	w.TickNow()
	at(0, nil)
	if c.slot == nil {
		return // that tick did not read the clock so often
	}
	if d := w.Deadline(c); d < c.began+c.limit {
		t.Errorf("busy %v, reading %d, limit %v: deadline %v early", busy, when, limit, time.Duration(c.began+c.limit-d))
	}
	o.advance(time.Minute)
	if c.fired.Load() != 1 {
		t.Errorf("busy %v, reading %d, limit %v: fired %d times", busy, when, limit, c.fired.Load())
	}
}

// A callback that comes while a tick runs may be the one that was to serve an
// entry which that tick has already passed: the tick must run again.
func TestCallbackDuringATickRunsAnother(t *testing.T) {
	_, w, at := hooked()
	n := w.Ticks()
	at(0, w.TickNow)
	w.TickNow()
	if got := w.Ticks() - n; got != 2 {
		t.Errorf("%d ticks, want 2", got)
	}
}

func TestOverdueChainHealsItself(t *testing.T) { // architecture, wheel 7
	o, w := newWorld()
	first := arm(w, new(call), 100*time.Millisecond)
	o.drop() // the bubble has ended, the timer is gone
	o.advance(200 * time.Millisecond)
	arm(w, new(call), time.Hour).finish()
	if w.Gen() != 0 {
		t.Error("given up although it is hardly late")
	}
	o.advance(10 * time.Second)
	second := arm(w, new(call), 100*time.Millisecond)
	if w.Gen() != 1 {
		t.Fatal("the chain was not given up")
	}
	o.advance(0)
	if first.fired.Load() != 1 {
		t.Error("what was overdue did not fire")
	}
	o.advance(time.Second)
	if second.fired.Load() != 1 {
		t.Error("the new chain does not work")
	}
	n := w.Ticks()
	o.advance(time.Hour)
	if w.Ticks()-n > 3 || o.pendingTimers() > 1 {
		t.Errorf("%d ticks, %d timers", w.Ticks()-n, o.pendingTimers())
	}
}

func TestForeignClockIsRefused(t *testing.T) { // research 4.10
	o, w := newWorld()
	pending := arm(w, new(call), time.Second)
	timers := o.pendingTimers()
	o.mu.Lock()
	now := o.now
	o.now = -8.5e17
	o.mu.Unlock()
	if !w.Foreign() {
		t.Error("not noticed")
	}
	if start, _ := w.Start(1e9); start != wheel.Refused {
		t.Errorf("start %d", start)
	}
	// One that began while the wheel ticked, and went into the bubble.
	stray := &call{limit: 1e9}
	stray.slot = w.Level(stray.limit).Arm(stray, 1e6)
	if o.pendingTimers() != timers {
		t.Error("a timer was made in the bubble")
	}
	if d := w.Deadline(stray); d <= 0 {
		t.Errorf("deadline %d", d)
	}
	o.mu.Lock()
	o.now = now
	o.mu.Unlock()
	o.advance(10 * time.Second)
	if pending.fired.Load() != 1 || stray.fired.Load() != 1 {
		t.Errorf("fired %d and %d times", pending.fired.Load(), stray.fired.Load())
	}
}

// Goroutines arm, finish and wait on the real clock, in bursts and pauses that
// make the wheel flip between its modes all the time. A lost wake shows as a
// deadline that never comes.
func TestNoWakeIsLostBetweenModes(t *testing.T) { // architecture, wheel 10
	w := newReal()
	const limit = 4 * time.Millisecond
	const least = 20 // rounds of each, however slow the machine is
	end := time.Now().Add(1500 * time.Millisecond)
	var wg sync.WaitGroup
	var early, lost, fired atomic.Int64
	for range 8 {
		wg.Go(func() {
			fire := make(chan struct{}, 1)
			watchdog := time.NewTimer(time.Hour)
			defer watchdog.Stop()
			for round := 0; round < least || time.Now().Before(end); round++ {
				if rand.IntN(3) == 0 {
					for range rand.IntN(200) {
						arm(w, new(call), limit).finish()
					}
					continue
				}
				c := &call{onExpire: func(*call) func() { fire <- struct{}{}; return nil }}
				began := time.Now()
				arm(w, c, limit+time.Duration(rand.IntN(8))*time.Millisecond)
				watchdog.Reset(time.Minute)
				select {
				case <-fire:
					fired.Add(1)
					if time.Since(began) < time.Duration(c.limit) {
						early.Add(1)
					}
				case <-watchdog.C:
					lost.Add(1)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d fired, %d ticks", fired.Load(), w.Ticks())
	if early.Load() != 0 || lost.Load() != 0 || fired.Load() == 0 {
		t.Errorf("%d early, %d lost, %d fired", early.Load(), lost.Load(), fired.Load())
	}
}
