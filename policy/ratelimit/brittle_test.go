package ratelimit_test

import (
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
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
