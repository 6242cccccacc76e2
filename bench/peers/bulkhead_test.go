package peers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/clock"
	own "resilience4cata.dev/go/policy/bulkhead"
)

var errFull = errors.New("full")

func ownBulkhead(tb testing.TB) *own.Policy {
	tb.Helper()
	h, err := own.New("bench", own.Config{MaxConcurrent: bench.Concurrency}, clock.System())
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// A slot is free, through a pipeline.
func BenchmarkBulkhead(b *testing.B) {
	ctx := context.Background()
	compare(b,
		execute(ctx, bench.Op, bench.Bulkhead),
		loop("failsafe-go", failsafeCall(ctx, bench.Op, bulkhead.New[int](bench.Concurrency))),
	)
}

// A slot is free, on the handle: take it if there is one, and give it back.
func BenchmarkBulkheadHandle(b *testing.B) {
	h := ownBulkhead(b)
	slots := make(chan struct{}, bench.Concurrency)
	sem := semaphore.NewWeighted(bench.Concurrency)
	compare(b,
		loop("ours", func() error {
			if !h.TryAcquire() {
				return errFull
			}
			h.Release()
			return nil
		}),
		loop("channel", func() error {
			select {
			case slots <- struct{}{}:
			default:
				return errFull
			}
			<-slots
			return nil
		}),
		loop("semaphore", func() error {
			if !sem.TryAcquire(1) {
				return errFull
			}
			sem.Release(1)
			return nil
		}),
	)
}

// The same in the form that would wait, until the context ends.
func BenchmarkBulkheadAcquire(b *testing.B) {
	ctx := b.Context()
	h := ownBulkhead(b)
	slots := make(chan struct{}, bench.Concurrency)
	sem := semaphore.NewWeighted(bench.Concurrency)
	compare(b,
		loop("ours", func() error {
			if err := h.Acquire(ctx); err != nil {
				return err
			}
			h.Release()
			return nil
		}),
		loop("channel", func() error {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			<-slots
			return nil
		}),
		loop("semaphore", func() error {
			if err := sem.Acquire(ctx, 1); err != nil {
				return err
			}
			sem.Release(1)
			return nil
		}),
	)
}
