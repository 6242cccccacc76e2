package ratelimit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy/ratelimit"
)

// brittle is a clock that panics when it is next asked for what is broken.
type brittle struct {
	*clock.Manual
	reads  int  // how often it can be read until it panics, once; 0: for ever
	timers bool // no timer can be set
}

func (b *brittle) Now() time.Time {
	if b.reads > 0 {
		if b.reads--; b.reads == 0 {
			panic("no time")
		}
	}
	return b.Manual.Now()
}

func (b *brittle) AfterFunc(d time.Duration, f func()) clock.Timer {
	if b.timers {
		panic("no timer")
	}
	return b.Manual.AfterFunc(d, f)
}

func newBrittle(t *testing.T) (*ratelimit.Policy, *brittle) {
	t.Helper()
	clk := &brittle{Manual: clock.NewManual(start).Passive()}
	return newOn(t, clk, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute)), clk
}

// panics calls f, which must.
func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("the clock did not panic")
		}
	}()
	f()
}

// A clock that panics takes neither the lock with it nor a place in the queue.
func TestWait_L4_X3_AClockThatPanicsTakesNothingWithIt(t *testing.T) {
	for name, enter := range map[string]func(p *ratelimit.Policy, clk clock.Clock){
		"sync": func(p *ratelimit.Policy, _ clock.Clock) { _ = p.Enter(t.Context(), time.Minute, 0) },
		"async": func(p *ratelimit.Policy, clk clock.Clock) {
			_, _ = p.EnterAsync(t.Context(), time.Minute, 0, newQueued(clk).Waiter)
		},
	} {
		for broken, set := range map[string]func(*brittle){
			"timer":       func(b *brittle) { b.timers = true },
			"first read":  func(b *brittle) { b.reads = 1 },
			"second read": func(b *brittle) { b.reads = 2 },
		} {
			p, clk := newBrittle(t)
			drain(p)
			set(clk)
			panics(t, func() { enter(p, clk) })
			clk.timers = false
			if s := p.Snapshot(); s.Waiting != 0 || clk.Pending() != 0 {
				t.Errorf("%s, %s: %+v, %d timers", name, broken, s, clk.Pending())
			}
			if wait := nextWait(t, p); wait != time.Second {
				t.Errorf("%s, %s: the next one waits %v, want 1s", name, broken, wait)
			}
		}
	}
}

// Those whose permits came in the same instant get them.
func TestWait_L5_X3_AClockThatPanicsKeepsNobodyWaiting(t *testing.T) {
	for name, do := range map[string]func(p *ratelimit.Policy, m *clock.Manual){
		"a tick":  func(_ *ratelimit.Policy, m *clock.Manual) { m.Advance(time.Second) },
		"SetRate": func(p *ratelimit.Policy, _ *clock.Manual) { _ = p.SetRate(1, time.Second, 2) },
	} {
		p, clk := newBrittle(t)
		drain(p)
		due, next := enqueue(t, p, clk, time.Minute), enqueue(t, p, clk, time.Minute)
		clk.timers = true
		panics(t, func() { do(p, clk.Manual) })
		clk.timers = false
		if got := dues(due, next); got[0] < 0 || got[1] >= 0 {
			t.Errorf("%s: woken at %v, want the first only", name, got)
		}
		p.Leave(next.Waiter)
		if s := p.Snapshot(); s.Waiting != 0 || s.Admitted != 2 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A tick whose clock panics, at any of its steps, comes again.
func TestTick_L5_X3_AClockThatPanicsPutsItOff(t *testing.T) {
	for name, set := range map[string]func(*testkit.HookedClock){
		"time": func(c *testkit.HookedClock) {
			c.OnNow = func() { c.OnNow = nil; panic("no time") }
		},
		"timer": func(c *testkit.HookedClock) {
			c.BeforeTimer = func(time.Duration) { c.BeforeTimer = nil; panic("no timer") }
		},
	} {
		clk := &testkit.HookedClock{Manual: clock.NewManual(start).Passive()}
		p := newOn(t, clk, ratelimit.PerSecond(1))
		drain(p)
		first, next := enqueue(t, p, clk, time.Minute), enqueue(t, p, clk, time.Minute)
		set(clk)
		panics(t, func() { clk.Advance(time.Second) })
		clk.Advance(time.Millisecond)
		if got := dues(first, next); got[0] < 0 || got[1] >= 0 {
			t.Errorf("%s: a little later woken at %v, want the first only", name, got)
		}
		clk.Advance(time.Second)
		if got := next.due(); got != 2*time.Second {
			t.Errorf("%s: the next is woken at %v", name, got)
		}
		if s := p.Snapshot(); s.Waiting != 0 || s.Admitted != 3 || clk.Pending() != 0 {
			t.Errorf("%s: %+v, %d timers", name, s, clk.Pending())
		}
	}
}

// Those whom a clock has left without any timer get one from the next who comes,
// also from one who does not wait.
func TestWait_L5_X3_WhoComesSetsTheTimerThatIsMissing(t *testing.T) {
	p, clk := newBrittle(t)
	drain(p)
	due, next := enqueue(t, p, clk, time.Minute), enqueue(t, p, clk, time.Minute)
	clk.timers = true
	panics(t, func() { clk.Advance(time.Second) })
	clk.timers = false
	if clk.Pending() != 0 {
		t.Fatalf("%d timers", clk.Pending())
	}
	if p.TryAcquire() || clk.Pending() != 1 {
		t.Errorf("%d timers, want 1", clk.Pending())
	}
	if p.TryAcquire() || clk.Pending() != 1 {
		t.Errorf("%d timers, want 1", clk.Pending())
	}
	clk.Advance(time.Second)
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second}, dues(due, next)); diff != "" {
		t.Errorf("woken at (-want +got)\n%s", diff)
	}
}

// A timer is given up only when there is another.
func TestWait_L5_X3_AClockThatSetsNoTimerKeepsTheOneThatIsSet(t *testing.T) {
	p, clk := newBrittle(t)
	drain(p)
	w := enqueue(t, p, clk, time.Minute)
	clk.timers = true
	panics(t, func() { _ = p.SetRate(1, 500*time.Millisecond, 1) })
	clk.timers = false
	clk.Advance(time.Second)
	if got := w.due(); got != time.Second {
		t.Errorf("woken at %v, want when it was due before", got)
	}
}

// Settings that a clock has kept from being put in force are news the next time.
func TestReconfigure_G7_X3_AClockThatPanicsMakesItNoLastOne(t *testing.T) {
	p, clk := newBrittle(t)
	want := config(ratelimit.PerSecond(5))
	clk.reads = 1
	panics(t, func() { _ = p.Reconfigure(want) })
	if err := p.Reconfigure(want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.Config()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
