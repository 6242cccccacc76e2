package wheel_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/wheel"
)

func TestField_WH08_PanicsAreContained(t *testing.T) {
	o := &world{now: 1}
	var mu sync.Mutex
	var caught []string
	cfg := o.config()
	cfg.OnPanic = func(v any, stack []byte) {
		mu.Lock()
		defer mu.Unlock()
		if len(stack) == 0 {
			t.Error("no stack")
		}
		caught = append(caught, fmt.Sprint(v))
	}
	w := wheel.New[call](cfg)
	w.Spawn(func(f func()) { f() })
	fired := 0
	for round := range 2 {
		for i := 1; i <= 1000; i++ {
			c := &call{onExpire: func(*call) func() { fired++; return nil }}
			if round == 0 && (i == 1 || i == 500 || i == 999) {
				c.onCall = func(*call) { panic(i) }
			}
			arm(w, c, 100*time.Millisecond)
		}
		o.advance(100*time.Millisecond + 2*time.Duration(w.TickLen()))
		if want := 997 + round*1000; fired != want {
			t.Errorf("round %d: %d fired, want %d", round, fired, want)
		}
		if n := w.Pending(); n != 0 {
			t.Errorf("round %d: %d pending", round, n)
		}
	}
	slices.Sort(caught)
	if d := cmp.Diff([]string{"1", "500", "999"}, caught); d != "" {
		t.Errorf("panics (-want +got):\n%s", d)
	}
}

// Blocked callbacks, also ones that call runtime.Goexit, delay neither those
// that share their goroutine nor the second step.
func TestBlockedExpiryDelaysNoOther(t *testing.T) { // WH-08, architecture, wheel 5
	o, w := newWorld()
	var wg sync.WaitGroup
	w.Spawn(func(f func()) { wg.Go(f) })
	release := make(chan struct{})
	var done, after atomic.Int64
	const n = 600
	for i := range n {
		c := &call{onExpire: func(*call) func() {
			done.Add(1)
			return func() { after.Add(1) }
		}}
		switch i % 60 {
		case 7:
			c.onCall = func(*call) { <-release }
		case 9:
			c.onCall = func(*call) { runtime.Goexit() }
		}
		arm(w, c, 100*time.Millisecond)
	}
	o.advance(150 * time.Millisecond)
	for began := time.Now(); done.Load() < n-20 || after.Load() < n-20; {
		o.advance(50 * time.Millisecond)
		runtime.Gosched()
		if time.Since(began) > time.Minute {
			t.Fatalf("%d expired, %d called after, of %d", done.Load(), after.Load(), n-20)
		}
	}
	later := arm(w, &call{}, 100*time.Millisecond)
	o.advance(200 * time.Millisecond)
	for later.fired.Load() == 0 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	if done.Load() != n-10 || after.Load() != n-10 {
		t.Errorf("in the end %d expired, %d called after, want %d", done.Load(), after.Load(), n-10)
	}
	if p := w.Pending(); p != 0 {
		t.Errorf("%d pending", p)
	}
}

// An expiry that panics in the second step, too, stops no other.
func TestSecondStepComesAfterAllExpired(t *testing.T) {
	o := &world{now: 1}
	cfg := o.config()
	panics := 0
	cfg.OnPanic = func(any, []byte) { panics++ }
	w := wheel.New[call](cfg)
	w.Spawn(func(f func()) { f() })
	const n = 700
	expired, after := 0, 0
	for i := range n {
		arm(w, &call{onExpire: func(*call) func() {
			expired++
			return func() {
				if expired != n {
					t.Errorf("called when %d of %d had expired", expired, n)
				}
				after++
				if i == 300 {
					panic("second step")
				}
			}
		}}, 100*time.Millisecond)
	}
	o.advance(time.Second)
	if expired != n || after != n || panics != 1 {
		t.Errorf("%d expired, %d called after, %d panics", expired, after, panics)
	}
}

// Until its goroutine runs, an entry that was handed out stays in its slot, and
// every tick sees it.
func TestHandedOutOnce(t *testing.T) {
	o, w := newWorld()
	var queue []func()
	w.Spawn(func(f func()) { queue = append(queue, f) })
	startTicking(t, o, w)
	calls := make([]*call, 1000)
	for i := range calls {
		calls[i] = arm(w, new(call), 100*time.Millisecond)
	}
	keepBusy(o, w, time.Minute)
	if len(queue) > 4 {
		t.Errorf("%d goroutines for a thousand entries", len(queue))
	}
	if w.Pending() != 1000 || !calls[0].finish() {
		t.Errorf("%d pending before the goroutines ran", w.Pending())
	}
	for _, f := range queue {
		f()
	}
	for i, c := range calls {
		if got := c.fired.Load(); got != min(1, int64(i)) {
			t.Fatalf("call %d fired %d times", i, got)
		}
	}
	if w.Pending() != 0 {
		t.Errorf("%d pending", w.Pending())
	}
}

// Goroutines finish their calls as close to the expiry as they can get: each that
// won lets them come later, each that lost sooner. So both happen on every machine,
// however late it is with either.
func TestFinishAgainstExpiry(t *testing.T) { // T-7
	w := newReal()
	w.Use(16 * time.Millisecond)
	r := &finishRace{w: w}
	for began := time.Now(); ; {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { r.run(40) })
		}
		wg.Wait()
		if r.won.Load() > 0 && r.lost.Load() > 0 || time.Since(began) > time.Minute {
			break
		}
	}
	t.Logf("%d finished, %d expired", r.won.Load(), r.lost.Load())
	if r.both.Load() != 0 || r.won.Load() == 0 || r.lost.Load() == 0 || w.Pending() != 0 {
		t.Errorf("%d undecided, %d finished, %d expired, %d pending", r.both.Load(), r.won.Load(), r.lost.Load(), w.Pending())
	}
}

type finishRace struct {
	w               *testWheel
	won, lost, both atomic.Int64
	late            atomic.Int64 // how long after its deadline a call is finished
}

func (r *finishRace) run(rounds int) {
	const step = int64(50 * time.Microsecond)
	calls := make([]*call, 50)
	for range rounds {
		for i := range calls {
			calls[i] = arm(r.w, new(call), time.Millisecond+time.Duration(i)*20*time.Microsecond)
		}
		for _, c := range calls {
			for r.w.Now() < c.began+c.limit+r.late.Load() {
				runtime.Gosched()
			}
			switch inTime := c.finish(); {
			case inTime && c.fired.Load() == 0:
				r.won.Add(1)
				r.late.Add(step)
			case !inTime && c.fired.Load() == 1:
				r.lost.Add(1)
				r.late.Add(-step)
			default:
				r.both.Add(1)
			}
		}
	}
}

// Expiries arm new entries: while the tick that found them is still running.
func TestArmDuringATick(t *testing.T) {
	o, w := newWorld()
	w.Use(16 * time.Millisecond)
	chain, fired := 0, 0
	var again func(*call) func()
	again = func(c *call) func() {
		fired++
		if late := o.clock() - c.began - c.limit; late < 0 || late > 2*w.TickLen() {
			t.Errorf("%v late", time.Duration(late))
		}
		if chain++; chain <= 500 {
			arm(w, &call{onExpire: again}, time.Duration(1+chain%40)*time.Millisecond)
			arm(w, &call{onExpire: func(*call) func() { fired++; return nil }}, time.Millisecond)
		}
		return nil
	}
	arm(w, &call{onExpire: again}, 10*time.Millisecond)
	o.advance(time.Minute)
	if fired != 1001 || w.Pending() != 0 {
		t.Errorf("%d fired, %d pending", fired, w.Pending())
	}
}

func TestMassExpiry(t *testing.T) {
	n := 200_000
	if raceEnabled {
		n = 20_000
	}
	w := newReal()
	var fired, early atomic.Int64
	done := make(chan struct{})
	for range n {
		arm(w, &call{onExpire: func(c *call) func() {
			if w.Now()-c.began < c.limit {
				early.Add(1)
			}
			if fired.Add(1) == int64(n) {
				close(done)
			}
			return nil
		}}, 50*time.Millisecond)
	}
	<-done
	for w.Pending() != 0 {
		runtime.Gosched()
	}
	if early.Load() != 0 || fired.Load() != int64(n) {
		t.Errorf("%d early, %d fired", early.Load(), fired.Load())
	}
}
