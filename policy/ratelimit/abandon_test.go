package ratelimit_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
)

// leaving are the ways in which foreign code does not come back.
var leaving = map[string]func(){
	"panic":  func() { panic("on purpose") },
	"Goexit": runtime.Goexit,
}

// survive calls f, which does not return, on a goroutine of its own.
func survive(t *testing.T, f func()) {
	t.Helper()
	over := make(chan bool)
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		f()
		t.Error("it has returned")
	}()
	<-over
}

// L-4: the place goes to those behind, the permit stays in the bucket, and no timer
// is left.
func TestWait_L4_X3_WhoDoesNotComeBackWhileWaitingGivesHisPlaceBack(t *testing.T) {
	for name, leave := range leaving {
		p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
		drain(p)
		m.AfterFunc(500*time.Millisecond, leave) // the waiter calls it: it drives the clock
		survive(t, func() { _ = p.Acquire(t.Context()) })
		if s := p.Snapshot(); s.Waiting != 0 || m.Pending() != 0 {
			t.Errorf("%s: %+v, %v", name, s, m)
		}
		if wait := nextWait(t, p); wait != 500*time.Millisecond {
			t.Errorf("%s: the next one waits %v", name, wait)
		}
	}
}

// doneWithout is a context that ends when told; from then on its Err leaves.
type doneWithout struct {
	context.Context
	done  chan struct{}
	leave func()
}

func (d doneWithout) Done() <-chan struct{} { return d.done }

func (d doneWithout) Err() error {
	select {
	case <-d.done:
		d.leave()
	default:
	}
	return nil
}

func TestWait_L4_AContextWhoseErrDoesNotComeBackGivesItsPlaceBack(t *testing.T) {
	for name, leave := range leaving {
		p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
		drain(p)
		ctx := doneWithout{t.Context(), make(chan struct{}), leave}
		survive(t, func() {
			go func() {
				for p.Snapshot().Waiting == 0 {
					runtime.Gosched()
				}
				close(ctx.done)
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
