package peers_test

import (
	"context"
	"testing"

	failsafe "github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/timeout"

	"resilience4cata.dev/go/bench"
)

func failsafeStack() []failsafe.Policy[int] {
	return []failsafe.Policy[int]{
		failsafeRetry(), failsafeLimiter(), timeout.New[int](bench.Limit), bulkhead.New[int](bench.Concurrency),
	}
}

// Retry, limiter, timeout and bulkhead, in this order on both sides.
func BenchmarkFullStack(b *testing.B) {
	ctx := context.Background()
	compare(b,
		execute(ctx, bench.Op, bench.Full...),
		loop("failsafe-go", failsafeCall(ctx, bench.Op, failsafeStack()...)),
	)
}

func BenchmarkFullStackParallel(b *testing.B) {
	ctx := context.Background()
	compare(b,
		executeParallel(ctx, bench.Op, bench.Full...),
		loopParallel("failsafe-go", failsafeCall(ctx, bench.Op, failsafeStack()...)),
	)
}

// Nothing to protect the call with: what the pipeline itself adds.
func BenchmarkNoLayers(b *testing.B) {
	ctx := context.Background()
	fn := bench.Op
	compare(b,
		execute(ctx, fn),
		side{"bare", func(b *testing.B) {
			b.Helper()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fn(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}},
	)
}
