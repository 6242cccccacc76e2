package bench_test

import (
	"context"
	"testing"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
)

// The benchmarks have the names that those in peers/ have. Those whose names end
// in Parallel are for -cpu 1,2.

func BenchmarkTimeout(b *testing.B) {
	p := pipelineOf(b, bench.Timeout)
	bench.Execute(b, p, context.Background(), bench.Op)
}

func BenchmarkTimeoutSharedParentParallel(b *testing.B) {
	p := pipelineOf(b, bench.Timeout)
	bench.ExecuteParallel(b, p, b.Context(), bench.Op)
}

func BenchmarkTimeoutErr(b *testing.B) {
	p := pipelineOf(b, bench.Timeout)
	bench.Execute(b, p, context.Background(), bench.UsesErr)
}

func BenchmarkTimeoutDone(b *testing.B) {
	p := pipelineOf(b, bench.Timeout)
	bench.Execute(b, p, context.Background(), bench.UsesDone)
}

func BenchmarkTimeoutDoneCancellableParent(b *testing.B) {
	p := pipelineOf(b, bench.Timeout)
	bench.Execute(b, p, b.Context(), bench.UsesDone)
}

func BenchmarkTimeoutFreshParent(b *testing.B) {
	bench.ExecuteFreshParent(b, pipelineOf(b, bench.Timeout), bench.Op)
}

func BenchmarkTimeoutDoneFreshParent(b *testing.B) {
	bench.ExecuteFreshParent(b, pipelineOf(b, bench.Timeout), bench.UsesDone)
}

func BenchmarkTimeoutChild(b *testing.B) {
	p := pipelineOf(b, bench.Timeout)
	bench.Execute(b, p, context.Background(), bench.DerivesChild)
}

func BenchmarkRetry(b *testing.B) {
	bench.Execute(b, pipelineOf(b, bench.Retry), context.Background(), bench.Op)
}

func BenchmarkBulkhead(b *testing.B) {
	bench.Execute(b, pipelineOf(b, bench.Bulkhead), context.Background(), bench.Op)
}

func BenchmarkBulkheadHandle(b *testing.B) {
	h, err := bulkhead.New("bench", bulkhead.Config{MaxConcurrent: bench.Concurrency}, clock.System())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !h.TryAcquire() {
			b.Fatal("full")
		}
		h.Release()
	}
}

func BenchmarkRateLimit(b *testing.B) {
	bench.Execute(b, pipelineOf(b, bench.RateLimit), context.Background(), bench.Op)
}

func BenchmarkRateLimitHandle(b *testing.B) {
	c := ratelimit.Default()
	c.Apply(ratelimit.PerSecond(bench.Rate))
	h, err := ratelimit.New("bench", c, clock.System())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !h.TryAcquire() {
			b.Fatal("limited")
		}
	}
}

func BenchmarkCircuitBreaker(b *testing.B) {
	bench.Execute(b, pipelineOf(b, bench.CircuitBreaker), context.Background(), bench.Op)
}

func BenchmarkCircuitBreakerHandle(b *testing.B) {
	h, err := circuitbreaker.New("bench", circuitbreaker.Default(), clock.System())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		permit, err := h.Allow()
		if err != nil {
			b.Fatal(err)
		}
		permit.Record(nil)
	}
}

func BenchmarkFullStack(b *testing.B) {
	bench.Execute(b, pipelineOf(b, bench.Full...), context.Background(), bench.Op)
}

func BenchmarkFullStackParallel(b *testing.B) {
	bench.ExecuteParallel(b, pipelineOf(b, bench.Full...), context.Background(), bench.Op)
}

func BenchmarkRefusedFull(b *testing.B)    { bench.Refused(b, bench.FullBulkhead(b)) }
func BenchmarkRefusedLimited(b *testing.B) { bench.Refused(b, bench.UsedUpLimiter(b)) }
func BenchmarkRefusedOpen(b *testing.B)    { bench.Refused(b, bench.OpenBreaker(b)) }

func BenchmarkAsync(b *testing.B) { bench.Async(b, pipelineOf(b, bench.Timeout), bench.Op) }

func BenchmarkAsyncParallel(b *testing.B) {
	bench.AsyncParallel(b, pipelineOf(b, bench.Timeout), bench.Op)
}

func BenchmarkPendingStage(b *testing.B) { bench.Stages(b, pipelineOf(b, bench.Timeout)) }

func BenchmarkNoLayers(b *testing.B) {
	bench.Execute(b, pipelineOf(b), context.Background(), bench.Op)
}

func pipelineOf(tb testing.TB, layers ...bench.Layer) *pipeline.Pipeline[int] {
	tb.Helper()
	p, _ := bench.Build(tb, layers...)
	return p
}
