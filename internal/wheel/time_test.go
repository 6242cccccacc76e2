package wheel_test

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/wheel"
)

func TestTickFollowsShortestLimit(t *testing.T) { // T-5
	_, w := newWorld()
	var got []time.Duration
	look := func() { got = append(got, time.Duration(w.TickLen())) }
	look()
	w.Use(30 * time.Second)
	look()
	w.Use(160 * time.Millisecond)
	w.Use(2 * time.Second)
	w.Use(0)
	w.Use(-1)
	look()
	arm(w, new(call), 4*time.Millisecond).finish()
	look()
	w.SetShortest(320 * time.Millisecond)
	look()
	w.SetShortest(0)
	look()
	want := []time.Duration{
		50 * time.Millisecond, 50 * time.Millisecond, 10 * time.Millisecond,
		time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ticks (-want +got):\n%s", d)
	}
}

// A long tick is under way when the first short limit comes: it must not wait
// for it.
func TestShorterLimitHastensTheNextTick(t *testing.T) { // T-5
	for _, ticking := range []bool{true, false} {
		o, w := newWorld()
		if ticking {
			startTicking(t, o, w)
		} else {
			arm(w, new(call), 101*time.Millisecond)
			o.advance(100 * time.Millisecond)
		}
		o.advance(time.Millisecond)
		c := arm(w, new(call), 5*time.Millisecond)
		o.advance(7*time.Millisecond + time.Microsecond)
		if c.fired.Load() != 1 {
			t.Errorf("ticking %v: 5 ms after start, plus two ticks: not fired", ticking)
		}
	}
}

func TestField_WH03_LevelsByMagnitude(t *testing.T) {
	cases := map[int64]int{0: 0, -5: 0, 999_999: 0, 1e6: 1, 4e6 - 1: 1, 4e6: 2, 16e6: 3, 3e10: 8, 24 * 3600 * 1e9: 14, math.MaxInt64 - 1: 15, math.MaxInt64: 16}
	for limit, want := range cases {
		if got := wheel.LevelOf(limit); got != want {
			t.Errorf("level of %d: %d, want %d", limit, got, want)
		}
		if got := wheel.LevelOf(limit); limit < math.MaxInt64 && limit > wheel.MaxLimit(got) {
			t.Errorf("limit %d is above its level's %d", limit, wheel.MaxLimit(got))
		}
	}
	_, w := newWorld()
	if w.Level(5e6) != w.Level(6e6) || w.Level(5e6) == w.Level(30e9) {
		t.Error("limits of one magnitude share a level, others do not")
	}
}

func TestField_WH03_FarDeadlinesAreNeverEarly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		w.Use(16 * time.Millisecond)
		tick := time.Duration(w.TickLen())
		const span = 64
		limits := []time.Duration{(span - 1) * tick, span * tick, (span + 1) * tick, (span*span - 1) * tick, span * span * tick, (span*span + 1) * tick, 703_726 * time.Second}
		for range 200 {
			limits = append(limits, time.Duration(rng.Int64N(int64(90*time.Minute))))
		}
		if ticking {
			startTicking(t, o, w)
		}
		left := len(limits)
		for _, d := range limits {
			c := new(call)
			c.onExpire = func(c *call) func() {
				left--
				late := time.Duration(o.clock()-c.began) - time.Duration(c.limit)
				if late < 0 || late > 2*tick {
					t.Errorf("limit %v: fired %v late", time.Duration(c.limit), late)
				}
				return nil
			}
			o.advance(time.Duration(rng.Int64N(int64(3 * tick))))
			arm(w, c, d)
		}
		for range 20 { // some minutes of ticks, so that the ring goes round many times
			keepBusy(o, w, 500*tick)
			o.advance(20 * time.Second)
		}
		o.advance(703_730 * time.Second)
		if left != 0 || w.Pending() != 0 {
			t.Errorf("ticking %v: %d have not fired, %d pending", ticking, left, w.Pending())
		}
		if n := o.pendingTimers(); n > 1 {
			t.Errorf("%d timers left", n)
		}
	}
}

func TestField_WH02_HugeLimitsNeverFire(t *testing.T) {
	limits := []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2}
	for _, ticking := range []bool{false, true} {
		for _, ran := range []time.Duration{0, time.Hour} {
			o, w := newWorld()
			o.advance(ran)
			var calls []*call
			for _, d := range limits {
				if ticking {
					startTicking(t, o, w)
				}
				calls = append(calls, arm(w, new(call), d))
			}
			keepBusy(o, w, 3*time.Second)
			o.advance(24 * time.Hour)
			if w.Pending() != len(limits) {
				t.Errorf("pending %d, want %d", w.Pending(), len(limits))
			}
			for i, c := range calls {
				if d := w.Deadline(c); d < math.MaxInt64/2 || d == wheel.Never {
					t.Errorf("deadline of limit %d: %d", limits[i], d)
				}
				if c.fired.Load() != 0 || !c.finish() {
					t.Errorf("limit %d fired", limits[i])
				}
			}
			if w.Pending() != 0 {
				t.Errorf("pending %d after finish", w.Pending())
			}
		}
	}
	if at := newReal().Time(math.MaxInt64 - 1); at.Year() < 2300 {
		t.Errorf("the farthest deadline is in %d", at.Year())
	}
}

// A tick that comes seconds late sees calls that started any time since the one
// before. None of them may be early.
func TestStalledTicksNeverFireEarly(t *testing.T) { // T-5
	rng := rand.New(rand.NewPCG(7, 7))
	o, w := newWorld()
	w.Use(32 * time.Millisecond)
	fired, armed := 0, 0
	for range 400 {
		if rng.IntN(3) == 0 {
			burst(o, w)
		}
		for range rng.IntN(5) {
			c := new(call)
			c.onExpire = func(c *call) func() {
				fired++
				if d := o.clock() - c.began - c.limit; d < 0 {
					t.Errorf("fired %v early", -time.Duration(d))
				}
				return nil
			}
			arm(w, c, time.Duration(1+rng.IntN(100))*time.Millisecond)
			armed++
			o.advance(time.Duration(rng.IntN(3000)) * time.Microsecond)
		}
		o.stall(time.Duration(rng.IntN(4000)) * time.Millisecond)
	}
	o.advance(time.Second)
	if fired != armed || w.Pending() != 0 {
		t.Errorf("%d of %d fired, %d pending", fired, armed, w.Pending())
	}
}

// A goroutine can stand still between Start and Arm for longer than the ring
// remembers.
func TestStallBetweenStartAndArm(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		for _, limit := range []time.Duration{50 * time.Millisecond, 10 * time.Second} {
			o, w := newWorld()
			w.Use(16 * time.Millisecond)
			tick := time.Duration(w.TickLen())
			startTicking(t, o, w)
			c := &call{limit: int64(limit)}
			var bound int64
			c.start, bound = w.Start(c.limit)
			keepBusy(o, w, 3*wheel.RingLen*tick)
			if quiet {
				o.advance(time.Second)
			}
			if w.Ticking() == quiet {
				t.Fatalf("ticking %v", w.Ticking())
			}
			published := o.clock()
			c.slot = w.Level(c.limit).Arm(c, bound)
			for c.fired.Load() == 0 && o.clock() < published+c.limit+int64(time.Second) {
				if quiet {
					o.advance(tick)
				} else {
					keepBusy(o, w, tick)
				}
			}
			if late := time.Duration(o.clock()-published) - limit; c.fired.Load() != 1 || late > 2*tick {
				t.Errorf("quiet %v, limit %v: fired %d times, %v later than if started at its publication", quiet, limit, c.fired.Load(), late)
			}
		}
	}
}

// An entry outlives the ring many times over, in a segment that others churn.
func TestLongEntriesKeepTheirDeadline(t *testing.T) {
	o, w := newWorld()
	w.Use(16 * time.Millisecond)
	tick := time.Duration(w.TickLen())
	startTicking(t, o, w)
	left := 0
	for i := range 300 {
		c := &call{onExpire: func(c *call) func() {
			left--
			if late := time.Duration(o.clock() - c.began - c.limit); late < 0 || late > 2*tick {
				t.Errorf("%v late", late)
			}
			return nil
		}}
		left++
		arm(w, c, 5*time.Second+time.Duration(i)*33*time.Millisecond)
		keepBusy(o, w, 3*tick+time.Duration(i)*time.Microsecond)
	}
	keepBusy(o, w, 20*time.Second)
	if left != 0 {
		t.Errorf("%d have not fired", left)
	}
}

func TestDeadlineIsFixedOnce(t *testing.T) { // T-6
	o, w := newWorld()
	w.Use(160 * time.Millisecond)
	tick := time.Duration(w.TickLen())

	quiet := arm(w, new(call), 200*time.Millisecond)
	if got, want := w.Deadline(quiet), even(o.clock()+quiet.limit); got != want {
		t.Errorf("quiet: deadline %d, want exactly %d", got, want)
	}

	startTicking(t, o, w)
	o.advance(3 * time.Millisecond)
	var calls []*call
	for i := range 40 {
		c := &call{onExpire: func(c *call) func() {
			if d := w.Deadline(c); o.clock() < d {
				t.Errorf("fired %v before its deadline", time.Duration(d-o.clock()))
			}
			return nil
		}}
		calls = append(calls, arm(w, c, 100*time.Millisecond))
		if i%3 == 0 {
			o.advance(2 * time.Millisecond)
		}
	}
	first := make([]int64, len(calls))
	for i, c := range calls {
		if i%2 == 0 {
			first[i] = w.Deadline(c)
		}
	}
	o.advance(tick)
	for i, c := range calls {
		d := w.Deadline(c)
		if i%2 == 0 && d != first[i] {
			t.Errorf("first %d, then %d", first[i], d)
		}
		first[i] = d
		if late := time.Duration(d - c.began - c.limit); late < 0 || late > 2*tick {
			t.Errorf("deadline %v after start plus limit", late)
		}
	}
	o.advance(time.Second)
	for i, c := range calls {
		if d := w.Deadline(c); d != first[i] || c.fired.Load() != 1 {
			t.Errorf("after expiry (%d): %d, before %d", c.fired.Load(), d, first[i])
		}
	}
}

func TestOwnersStampOfNeverIsKept(t *testing.T) {
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		if ticking {
			startTicking(t, o, w)
		}
		c := arm(w, new(call), 100*time.Millisecond)
		c.stamp.Store(wheel.Never)
		h := hold(w, new(call))
		other := arm(w, new(call), time.Hour)
		o.advance(time.Minute)
		if c.fired.Load()+h.fired.Load() != 0 {
			t.Error("fired")
		}
		if d := w.Deadline(h); d != wheel.Never || w.Deadline(c) != wheel.Never {
			t.Errorf("deadlines %d and %d, want Never", d, w.Deadline(c))
		}
		if w.Pending() != 1 {
			t.Errorf("pending %d, want 1: entries without a deadline do not count", w.Pending())
		}
		seen := map[*call]bool{}
		w.Each(func(e *call, slot *atomic.Pointer[call]) {
			seen[e] = slot == e.slot
		})
		if want := (map[*call]bool{c: true, h: true, other: true}); !cmp.Equal(len(want), len(seen)) || !seen[c] || !seen[h] || !seen[other] {
			t.Errorf("Each saw %v", seen)
		}
	}
}

func TestHeldEntriesNeverWakeTheChain(t *testing.T) {
	o, w := newWorld()
	for range 100 {
		hold(w, new(call))
	}
	if n := o.pendingTimers(); n != 0 || w.Ticking() {
		t.Errorf("%d timers, ticking %v", n, w.Ticking())
	}
}

func TestHotWordsHaveTheirLinesToThemselves(t *testing.T) {
	_, w := newWorld()
	before, after := w.HotGap()
	if before < 128 || after < 128 || wheel.HotLen > 64 {
		t.Errorf("hot words: %d bytes, %d before, %d after", wheel.HotLen, before, after)
	}
}
