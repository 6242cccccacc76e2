// Package bench measures what a call through this library costs. It holds what
// all measurements share: the functions that are protected, the pipelines that
// protect them, and the loops that call them. It is not for programs.
//
//	what                                                   where
//	allocations and bytes of a call, checked by go test    alloc_test.go
//	benchmarks of this library alone                       bench_test.go
//	the same beside other libraries, as a table of ratios  peers/ (make bench)
//	a million calls, precision, cost at rest               scale/ (make bench)
//	the figures of the last full run                       RESULTS.md
//
// Nanoseconds of two runs do not compare: machines drift by a factor of two
// within minutes. Ratios out of one run do, and allocations and bytes always.
//
// # Guarantees
//
//	what                                            proved by
//	a sync call allocates its context, 64 B, or     TestAllocSync
//	nothing where it needs none
//	a full bulkhead refuses without an allocation,  TestAllocRefused
//	others with one of 48 B
//	an async call is two allocations, 224 B; a      TestAllocAsync
//	stage with its promise two, 256 B
package bench

import (
	"context"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// The settings of all pipelines, and of the peers': nothing is ever refused,
// retried or timed out because of them.
const (
	Limit       = 30 * time.Second
	Attempts    = 3
	Rate        = 1_000_000_000 // permits a second
	Concurrency = 1 << 20
)

// Op is a function that returns at once.
//
//go:noinline
func Op(context.Context) (int, error) { return 1, nil }

// UsesDone is a function that asks for the channel which tells it to stop, as
// everything does that waits for a network.
//
//go:noinline
func UsesDone(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	default:
		return 1, nil
	}
}

// UsesErr is a function that polls whether it is to stop.
//
//go:noinline
func UsesErr(ctx context.Context) (int, error) { return 1, ctx.Err() }

// DerivesChild is a function that derives a context of its own.
//
//go:noinline
func DerivesChild(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return 1, ctx.Err()
}

// Layer adds a layer to a pipeline.
type Layer func(*pipeline.Builder[int]) *pipeline.Builder[int]

// Retry adds a retry of [Attempts].
func Retry(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.Retry(retry.MaxAttempts(Attempts))
}

// RateLimit adds a limiter of [Rate].
func RateLimit(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.RateLimit(ratelimit.PerSecond(Rate))
}

// Timeout adds a timeout of [Limit].
func Timeout(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(Limit) }

// Bulkhead adds a bulkhead of [Concurrency].
func Bulkhead(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.Bulkhead(bulkhead.MaxConcurrent(Concurrency))
}

// CircuitBreaker adds a breaker with its default settings.
func CircuitBreaker(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.CircuitBreaker() }

// Full are the four layers of the full stack.
var Full = []Layer{Retry, RateLimit, Timeout, Bulkhead}

// Build makes a pipeline with the given layers in a registry of its own, which
// is closed when the test ends.
func Build(tb testing.TB, layers ...Layer) (*pipeline.Pipeline[int], *registry.Registry) {
	tb.Helper()
	reg, err := registry.New()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := reg.Close(); err != nil {
			tb.Error(err)
		}
	})
	b := pipeline.New[int](reg, "bench")
	for _, add := range layers {
		b = add(b)
	}
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p, reg
}

// FullBulkhead returns a pipeline whose bulkhead has no free slot.
func FullBulkhead(tb testing.TB) *pipeline.Pipeline[int] {
	tb.Helper()
	p, reg := Build(tb, func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Bulkhead(bulkhead.MaxConcurrent(1))
	})
	h, _ := reg.Bulkhead("bench")
	if !h.TryAcquire() {
		tb.Fatal("the only slot is not free")
	}
	tb.Cleanup(h.Release)
	return p
}

// UsedUpLimiter returns a pipeline whose limiter has no permit for an hour.
func UsedUpLimiter(tb testing.TB) *pipeline.Pipeline[int] {
	tb.Helper()
	p, reg := Build(tb, func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.RateLimit(ratelimit.Per(1, time.Hour))
	})
	if h, _ := reg.RateLimiter("bench"); !h.TryAcquire() {
		tb.Fatal("the only permit is not there")
	}
	return p
}

// OpenBreaker returns a pipeline whose circuit breaker is open for an hour.
func OpenBreaker(tb testing.TB) *pipeline.Pipeline[int] {
	tb.Helper()
	p, reg := Build(tb, func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.CircuitBreaker(circuitbreaker.OpenFor(time.Hour))
	})
	h, _ := reg.CircuitBreaker("bench")
	h.ForceOpen()
	return p
}
