package bulkhead_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// BH-01, B-7: a slot that becomes free later is not granted to waiters that have
// given up.
func TestField_BH01_WaitersThatGaveUpKeepNoSlot(t *testing.T) {
	p, m := newPassive(t, bulkhead.Config{MaxConcurrent: 8, Queue: unbounded, MaxWait: 50 * ms})
	for round := range 100 {
		for range 8 {
			mustAcquire(t, p)
		}
		var results []<-chan error
		for range 8 {
			results = append(results, acquire(t.Context(), p))
		}
		awaitSleepers(t, m, 8)
		m.Advance(50 * ms)
		for _, r := range results {
			if err := <-r; !errors.Is(err, bulkhead.ErrFull) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		for range 8 {
			p.Release()
		}
		if got := p.Snapshot(); got.Available != 8 || got.Waiting != 0 {
			t.Fatalf("round %d: %+v", round, got)
		}
		for range 8 {
			mustAcquire(t, p)
		}
		for range 8 {
			p.Release()
		}
	}
}

// BH-03, B-1: 10,000 at once on a limit of 100, which two callers' worth of code
// share: 100 are admitted, 9,900 are refused.
func TestField_BH03_B1_RushNeverExceedsTheLimit(t *testing.T) {
	p := newPolicy(t, bulkhead.Config{MaxConcurrent: 100})
	var inside, peak, admitted, rejected atomic.Int64
	begin, gate := make(chan struct{}), make(chan struct{})
	var callers, decided sync.WaitGroup
	decided.Add(10_000)
	for i := range 10_000 {
		callers.Go(func() {
			<-begin
			if i%2 == 0 && !p.TryAcquire() || i%2 == 1 && p.Acquire(t.Context()) != nil {
				rejected.Add(1)
				decided.Done()
				return
			}
			raise(&peak, inside.Add(1))
			admitted.Add(1)
			decided.Done()
			<-gate
			inside.Add(-1)
			p.Release()
		})
	}
	close(begin)
	decided.Wait()
	if diff := cmp.Diff(counts{Limit: 100, InUse: 100, Admitted: 100, Rejected: 9900}, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	close(gate)
	callers.Wait()
	if peak.Load() != 100 || admitted.Load() != 100 || rejected.Load() != 9900 {
		t.Errorf("peak %d, admitted %d, refused %d", peak.Load(), admitted.Load(), rejected.Load())
	}
	if got := p.Snapshot().Available; got != 100 {
		t.Errorf("available %d, want 100", got)
	}
}

// raise makes peak at least now.
func raise(peak *atomic.Int64, now int64) {
	for old := peak.Load(); now > old; old = peak.Load() {
		if peak.CompareAndSwap(old, now) {
			return
		}
	}
}

// B-1: the same rush with a queue for all: everybody runs, never more than 100.
func TestField_BH03_B1_RushThroughTheQueueNeverExceedsTheLimit(t *testing.T) {
	p := newPolicy(t, bulkhead.Config{MaxConcurrent: 100, Queue: unbounded, MaxWait: unbounded})
	var inside, ran atomic.Int64
	begin := make(chan struct{})
	var callers sync.WaitGroup
	for range 10_000 {
		callers.Go(func() {
			<-begin
			if err := p.Acquire(t.Context()); err != nil {
				t.Error(err)
				return
			}
			if now := inside.Add(1); now > 100 {
				t.Errorf("%d inside", now)
			}
			ran.Add(1)
			runtime.Gosched()
			inside.Add(-1)
			p.Release()
		})
	}
	close(begin)
	callers.Wait()
	want := counts{Limit: 100, Available: 100, Admitted: 10_000}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" || ran.Load() != 10_000 {
		t.Errorf("ran %d (-want +got)\n%s", ran.Load(), diff)
	}
}

// BH-06 (sync form): work that ignores its end holds its slot until it is over.
func TestField_BH06_SlotIsHeldWhileTheWorkRuns(t *testing.T) {
	p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1})
	ctx, cancel := context.WithCancel(t.Context())
	m.AfterFunc(50*ms, cancel)
	m.AfterFunc(100*ms, func() {
		if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
			t.Errorf("the second caller got %v", err)
		}
	})
	m.AfterFunc(540*ms-1, func() {
		if got := p.Snapshot().InUse; got != 1 {
			t.Errorf("in use %d just before the work ends, want 1", got)
		}
	})
	if err := p.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	m.Advance(540 * ms) // looks at no context
	p.Release()
	if got := p.Snapshot(); got.InUse != 0 || got.Rejected != 1 {
		t.Errorf("%+v", got)
	}
}

// BH-08, B-7: waiters that were cancelled take no place in the queue and no
// memory, although no slot was ever released.
func TestField_BH08_B7_DeadWaitersTakeNoPlace(t *testing.T) {
	for _, form := range []struct {
		name string
		wait func(p *bulkhead.Policy, ctx context.Context) (gone <-chan struct{})
	}{
		{"sync", func(p *bulkhead.Policy, ctx context.Context) <-chan struct{} {
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}()
			return gone
		}},
		{"async", func(p *bulkhead.Policy, ctx context.Context) <-chan struct{} {
			gone := make(chan struct{})
			w := waitq.New(func() { t.Error("woken") })
			if entered, err := p.EnterAsync(ctx, time.Hour, w); entered || err != nil {
				t.Fatalf("%v, %v", entered, err)
			}
			context.AfterFunc(ctx, func() {
				defer close(gone)
				if !p.Leave(w) {
					t.Error("a waiter could not leave")
				}
			})
			return gone
		}},
	} {
		t.Run(form.name, func(t *testing.T) {
			p, m := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: 10, MaxWait: time.Hour})
			mustAcquire(t, p)
			before := heap()
			for batch := range 1000 {
				ctx, cancel := context.WithCancel(t.Context())
				var all []<-chan struct{}
				for range 10 {
					all = append(all, form.wait(p, ctx))
				}
				await(func() bool { return p.Snapshot().Waiting == 10 })
				cancel()
				for _, gone := range all {
					<-gone
				}
				if got := p.Snapshot(); got.Waiting != 0 || got.Rejected != 0 {
					t.Fatalf("batch %d: %+v", batch, got)
				}
			}
			if grown := int64(heap()) - int64(before); grown > 1<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			if m.Pending() != 0 {
				t.Error(m)
			}
			w := enqueue(t, p, unbounded) // number 10,001
			p.Release()
			<-w.woken
			if w.State() != waitq.Granted || p.TryAcquire() {
				t.Errorf("state %v, want the slot to be the waiter's", w.State())
			}
		})
	}
}

// heap is the live heap after a collection.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// BH-09: 1,000 at once on 4 slots and 6 places: 4 run, 6 wait, 990 are refused
// while nobody has left yet, so a refusal does not block.
func TestField_BH09_QueueIsExactUnderARush(t *testing.T) {
	for round := range 10 {
		p := newPolicy(t, bulkhead.Config{MaxConcurrent: 4, Queue: 6, MaxWait: unbounded})
		var running, ran, rejected atomic.Int64
		begin, gate := make(chan struct{}), make(chan struct{})
		var callers sync.WaitGroup
		for range 1000 {
			callers.Go(func() {
				<-begin
				if err := p.Acquire(t.Context()); err != nil {
					if !errors.Is(err, bulkhead.ErrFull) {
						t.Error(err)
					}
					rejected.Add(1)
					return
				}
				running.Add(1)
				<-gate
				running.Add(-1)
				ran.Add(1)
				p.Release()
			})
		}
		close(begin)
		await(func() bool { return rejected.Load() >= 990 && running.Load() >= 4 })
		want := counts{Limit: 4, InUse: 4, Waiting: 6, Admitted: 4, Rejected: 990}
		if diff := cmp.Diff(want, countsOf(p)); diff != "" {
			t.Errorf("round %d: (-want +got)\n%s", round, diff)
		}
		close(gate)
		callers.Wait()
		want = counts{Limit: 4, Available: 4, Admitted: 10, Rejected: 990}
		if diff := cmp.Diff(want, countsOf(p)); diff != "" || ran.Load() != 10 {
			t.Errorf("round %d: ran %d (-want +got)\n%s", round, ran.Load(), diff)
		}
	}
}
