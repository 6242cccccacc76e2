package bulkhead_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy/bulkhead"
)

// every entry point works inside a bubble, on the bubble's own time, and
// leaves nothing behind that would keep the bubble from ending.

func TestBubble_X2_SyncWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: 100 * ms})
		begin := time.Now()
		mustAcquire(t, p)

		var e *bulkhead.Error
		if err := p.Acquire(t.Context()); !errors.As(err, &e) || e.Waited != 100*ms || time.Since(begin) != 100*ms {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}

		time.AfterFunc(30*ms, p.Release)
		if err := p.Enter(t.Context(), time.Hour); err != nil || time.Since(begin) != 130*ms {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		defer cancel()
		if err := p.Enter(ctx, unbounded); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 150*ms {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		p.Release()
		if got := p.Snapshot(); got.Available != 1 || got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestBubble_X2_AsyncWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
		begin := time.Now()
		mustAcquire(t, p)
		expires, granted, leaves := enqueue(t, p, 10*ms), enqueue(t, p, time.Hour), enqueue(t, p, time.Hour)
		<-expires.woken
		if !errors.Is(expires.Err(), bulkhead.ErrFull) || time.Since(begin) != 10*ms {
			t.Errorf("after %v: %v", time.Since(begin), expires.Err())
		}
		if !p.Leave(leaves.Waiter) {
			t.Error("a waiter could not leave")
		}
		p.Release()
		<-granted.woken
		if p.TryAcquire() {
			t.Error("the slot was given twice")
		}
		if err := p.SetLimit(2); err != nil || !p.TryAcquire() {
			t.Error(err)
		}
		if err := p.Reconfigure(bulkhead.Config{MaxConcurrent: 3}); err != nil || !p.TryAcquire() {
			t.Error(err)
		}
	})
}

func TestBubble_X2_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scope.New(clock.System(), nil)
		p, err := bulkhead.NewIn(s, "b", bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, p)
		result := acquire(t.Context(), p)
		synctest.Wait()
		if got := p.Snapshot().Waiting; got != 1 {
			t.Errorf("waiting %d, want 1", got)
		}
		s.Close()
		if err := <-result; !errors.Is(err, scope.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
