package wheel_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// reserve arms c without a deadline in the level for limit.
func reserve(w *testWheel, c *call, limit time.Duration) *call {
	c.start, c.limit = -wheel.Never, int64(limit)
	c.slot = w.Level(c.limit).Arm(c, wheel.Never)
	return c
}

// rearm gives c the deadline of now + its limit.
func rearm(w *testWheel, c *call) {
	c.began = w.Now()
	w.Level(c.limit).Rearm(c, c.slot, c.began+c.limit)
}

func TestRearmFiresNeitherEarlyNorLate(t *testing.T) { // T-5
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		w.Use(320 * time.Millisecond)
		tick := time.Duration(w.TickLen())
		rng := rand.New(rand.NewPCG(3, 4))
		left := 0
		for range 500 {
			if ticking && !w.Ticking() {
				startTicking(t, o, w)
			}
			left++
			c := reserve(w, &call{onExpire: func(c *call) func() {
				left--
				if late := time.Duration(o.clock() - c.began - c.limit); late < 0 || late > 2*tick {
					t.Errorf("ticking %v: %v late, a tick is %v", ticking, late, tick)
				}
				return nil
			}}, 320*time.Millisecond+time.Duration(rng.IntN(1000))*time.Millisecond)
			o.advance(time.Duration(rng.IntN(60)) * time.Millisecond)
			if c.fired.Load() != 0 || w.Deadline(c) != wheel.Never {
				t.Fatal("due before it has a deadline")
			}
			pending := w.Pending()
			rearm(w, c)
			if w.Deadline(c) != even(c.began+c.limit) || w.Pending() != pending+1 {
				t.Fatalf("deadline %d, want %d; %d pending", w.Deadline(c), even(c.began+c.limit), w.Pending())
			}
		}
		o.advance(2 * time.Second)
		if left != 0 {
			t.Errorf("ticking %v: %d have not fired", ticking, left)
		}
	}
}

// At each reading of the clock in a tick, one that goes quiet or one that does
// not, somebody sets a deadline: before, after or while the tick reads the entry.
func TestRearmInTheMiddleOfATick(t *testing.T) {
	for _, busy := range []bool{false, true} {
		for when := range 4 {
			for _, limit := range []time.Duration{0, time.Millisecond, time.Second} {
				o, w, at := hooked()
				w.Use(320 * time.Millisecond)
				w.Use(max(limit, 1))
				tick := time.Duration(w.TickLen())
				startTicking(t, o, w)
				c := reserve(w, &call{onExpire: func(c *call) func() {
					if late := time.Duration(o.clock() - c.began - c.limit); late < 0 || late > 2*tick {
						t.Errorf("busy %v, reading %d, limit %v: %v late", busy, when, limit, late)
					}
					return nil
				}}, limit)
				if busy {
					keepBusy(o, w, 3*tick)
					arm(w, new(call), limit).finish()
				} else {
					o.advance(tick + tick/2)
				}
				w.Level(int64(limit)).ForceScan()
				at(when, func() { rearm(w, c) })
				w.TickNow()
				at(0, nil)
				if c.began == 0 {
					continue // that tick did not read the clock so often
				}
				o.advance(10 * time.Second)
				if c.fired.Load() != 1 {
					t.Errorf("busy %v, reading %d, limit %v: fired %d times", busy, when, limit, c.fired.Load())
				}
			}
		}
	}
}

// The segment of an entry is no longer the current one when its deadline is set.
func TestRearmFindsItsSegmentAfterGrowthAndShrinking(t *testing.T) {
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		const limit = time.Second
		l := w.Level(int64(limit))
		reserve(w, new(call), limit).finish()
		least := l.Slots() // a block a processor
		var held []*call
		for range 6 {
			held = append(held, reserve(w, new(call), limit))
			fill := make([]*call, 4*least) // grows
			for i := range fill {
				fill[i] = reserve(w, new(call), limit)
			}
			held = append(held, reserve(w, new(call), limit))
			for _, c := range fill {
				c.finish()
			}
			o.advance(10 * time.Second) // shrinks
		}
		if l.Segments() < 2 {
			t.Fatalf("%d segments: too few for this test", l.Segments())
		}
		if ticking {
			startTicking(t, o, w)
		}
		for _, c := range held {
			rearm(w, c)
			c.onExpire = func(c *call) func() {
				if o.clock() < c.began+c.limit {
					t.Error("early")
				}
				return nil
			}
		}
		o.advance(limit + 2*time.Duration(w.TickLen()))
		for i, c := range held {
			if c.fired.Load() != 1 {
				t.Errorf("ticking %v: entry %d fired %d times", ticking, i, c.fired.Load())
			}
		}
	}
}

func TestRearmThatHasNoEffect(t *testing.T) {
	o, w := newWorld()
	const limit = time.Second
	l := w.Level(int64(limit))

	finished := reserve(w, new(call), limit)
	finished.finish()
	rearm(w, finished)

	stamped := reserve(w, new(call), limit)
	stamped.stamp.Store(wheel.Never) // the owner keeps its deadline himself
	rearm(w, stamped)

	for _, never := range []int64{wheel.Never, wheel.Never - 1} {
		c := reserve(w, new(call), limit)
		l.Rearm(c, c.slot, never)
		if d := w.Deadline(c); d != wheel.Never {
			t.Errorf("deadline %d", d)
		}
		defer c.finish()
	}
	twice := reserve(w, new(call), limit)
	rearm(w, twice)
	l.Rearm(twice, twice.slot, w.Now()+int64(time.Hour))
	if w.Deadline(twice) != even(twice.began+int64(limit)) {
		t.Error("the second deadline counts")
	}
	o.advance(limit + 2*time.Duration(w.TickLen()))
	if finished.fired.Load()+stamped.fired.Load() != 0 || twice.fired.Load() != 1 {
		t.Errorf("fired: finished %d, stamped %d, twice %d", finished.fired.Load(), stamped.fired.Load(), twice.fired.Load())
	}
	if o.advance(24 * time.Hour); !stamped.finish() {
		t.Error("not in its slot")
	}
}

// Setting a deadline is as good a reason to tick as arming is.
func TestRearmKeepsItTicking(t *testing.T) {
	o, w := newWorld()
	startTicking(t, o, w)
	for range 10 {
		c := reserve(w, new(call), time.Hour)
		rearm(w, c)
		o.advance(time.Duration(w.TickLen()))
		if !w.Ticking() {
			t.Fatal("went quiet")
		}
		c.finish()
	}
}

// A deadline that is past is due at once.
func TestRearmInThePast(t *testing.T) {
	for _, deadline := range []int64{-5, 0, 1, int64(time.Second)} {
		o, w := newWorld()
		o.advance(time.Minute)
		c := reserve(w, new(call), time.Second)
		w.Level(c.limit).Rearm(c, c.slot, deadline)
		o.advance(2 * time.Duration(w.TickLen()))
		if c.fired.Load() != 1 {
			t.Errorf("deadline %d: fired %d times", deadline, c.fired.Load())
		}
	}
}

// A foreign segment's slot is none of the level's.
func TestRearmOfASlotThatIsGone(t *testing.T) {
	o, w := newWorld()
	c := reserve(w, new(call), time.Second)
	empty := w.Level(int64(time.Hour)) // no table yet
	empty.Rearm(&call{start: -wheel.Never}, c.slot, w.Now()+1)
	arm(w, new(call), time.Hour).finish()
	empty.Rearm(&call{start: -wheel.Never}, c.slot, w.Now()+1)
	o.advance(time.Second)
	if c.fired.Load() != 0 || !c.finish() {
		t.Error("somebody else's slot was touched")
	}
}

// Goroutines reserve, set deadlines, finish and wait, on the real clock, while
// the wheel flips between its modes and its levels grow and shrink. A lost wake
// shows as a deadline that never comes.
func TestNoRearmIsLost(t *testing.T) {
	w := newReal()
	const limit = 4 * time.Millisecond
	const least = 20 // rounds of each, however slow the machine is
	l := w.Level(int64(limit))
	end := time.Now().Add(1200 * time.Millisecond)
	var wg sync.WaitGroup
	var early, lost, fired atomic.Int64
	for range 6 {
		wg.Go(func() {
			fire := make(chan struct{}, 1)
			watchdog := time.NewTimer(time.Hour)
			defer watchdog.Stop()
			for round := 0; round < least || time.Now().Before(end); round++ {
				for range rand.IntN(100) {
					arm(w, new(call), limit).finish()
				}
				c := reserve(w, &call{onExpire: func(*call) func() { fire <- struct{}{}; return nil }}, limit)
				for range rand.IntN(50) {
					runtime.Gosched()
				}
				began := time.Now()
				rearm(w, c)
				if rand.IntN(4) == 0 && c.finish() {
					continue
				}
				watchdog.Reset(time.Minute)
				select {
				case <-fire:
					fired.Add(1)
					if time.Since(began) < limit {
						early.Add(1)
					}
				case <-watchdog.C:
					lost.Add(1)
					return
				}
			}
		})
	}
	for time.Now().Before(end) {
		for _, blocks := range []int{16, 4} {
			l.Replace(blocks)
			w.TickNow()
			runtime.Gosched()
		}
	}
	wg.Wait()
	t.Logf("%d fired, %d ticks, %d segments", fired.Load(), w.Ticks(), l.Segments())
	if early.Load() != 0 || lost.Load() != 0 || fired.Load() == 0 {
		t.Errorf("%d early, %d lost, %d fired", early.Load(), lost.Load(), fired.Load())
	}
}

// Held entries get a deadline later: as punctual as any other.
func TestRearmedEntriesArePunctual(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		tick := time.Duration(w.TickLen())
		var calls []*call
		for range 500 { // more than a segment holds
			calls = append(calls, hold(w, new(call)))
		}
		if ticking {
			startTicking(t, o, w)
		}
		if w.Pending() != 0 {
			t.Errorf("pending %d before", w.Pending())
		}
		left := 0
		for i, c := range calls {
			c.onExpire = func(c *call) func() {
				left--
				if late := time.Duration(o.clock() - w.Deadline(c)); late < 0 || late > 2*tick {
					t.Errorf("ticking %v: %v late", ticking, late)
				}
				return nil
			}
			switch i % 5 {
			case 0:
				continue // stays without
			case 1: // has ended meanwhile
				c.finish()
			default:
				left++
			}
			at := o.clock() + rng.Int64N(int64(10*time.Second))
			w.Level(wheel.Never).Rearm(c, c.slot, at)
			if got := w.Deadline(c); got != even(at) {
				t.Errorf("deadline %d, want %d", got, at)
			}
			o.advance(time.Duration(rng.IntN(5)) * time.Millisecond)
		}
		w.Level(wheel.Never).Rearm(calls[0], calls[0].slot, wheel.Never)
		o.advance(time.Minute)
		if left != 0 || w.Pending() != 0 || calls[0].fired.Load() != 0 {
			t.Errorf("ticking %v: %d have not fired, %d pending", ticking, left, w.Pending())
		}
	}
}
