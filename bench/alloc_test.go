package bench_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
)

// gate is what a call may allocate at most.
type gate struct {
	name          string
	allocs, bytes uint64
	call          func() error
}

func check(t *testing.T, gates []gate) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, g := range gates {
		t.Run(g.name, func(t *testing.T) {
			if err := g.call(); err != nil {
				t.Fatal(err)
			}
			allocs, bytes := perCall(func() { sink = g.call() })
			if allocs > g.allocs || bytes > g.bytes {
				t.Errorf("%d allocations and %d B a call, want at most %d and %d B", allocs, bytes, g.allocs, g.bytes)
			}
		})
	}
}

// sink keeps results, so that they are made.
var sink error

// perCall returns how much f allocates. It is the least of a few: what the wheel
// makes once, when it begins to tick, or the runtime with a new thread, may fall
// into any of them.
func perCall(f func()) (allocs, bytes uint64) {
	allocs, bytes = perCallOnce(f)
	for range 4 {
		a, b := perCallOnce(f)
		allocs, bytes = min(allocs, a), min(bytes, b)
	}
	return allocs, bytes
}

// perCallOnce rounds down: what the wheel's ticks and the runtime allocate
// meanwhile is far less than once a call. It is [testing.AllocsPerRun] with bytes.
func perCallOnce(f func()) (allocs, bytes uint64) {
	const calls = 1000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range 100 { // what is made once: the wheel's slots, goroutines for reuse
		f()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / calls, (after.TotalAlloc - before.TotalAlloc) / calls
}

func TestAllocGateSeesAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	var kept *[48]byte
	if allocs, bytes := perCall(func() { kept = new([48]byte) }); allocs != 1 || bytes != 48 {
		t.Errorf("%d allocations and %d B, want 1 and 48", allocs, bytes)
	}
	runtime.KeepAlive(kept)
}

func TestAllocSync(t *testing.T) {
	ctx := t.Context() // cancellable, as a server's are
	execute := func(fn func(context.Context) (int, error), layers ...bench.Layer) func() error {
		p := pipelineOf(t, layers...)
		return func() error {
			_, err := p.Execute(ctx, fn)
			return err
		}
	}
	check(t, []gate{
		{"no layers", 0, 0, execute(bench.Op)},
		{"timeout", 1, 64, execute(bench.Op, bench.Timeout)},
		{"timeout, function polls Err", 1, 64, execute(bench.UsesErr, bench.Timeout)},
		{"retry", 1, 64, execute(bench.Op, bench.Retry)},
		{"limiter", 0, 0, execute(bench.Op, bench.RateLimit)},
		{"bulkhead", 0, 0, execute(bench.Op, bench.Bulkhead)},
		{"breaker", 1, 96, execute(bench.Op, bench.CircuitBreaker)}, // the permit, until it is recorded
		{"retry, limiter, timeout, bulkhead", 1, 64, execute(bench.Op, bench.Full...)},
		{"the same and a breaker", 3, 168, execute(bench.Op, append([]bench.Layer{bench.CircuitBreaker}, bench.Full...)...)},
	})
}

// A function that captures variables stays on its caller's stack: Execute keeps
// it nowhere.
func TestAllocCapturingFunction(t *testing.T) {
	p := pipelineOf(t, bench.Full...)
	ctx := t.Context()
	n := 0
	check(t, []gate{{"full stack", 1, 64, func() error {
		_, err := p.Execute(ctx, func(context.Context) (int, error) {
			n++
			return n, nil
		})
		return err
	}}})
}

func TestAllocHandles(t *testing.T) {
	slots, err := bulkhead.New("bench", bulkhead.Config{MaxConcurrent: 1}, clock.System())
	if err != nil {
		t.Fatal(err)
	}
	c := ratelimit.Default()
	c.Apply(ratelimit.PerSecond(bench.Rate))
	limiter, err := ratelimit.New("bench", c, clock.System())
	if err != nil {
		t.Fatal(err)
	}
	breaker, err := circuitbreaker.New("bench", circuitbreaker.Default(), clock.System())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	check(t, []gate{
		{"bulkhead", 0, 0, func() error {
			defer slots.Release()
			return slots.Acquire(ctx)
		}},
		{"limiter", 0, 0, func() error { return limiter.Acquire(ctx) }},
		{"breaker", 0, 0, func() error {
			permit, err := breaker.Allow()
			permit.Record(err)
			return err
		}},
	})
}

func TestAllocRefused(t *testing.T) {
	ctx := t.Context()
	refused := func(p *pipeline.Pipeline[int]) func() error {
		return func() error {
			if _, err := p.Execute(ctx, bench.Op); err == nil {
				t.Error("not refused")
			}
			return nil
		}
	}
	check(t, []gate{
		{"full", 0, 0, refused(bench.FullBulkhead(t))},
		{"limited", 1, 48, refused(bench.UsedUpLimiter(t))},
		{"open", 1, 48, refused(bench.OpenBreaker(t))},
	})
}

func TestAllocAsync(t *testing.T) {
	p := pipelineOf(t, bench.Timeout)
	ctx := context.Background() // to listen to a cancellable one costs extra
	check(t, []gate{
		{"ExecuteAsync and Get", 2, 224, func() error {
			_, err := p.ExecuteAsync(ctx, bench.Op).Get(ctx)
			return err
		}},
		{"pending stage with its promise", 2, 256, bench.NewStage(p).Call},
	})
}
