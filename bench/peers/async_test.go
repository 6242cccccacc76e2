package peers_test

import (
	"context"
	"testing"
	"time"

	failsafe "github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/timeout"

	"resilience4cata.dev/go/bench"
)

// plainAsync is what people write by hand: nothing tells the function to stop.
func plainAsync() error {
	type result struct {
		v   int
		err error
	}
	ctx := context.Background()
	done := make(chan result, 1)
	go func() {
		v, err := bench.Op(ctx)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.err
	case <-time.After(bench.Limit):
		return context.DeadlineExceeded
	}
}

func failsafeAsync() func() error {
	ex := failsafe.With(timeout.New[int](bench.Limit))
	run := func(e failsafe.Execution[int]) (int, error) { return bench.Op(e.Context()) }
	return func() error {
		_, err := ex.GetAsyncWithExecution(run).Get()
		return err
	}
}

// Start a function with a timeout and wait for its result.
func BenchmarkAsync(b *testing.B) {
	compare(b,
		ours(func(b *testing.B) { b.Helper(); bench.Async(b, pipelineOf(b, bench.Timeout), bench.Op) }),
		loop("plain", plainAsync),
		loop("failsafe-go", failsafeAsync()),
	)
}

func BenchmarkAsyncParallel(b *testing.B) {
	compare(b,
		ours(func(b *testing.B) { b.Helper(); bench.AsyncParallel(b, pipelineOf(b, bench.Timeout), bench.Op) }),
		loopParallel("plain", plainAsync),
		loopParallel("failsafe-go", failsafeAsync()),
	)
}

// Work that somebody else completes, with a timeout and without a goroutine. The
// peer has nothing like it: its async call is what one would use.
func BenchmarkPendingStage(b *testing.B) {
	compare(b,
		ours(func(b *testing.B) { b.Helper(); bench.Stages(b, pipelineOf(b, bench.Timeout)) }),
		loop("failsafe-go", failsafeAsync()),
	)
}
