package bulkhead_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
)

// K-3: who moves a manual clock finds the waits that were due ended, in the order
// in which they began, each told before its wake, which may use the bulkhead.
func TestEnterAsync_K3_AnExpiredWaitIsDoneWhenAdvanceReturns(t *testing.T) {
	p, _, m, l := newIn(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
	mustAcquire(t, p)
	type wake struct {
		Waiter, Told, Waiting int
		At                    time.Duration
	}
	var got []wake // not guarded: the race detector sees another goroutine
	for i, maxWait := range []time.Duration{10 * ms, 5 * ms, 10 * ms} {
		w := waitq.New(func() {
			got = append(got, wake{i, l.Len(), p.Snapshot().Waiting, m.Now().Sub(start)})
			if p.TryAcquire() {
				t.Error("a slot was free")
			}
			m.Advance(0)
		})
		if entered, err := p.EnterAsync(t.Context(), maxWait, w); entered || err != nil {
			t.Fatal(entered, err)
		}
	}
	m.Advance(time.Hour)
	want := []wake{{1, 1, 2, 5 * ms}, {0, 2, 1, 10 * ms}, {2, 3, 0, 10 * ms}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// a waiter hears of its refusal also if the listener does not.
func TestExpire_X3_AListenerThatDoesNotComeBackKeepsNoWaiter(t *testing.T) {
	for name, leave := range testkit.Leaving {
		m := clock.NewManual(start).Passive()
		heard := 0
		s := scope.New(m, func(_ context.Context, e policy.Event) {
			if _, ok := e.(bulkhead.Full); ok {
				heard++
				leave()
			}
		})
		p, err := bulkhead.NewIn(s, "b", bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, p)
		for i := range 3 {
			w := enqueue(t, p, 10*ms)
			moved := make(chan struct{})
			go func() {
				defer close(moved)
				m.Advance(10 * ms)
			}()
			<-moved
			<-w.woken
			if w.State() != waitq.Refused || heard != i+1 {
				t.Errorf("%s: state %v, %d heard", name, w.State(), heard)
			}
		}
		p.Release()
		checkNothingLost(t, p, m)
	}
}

// B-3: a waiter is refused when its time is over also if the clock does not say how
// long that was.
func TestExpire_B3_X3_AClockThatPanicsKeepsNoWaiter(t *testing.T) {
	for name, enter := range map[string]func(p *bulkhead.Policy) <-chan error{
		"sync": func(p *bulkhead.Policy) <-chan error { return acquire(t.Context(), p) },
		"async": func(p *bulkhead.Policy) <-chan error {
			result := make(chan error, 1)
			var w *waitq.Waiter
			w = waitq.New(func() { result <- w.Err() })
			if entered, err := p.EnterAsync(t.Context(), 10*ms, w); entered || err != nil {
				t.Fatal(entered, err)
			}
			return result
		},
	} {
		for _, leave := range testkit.Leaving {
			clk := &testkit.HookedClock{Manual: clock.NewManual(start).Passive()}
			p, err := bulkhead.New("b", bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: 10 * ms}, clk)
			if err != nil {
				t.Fatal(err)
			}
			mustAcquire(t, p)
			result := enter(p)
			if name == "sync" {
				awaitSleepers(t, clk.Manual, 1)
			}
			clk.OnNow = func() {
				clk.OnNow = nil
				leave()
			}
			testkit.Survive(t, func() { clk.Advance(10 * ms) })
			if s := p.Snapshot(); s.Waiting != 0 || s.Rejected != 1 {
				t.Fatalf("%s: %+v", name, s)
			}
			var full *bulkhead.Error
			if err := <-result; !errors.As(err, &full) || full.Waited != 10*ms {
				t.Errorf("%s: %v, %+v", name, err, full)
			}
			p.Release()
			checkNothingLost(t, p, clk.Manual)
		}
	}
}
