package bulkhead_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// Case 36: limit n without waiting: n run, the next is refused at once; one
// release lets exactly one in. The queue alone has no effect where MaxWait is 0.
func TestConform_36_LimitWithoutQueue(t *testing.T) {
	for _, n := range []int{3, 10} {
		for _, queue := range []int{0, 8} {
			p, m := newManual(t, bulkhead.Config{MaxConcurrent: n, Queue: queue})
			for range n {
				if err := p.Acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
					t.Errorf("limit %d: the next got %v", n, err)
				}
			}
			p.Release()
			mustAcquire(t, p)
			if p.TryAcquire() || !m.Now().Equal(start) {
				t.Errorf("limit %d: one release let two in, or time passed: %v", n, m)
			}
		}
	}
}

// Case 37: limit n, queue q: n run, q wait and do not start, the next is refused;
// one release starts exactly one waiter, and makes room for exactly one more.
func TestConform_37_LimitAndQueue(t *testing.T) {
	for _, n := range []int{10, 5} {
		p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: n, Queue: n, MaxWait: unbounded})
		for range n {
			mustAcquire(t, p)
		}
		var line []queued
		for range n {
			line = append(line, enqueue(t, p, unbounded))
		}
		started := func() (k int) {
			for _, w := range line {
				if w.State() == waitq.Granted {
					k++
				}
			}
			return k
		}
		refused := func() {
			t.Helper()
			if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
				t.Errorf("the next got %v", err)
			}
		}
		if started() != 0 {
			t.Error("a waiter started too early")
		}
		refused()
		p.Release()
		if got := started(); got != 1 || line[0].State() != waitq.Granted {
			t.Errorf("one release started %d waiters, want the first alone", got)
		}
		line = append(line, enqueue(t, p, unbounded))
		refused()
		for range 2 * n {
			p.Release()
		}
		if got := started(); got != n+1 {
			t.Errorf("%d waiters ran, want %d", got, n+1)
		}
		for _, w := range line {
			<-w.woken
		}
	}
}

// Case 38: a slot taken for a pending stage is held after the function that
// returned the stage, and freed when the stage completes.
func TestConform_38_PendingStagesHoldTheirSlots(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 2, Queue: 2, MaxWait: unbounded})
	mustAcquire(t, p)
	mustAcquire(t, p)
	third, fourth := enqueue(t, p, unbounded), enqueue(t, p, unbounded)
	if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("the fifth got %v", err)
	}
	p.Release() // the first stage completes, from whatever goroutine
	<-third.woken
	p.Release()
	<-fourth.woken
	p.Release()
	p.Release()
	want := counts{Limit: 2, Available: 2, Admitted: 4, Rejected: 1}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Case 39: pressure: limit 5, 100 calls, one every 25 ms; never more than 5
// inside, no error but a full bulkhead, none lost. With calls of 50 ms there is
// room for all, with 200 ms there is not.
func TestConform_39_Pressure(t *testing.T) {
	for _, tc := range []struct {
		call    time.Duration
		refused bool
	}{{50 * ms, false}, {200 * ms, true}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPolicy(t, bulkhead.Config{MaxConcurrent: 5})
			var inside, ok, full atomic.Int64
			var callers sync.WaitGroup
			for range 100 {
				callers.Go(func() {
					switch err := p.Acquire(t.Context()); {
					case err == nil:
						if now := inside.Add(1); now > 5 {
							t.Errorf("%d inside", now)
						}
						time.Sleep(tc.call)
						inside.Add(-1)
						ok.Add(1)
						p.Release()
					case errors.Is(err, bulkhead.ErrFull):
						full.Add(1)
					default:
						t.Error(err)
					}
				})
				time.Sleep(25 * ms)
			}
			callers.Wait()
			if ok.Load()+full.Load() != 100 || (full.Load() > 0) != tc.refused {
				t.Errorf("calls of %v: %d ok, %d refused", tc.call, ok.Load(), full.Load())
			}
			if got := p.Snapshot(); got.Available != 5 || got.Admitted != uint64(ok.Load()) || got.Rejected != uint64(full.Load()) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Case 41: a wait of 50 ends refused at 50; a wait of 2,000 that is cancelled
// ends before, as cancelled and not as full. (Limit 0 is a build error here.)
func TestConform_41_WaitEndsOrIsCancelled(t *testing.T) {
	p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: 50 * ms})
	mustAcquire(t, p)
	if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := m.Now().Sub(start); got != 50*ms {
		t.Errorf("refused at %v, want 50ms", got)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	m.AfterFunc(700*ms, func() { cancel(why) })
	err := p.Enter(ctx, 2000*ms)
	if !errors.Is(err, context.Canceled) || errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := m.Now().Sub(start); got != 750*ms || !errors.Is(context.Cause(ctx), why) {
		t.Errorf("cancelled at %v, want 750ms; cause %v", got, context.Cause(ctx))
	}
	if _, err := bulkhead.New("b", bulkhead.Config{MaxConcurrent: 0}, m); err == nil {
		t.Error("limit 0 was built")
	}
	if m.Pending() != 0 {
		t.Error(m)
	}
}

// Case 43: one bulkhead shares its count among all who use it; two do not.
func TestConform_43_SharedByObject(t *testing.T) {
	p, _ := newManual(t, bulkhead.Config{MaxConcurrent: 1})
	other, _ := newManual(t, bulkhead.Config{MaxConcurrent: 1})
	inOneFunction := func(p *bulkhead.Policy) bool { return p.TryAcquire() }
	inAnotherOne := func(p *bulkhead.Policy) error { return p.Acquire(t.Context()) }
	if !inOneFunction(p) || inAnotherOne(p) == nil {
		t.Error("the count is not shared")
	}
	if inAnotherOne(other) != nil {
		t.Error("the count of another instance is shared")
	}
}

// Case 44: the counters of (2, no queue) and of (2, 2).
func TestConform_44_Counters(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 2})
	mustAcquire(t, p)
	mustAcquire(t, p)
	if p.TryAcquire() {
		t.Fatal("a third got in")
	}
	if diff := cmp.Diff(counts{Limit: 2, InUse: 2, Admitted: 2, Rejected: 1}, countsOf(p)); diff != "" {
		t.Errorf("running (-want +got)\n%s", diff)
	}
	p.Release()
	p.Release()
	if diff := cmp.Diff(counts{Limit: 2, Available: 2, Admitted: 2, Rejected: 1}, countsOf(p)); diff != "" {
		t.Errorf("after (-want +got)\n%s", diff)
	}

	p, _ = newPassive(t, bulkhead.Config{MaxConcurrent: 2, Queue: 2, MaxWait: unbounded})
	mustAcquire(t, p)
	mustAcquire(t, p)
	a, b := enqueue(t, p, unbounded), enqueue(t, p, unbounded)
	if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(counts{Limit: 2, InUse: 2, Waiting: 2, Admitted: 2, Rejected: 1}, countsOf(p)); diff != "" {
		t.Errorf("waiting (-want +got)\n%s", diff)
	}
	for range 4 {
		p.Release()
	}
	<-a.woken
	<-b.woken
	if diff := cmp.Diff(counts{Limit: 2, Available: 2, Admitted: 4, Rejected: 1}, countsOf(p)); diff != "" {
		t.Errorf("at the end (-want +got)\n%s", diff)
	}
}
