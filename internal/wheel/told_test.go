package wheel_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// What somebody was told is odd from then on, and all answers are the same.
func TestTell_T6_MarksTheDeadline(t *testing.T) {
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		w.Use(160 * time.Millisecond)
		tick := time.Duration(w.TickLen())
		if ticking {
			startTicking(t, o, w)
		}
		var calls []*call
		for i := range 60 {
			c := &call{onExpire: func(c *call) func() {
				if d := w.Deadline(c); o.clock() < d {
					t.Errorf("fired %v before its deadline", time.Duration(d-o.clock()))
				}
				return nil
			}}
			arm(w, c, 100*time.Millisecond+time.Duration(i)) // odd limits and even ones
			calls = append(calls, c)
			if i%3 == 0 {
				before := w.Deadline(c)
				if before&1 != 0 || wheel.Told(c.stamp.Load()) {
					t.Errorf("deadline %d is marked, and nobody was told", before)
				}
				if got := w.Tell(c); got != before+1 {
					t.Errorf("told %d of deadline %d", got, before)
				}
			}
			o.advance(time.Duration(i) * 17777) // even and odd times
			if ticking {
				keepBusy(o, w, tick/8)
			}
		}
		told := make([]int64, len(calls))
		for i, c := range calls {
			if c.fired.Load() != 0 {
				continue
			}
			told[i] = w.Tell(c)
			if told[i]&1 != 1 || !wheel.Told(c.stamp.Load()) || w.Deadline(c) != told[i] || w.Tell(c) != told[i] {
				t.Errorf("told %d, stamp %d, deadline %d", told[i], c.stamp.Load(), w.Deadline(c))
			}
			if late := time.Duration(told[i] - c.began - c.limit); late < 0 || late > 2*tick {
				t.Errorf("told a deadline %v after start plus limit", late)
			}
		}
		o.advance(time.Second)
		for i, c := range calls {
			if c.fired.Load() != 1 {
				t.Errorf("fired %d times", c.fired.Load())
			}
			if d := w.Deadline(c); told[i] != 0 && (d != told[i] || w.Tell(c) != told[i]) || wheel.Told(c.stamp.Load()) {
				t.Errorf("after the end: %d, told %d, stamp %d", d, told[i], c.stamp.Load())
			}
		}
	}
}

// What the wheel fixes for itself is even, and no promise.
func TestTold_T6_IsNotWhatTheWheelFixesItself(t *testing.T) {
	o, w := newWorld()
	w.Use(160 * time.Millisecond)
	tick := time.Duration(w.TickLen())
	startTicking(t, o, w)
	var calls []*call
	for i := range 40 {
		calls = append(calls, arm(w, new(call), 10*time.Second+time.Duration(i)))
		o.advance(1357913)
		keepBusy(o, w, tick)
	}
	keepBusy(o, w, 3*wheel.RingLen*tick) // the ticks that they wait for are forgotten
	fixed := 0
	for _, c := range calls {
		if v := c.stamp.Load(); v != 0 {
			fixed++
			if v&1 != 0 || wheel.Told(v) {
				t.Errorf("stamp %d, and nobody was told", v)
			}
		}
	}
	if fixed != len(calls) {
		t.Errorf("the wheel has fixed %d of %d", fixed, len(calls))
	}
	for i := range 20 {
		c := hold(w, new(call))
		at := o.clock() + int64(time.Second) + int64(i)
		w.Level(wheel.Never).Rearm(c, c.slot, at)
		if v := c.stamp.Load(); v != even(at) || wheel.Told(v) {
			t.Errorf("rearmed for %d: stamp %d", at, v)
		}
		if got := w.Tell(c); got != even(at)+1 || !wheel.Told(c.stamp.Load()) {
			t.Errorf("rearmed for %d: told %d", at, got)
		}
		calls = append(calls, c)
	}
	for _, c := range calls {
		c.finish()
	}
}

// Never and the end of all time are marks of their own: Never is odd.
func TestTell_T12_LeavesNeverAndFarAlone(t *testing.T) {
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		if ticking {
			startTicking(t, o, w)
		}
		held := hold(w, new(call))
		if got := w.Tell(held); got != wheel.Never || held.stamp.Load() != 0 {
			t.Errorf("held: told %d, stamp %d", got, held.stamp.Load())
		}
		owners := arm(w, new(call), time.Second)
		owners.stamp.Store(wheel.Never)
		if got := w.Tell(owners); got != wheel.Never || owners.stamp.Load() != wheel.Never {
			t.Errorf("the owner's: told %d, stamp %d", got, owners.stamp.Load())
		}
		for _, limit := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 2} {
			far := arm(w, new(call), limit)
			got := w.Tell(far)
			if got != wheel.Never-1 || w.Tell(far) != got || w.Deadline(far) != got {
				t.Errorf("limit %d: told %d, deadline %d", limit, got, w.Deadline(far))
			}
			if v := far.stamp.Load(); v != 0 && v != got {
				t.Errorf("limit %d: stamp %d", limit, v)
			}
			far.finish()
		}
		for _, stamp := range []int64{wheel.Never, wheel.Never - 1, 0, -1, -7, -8, 8, math.MinInt64} {
			if wheel.Told(stamp) {
				t.Errorf("a stamp of %d is no promise", stamp)
			}
		}
		if !wheel.Told(7) || !wheel.Told(wheel.Never-2) {
			t.Error("an odd stamp is a promise")
		}
		held.finish()
		owners.finish()
	}
}

// In a foreign bubble the clock says nothing; what is told there is an estimate.
func TestTell_X2_AForeignBubblesEstimateFixesNothing(t *testing.T) {
	o := &world{now: 1}
	var inside atomic.Bool
	config := o.config()
	config.Now = func() int64 {
		if inside.Load() {
			return -int64(time.Hour)
		}
		return o.clock()
	}
	w := wheel.New[call](config)
	w.Spawn(func(f func()) { f() })
	startTicking(t, o, w)
	o.advance(3 * time.Millisecond)
	c := arm(w, new(call), 200*time.Millisecond)
	if c.start < 0 {
		t.Fatal("the wheel is quiet")
	}
	inside.Store(true)
	if got := w.Tell(c); got <= 0 || c.stamp.Load() != 0 {
		t.Errorf("inside: told %d, stamp %d", got, c.stamp.Load())
	}
	inside.Store(false)
	got := w.Tell(c)
	if got&1 != 1 || got < c.began+c.limit || c.stamp.Load() != got {
		t.Errorf("outside: told %d, stamp %d, start plus limit %d", got, c.stamp.Load(), c.began+c.limit)
	}
	inside.Store(true)
	if again := w.Tell(c); again != got { // once fixed it is the same for all
		t.Errorf("inside: told %d, outside %d", again, got)
	}
	inside.Store(false)
	o.advance(time.Second)
	if c.fired.Load() != 1 {
		t.Errorf("fired %d times", c.fired.Load())
	}
}

// Whoever asks while others do is told the same.
func TestTell_T6_ConcurrentAskersAreToldTheSame(t *testing.T) {
	w := newReal()
	w.Use(16 * time.Millisecond)
	for round := range 120 {
		var c *call
		if round%3 == 0 { // many arms at once make it tick
			for range 100 {
				arm(w, new(call), time.Hour).finish()
			}
		}
		if c = arm(w, new(call), time.Hour); round%2 == 0 {
			w.Deadline(c)
		}
		var told [4]int64
		var wg sync.WaitGroup
		for i := range told {
			wg.Go(func() { told[i] = w.Tell(c) })
		}
		wg.Go(func() {
			for range 3 {
				if d := w.Deadline(c); d < c.began+c.limit {
					t.Errorf("deadline %d is before %d", d, c.began+c.limit)
				}
			}
		})
		wg.Wait()
		for _, d := range told {
			if d != told[0] || d&1 != 1 || c.stamp.Load() != d {
				t.Fatalf("told %v, stamp %d", told, c.stamp.Load())
			}
		}
		c.finish()
	}
}
