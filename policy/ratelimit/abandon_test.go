package ratelimit_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy/ratelimit"
)

// L-4: the place goes to those behind, the permit stays in the bucket, and no timer
// is left.
func TestWait_L4_X3_WhoDoesNotComeBackWhileWaitingGivesHisPlaceBack(t *testing.T) {
	for name, leave := range testkit.Leaving {
		p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
		drain(p)
		m.AfterFunc(500*time.Millisecond, leave) // the waiter calls it: it drives the clock
		testkit.Survive(t, func() { _ = p.Acquire(t.Context()) })
		if s := p.Snapshot(); s.Waiting != 0 || m.Pending() != 0 {
			t.Errorf("%s: %+v, %v", name, s, m)
		}
		if wait := nextWait(t, p); wait != 500*time.Millisecond {
			t.Errorf("%s: the next one waits %v", name, wait)
		}
	}
}

func TestWait_L4_AContextWhoseErrDoesNotComeBackGivesItsPlaceBack(t *testing.T) {
	for name, leave := range testkit.Leaving {
		p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
		drain(p)
		ctx := testkit.Careless{Context: t.Context(), Ended: make(chan struct{}), Leave: leave}
		testkit.Survive(t, func() {
			go func() {
				for p.Snapshot().Waiting == 0 {
					runtime.Gosched()
				}
				close(ctx.Ended)
			}()
			_ = p.Acquire(ctx)
		})
		if s := p.Snapshot(); s.Waiting != 0 || m.Pending() != 0 {
			t.Errorf("%s: %+v, %v", name, s, m)
		}
	}
}

// The real deadline that guards a test against hanging says nothing of the time of
// a manual clock, which may be years ahead.
func TestWait_L3_ADeadlineOfAnotherClockIsNotWeighed(t *testing.T) {
	m := clock.NewManual(time.Now().AddDate(10, 0, 0))
	p := newOn(t, m, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
	drain(p)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := p.Acquire(ctx); err != nil {
		t.Errorf("Acquire = %v", err)
	}
	w := newQueued(m)
	if entered, err := p.EnterAsync(ctx, time.Minute, 0, w.Waiter); entered || err != nil {
		t.Fatalf("EnterAsync = %v, %v", entered, err)
	}
	m.Advance(time.Second)
	<-w.woken
}
