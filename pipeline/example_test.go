package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// Report is what the example's backend returns.
type Report struct{ ID string }

var backend = struct {
	Build func(ctx context.Context, id string) (Report, error)
}{func(_ context.Context, id string) (Report, error) { return Report{id}, nil }}

// manual returns a registry on a manual clock: Sleep and waits move it, so the
// examples take no time and always print the same.
func manual() (*registry.Registry, *clock.Manual) {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		panic(err)
	}
	return reg, clk
}

func Example() {
	ctx := context.Background()
	reg, err := registry.New()
	if err != nil {
		panic(err)
	}
	reports, err := pipeline.New[Report](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2)).
		RateLimit(ratelimit.PerSecond(50)).
		Timeout(2 * time.Second).
		Bulkhead(bulkhead.MaxConcurrent(10)).
		Build()
	if err != nil {
		panic(err)
	}

	report, err := reports.Execute(ctx, func(ctx context.Context) (Report, error) {
		return backend.Build(ctx, "r-1")
	})
	fmt.Println(report.ID, err)
	fmt.Println(reports)
	// Output:
	// r-1 <nil>
	// reports: retry(3) > ratelimit(50/1s) > timeout(2s) > bulkhead(10)
}

func ExamplePipeline_Execute() {
	reg, clk := manual()
	p := pipeline.Must(pipeline.New[string](reg, "reports").Timeout(2 * time.Second).Build())

	_, err := p.Execute(context.Background(), func(ctx context.Context) (string, error) {
		if err := clk.Sleep(ctx, 5*time.Second); err != nil { // a slow dependency
			return "", fmt.Errorf("interrupted: %w", err)
		}
		return "report", nil
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, timeout.ErrExceeded), policy.NotStarted(err))
	// Output:
	// timeout "reports": exceeded 2s: interrupted: context deadline exceeded
	// true false
}

func ExamplePipeline_Run() {
	reg, _ := manual()
	p := pipeline.Must(pipeline.New[struct{}](reg, "cleanup").Timeout(time.Second).Build())
	fmt.Println(p.Run(context.Background(), func(context.Context) error { return nil }))
	// Output: <nil>
}

// The future fails at the deadline; what the work did stays visible.
func ExamplePipeline_ExecuteAsync() {
	ctx := context.Background()
	reg, clk := manual()
	p := pipeline.Must(pipeline.New[string](reg, "reports").Timeout(2 * time.Second).Build())

	gate, entered := make(chan struct{}), make(chan struct{})
	f := p.ExecuteAsync(ctx, func(context.Context) (string, error) {
		close(entered)
		<-gate // ignores its context
		return "late report", nil
	})
	<-entered
	clk.Advance(2 * time.Second)
	_, err := f.Get(ctx)
	_, done, _ := f.Work().Poll()
	fmt.Println(err, "- work done:", done)

	close(gate)
	<-f.Work().Done()
	v, done, err := f.Work().Poll()
	fmt.Println(v, "- work done:", done, err)
	// Output:
	// timeout "reports": exceeded 2s - work done: false
	// late report - work done: true <nil>
}

// A stage is completed by somebody else: here the caller plays the broker.
func ExamplePipeline_ExecuteFuture() {
	ctx := context.Background()
	reg, clk := manual()
	p := pipeline.Must(pipeline.New[string](reg, "publish").Timeout(2 * time.Second).Build())

	ack := pipeline.NewPromise[string]()
	ack.OnCancel(func() { fmt.Println("nobody waits any more") })
	f := p.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[string] { return ack.Future() })
	clk.Advance(2 * time.Second)
	_, err := f.Get(ctx)
	fmt.Println(err)
	fmt.Println(ack.Complete("too late", nil))
	// Output:
	// nobody waits any more
	// timeout "publish": exceeded 2s
	// false
}

func ExampleBuilder_Fallback() {
	reg, _ := manual()
	down := errors.New("down")
	p := pipeline.Must(pipeline.New[string](reg, "prices").
		Fallback(func(context.Context, error) (string, error) { return "yesterday's", nil }, fallback.On(down)).
		CircuitBreaker(circuitbreaker.OpenFor(10 * time.Second)).
		Build())
	fmt.Println(p.Execute(context.Background(), func(context.Context) (string, error) { return "", down }))
	// Output: yesterday's <nil>
}

// RetryIf sees values as well as errors.
func ExampleBuilder_RetryIf() {
	reg, clk := manual()
	p := pipeline.Must(pipeline.New[int](reg, "poll").
		Retry(retry.MaxAttempts(5), retry.Constant(time.Second)).
		RetryIf(func(v int, err error) bool { return err != nil || v < 3 }).
		Build())
	start := clk.Now()
	v, err := p.Execute(context.Background(), func(ctx context.Context) (int, error) {
		return retry.Attempt(ctx), nil
	})
	fmt.Println(v, err, clk.Now().Sub(start))
	// Output: 3 <nil> 2s
}

// Values that no caller gets are handed to OnDiscard, to be closed.
func ExampleBuilder_OnDiscard() {
	reg, clk := manual()
	p := pipeline.Must(pipeline.New[string](reg, "connections").
		Timeout(time.Second).
		OnDiscard(func(conn string) { fmt.Println("close", conn) }).
		Build())
	_, err := p.Execute(context.Background(), func(context.Context) (string, error) {
		clk.Advance(2 * time.Second) // ignores its context
		return "conn-1", nil
	})
	fmt.Println(err)
	// Output:
	// close conn-1
	// timeout "connections": exceeded 1s
}

func ExampleWrap() {
	reg, _ := manual()
	p := pipeline.Must(pipeline.New[int](reg, "double").Timeout(time.Second).Build())
	double := pipeline.Wrap(p, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	fmt.Println(double(context.Background(), 21))
	// Output: 42 <nil>
}

func ExampleWrapAsync() {
	ctx := context.Background()
	reg, _ := manual()
	p := pipeline.Must(pipeline.New[int](reg, "double").Timeout(time.Second).Build())
	double := pipeline.WrapAsync(p, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	fmt.Println(double(ctx, 21).Get(ctx))
	// Output: 42 <nil>
}

// Pipelines of several result types share the layers and the counters of one.
func ExampleAs() {
	reg, _ := manual()
	ints := pipeline.Must(pipeline.New[int](reg, "db").Bulkhead(bulkhead.MaxConcurrent(10)).Build())
	texts := pipeline.As[string](ints)
	fmt.Println(texts.Execute(context.Background(), func(context.Context) (string, error) { return "row", nil }))
	fmt.Println(reg.Snapshot().Pipelines[0].Calls.Succeeded)
	// Output:
	// row <nil>
	// 1
}

func ExamplePipeline_Bound() {
	reg, _ := manual()
	p := pipeline.Must(pipeline.New[int](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2)).
		Timeout(2 * time.Second).
		Build())
	fmt.Println(p.Bound())
	// Output: 6.3s true
}

func ExampleFuture_View() {
	ctx := context.Background()
	p := pipeline.NewPromise[string]()
	shared := p.Future()
	one, other := shared.View(), shared.View()
	fmt.Println(one.Cancel()) // one caller gives up; the work and the other do not
	p.Complete("result", nil)
	fmt.Println(other.Get(ctx))
	// Output:
	// true
	// result <nil>
}

func ExampleFuture_OnComplete() {
	p := pipeline.NewPromise[string]()
	done := make(chan struct{})
	p.Future().OnComplete(func(v string, err error) {
		fmt.Println(v, err)
		close(done)
	})
	p.Complete("result", nil)
	<-done
	// Output: result <nil>
}

func ExampleConfigured() {
	reg, _ := manual()
	_, err := pipeline.Configured[int](reg, "reports").Build()
	fmt.Println(err != nil) // no configuration names "reports"
	// Output: true
}

func ExampleNewPromise() {
	p := pipeline.NewPromise[int]()
	fmt.Println(p.Complete(1, nil), p.Complete(2, nil))
	v, done, err := p.Future().Poll()
	fmt.Println(v, done, err)
	// Output:
	// true false
	// 1 true <nil>
}
