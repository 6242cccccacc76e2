package peers_test

import (
	"context"
	"testing"

	"github.com/failsafe-go/failsafe-go/timeout"

	"resilience4cata.dev/go/bench"
)

// stdTimeout is the idiom.
func stdTimeout(parent context.Context, fn func(context.Context) (int, error)) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(parent, bench.Limit)
		defer cancel()
		_, err := fn(ctx)
		return err
	}
}

func failsafeTimeout(parent context.Context, fn func(context.Context) (int, error)) func() error {
	return failsafeCall(parent, fn, timeout.New[int](bench.Limit))
}

func compareTimeout(b *testing.B, parent context.Context, fn func(context.Context) (int, error)) { //nolint:revive // a testing.B comes first
	b.Helper()
	compare(b,
		execute(parent, fn, bench.Timeout),
		loop("context.WithTimeout", stdTimeout(parent, fn)),
		loop("failsafe-go", failsafeTimeout(parent, fn)),
	)
}

func compareTimeoutParallel(b *testing.B, parent context.Context, fn func(context.Context) (int, error)) { //nolint:revive // a testing.B comes first
	b.Helper()
	compare(b,
		executeParallel(parent, fn, bench.Timeout),
		loopParallel("context.WithTimeout", stdTimeout(parent, fn)),
		loopParallel("failsafe-go", failsafeTimeout(parent, fn)),
	)
}

func BenchmarkTimeout(b *testing.B)      { compareTimeout(b, context.Background(), bench.Op) }
func BenchmarkTimeoutErr(b *testing.B)   { compareTimeout(b, context.Background(), bench.UsesErr) }
func BenchmarkTimeoutDone(b *testing.B)  { compareTimeout(b, context.Background(), bench.UsesDone) }
func BenchmarkTimeoutChild(b *testing.B) { compareTimeout(b, context.Background(), bench.DerivesChild) }

func BenchmarkTimeoutParallel(b *testing.B) {
	compareTimeoutParallel(b, context.Background(), bench.Op)
}

// One parent that all calls share, and that can be cancelled: a service's, a
// worker's.
func BenchmarkTimeoutSharedParentParallel(b *testing.B) {
	compareTimeoutParallel(b, b.Context(), bench.Op)
}

func BenchmarkTimeoutDoneCancellableParent(b *testing.B) {
	compareTimeout(b, b.Context(), bench.UsesDone)
}

// A parent of its own for each call, which net/http makes for each request. To
// make it is part of the operation on both sides.
func compareFreshParent(b *testing.B, fn func(context.Context) (int, error)) {
	b.Helper()
	compare(b,
		ours(func(b *testing.B) { b.Helper(); bench.ExecuteFreshParent(b, pipelineOf(b, bench.Timeout), fn) }),
		loop("context.WithTimeout", func() error {
			parent, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctx, cancelTimeout := context.WithTimeout(parent, bench.Limit)
			defer cancelTimeout()
			_, err := fn(ctx)
			return err
		}),
	)
}

func BenchmarkTimeoutFreshParent(b *testing.B)     { compareFreshParent(b, bench.Op) }
func BenchmarkTimeoutDoneFreshParent(b *testing.B) { compareFreshParent(b, bench.UsesDone) }
