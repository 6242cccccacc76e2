package bulkhead_test

import (
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// checkNothingLost reports a slot that is held, or a waiter, after all have gone.
func checkNothingLost(t *testing.T, p *bulkhead.Policy, m *clock.Manual) {
	t.Helper()
	if s := p.Snapshot(); s.InUse != 0 || s.Waiting != 0 || m.Pending() != 0 {
		t.Errorf("%+v, %v", s, m)
	}
	if !p.TryAcquire() {
		t.Error("the slot is lost")
	}
}

func TestWait_B5_X3_WhoDoesNotComeBackWhileWaitingLosesNoSlot(t *testing.T) {
	for _, leave := range testkit.Leaving {
		for _, granted := range []bool{false, true} {
			for _, maxWait := range []time.Duration{time.Minute, unbounded} {
				p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: 10, MaxWait: maxWait})
				mustAcquire(t, p)
				m.AfterFunc(time.Second, func() { // the waiter calls it: it drives the clock
					if granted {
						p.Release()
					}
					leave()
				})
				testkit.Survive(t, func() { _ = p.Acquire(t.Context()) })
				if !granted {
					p.Release()
				}
				checkNothingLost(t, p, m)
			}
		}
	}
}

func TestWait_B5_AContextWhoseErrDoesNotComeBackLosesNoSlot(t *testing.T) {
	for _, leave := range testkit.Leaving {
		p, m := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: 10, MaxWait: time.Minute})
		mustAcquire(t, p)
		ctx := testkit.Careless{Context: t.Context(), Ended: make(chan struct{}), Leave: leave}
		testkit.Survive(t, func() {
			go func() {
				await(func() bool { return p.Snapshot().Waiting == 1 })
				close(ctx.Ended)
			}()
			_ = p.Acquire(ctx)
		})
		p.Release()
		checkNothingLost(t, p, m)
	}
}

func TestWait_B5_X3_AClockThatPanicsLosesNoSlot(t *testing.T) {
	for _, granted := range []bool{false, true} {
		for name, enter := range map[string]func(p *bulkhead.Policy, w *waitq.Waiter){
			"sync":  func(p *bulkhead.Policy, _ *waitq.Waiter) { _ = p.Enter(t.Context(), time.Minute) },
			"async": func(p *bulkhead.Policy, w *waitq.Waiter) { _, _ = p.EnterAsync(t.Context(), time.Minute, w) },
		} {
			var release func()
			clk := &testkit.HookedClock{Manual: clock.NewManual(start), BeforeTimer: func(time.Duration) {
				if granted {
					release()
				}
				panic("no timer")
			}}
			p, err := bulkhead.New("b", bulkhead.Config{MaxConcurrent: 1, Queue: 10, MaxWait: time.Minute}, clk)
			if err != nil {
				t.Fatal(err)
			}
			release = p.Release
			mustAcquire(t, p)
			var woken atomic.Int32
			testkit.Survive(t, func() { enter(p, waitq.New(func() { woken.Add(1) })) })
			if !granted {
				p.Release()
				if woken.Load() != 0 {
					t.Errorf("%s: one who has left was woken", name)
				}
			}
			checkNothingLost(t, p, clk.Manual)
		}
	}
}
