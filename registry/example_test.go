package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A configuration comes from a file as a rule; see config.Load.
func ExampleNew() {
	cfg := must(config.Parse("resilience.yaml", []byte(`
instances:
  reports: {timeout: {value: 2s}, bulkhead: {maxConcurrent: 10}}
`)))
	reg := must(registry.New(
		registry.WithConfig(cfg),
		registry.WithClock(clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))),
		registry.WithListener(func(_ context.Context, e policy.Event) { fmt.Println(e.Policy(), e.ID()) }),
	))
	reports := must(pipeline.Configured[string](reg, "reports").Build())
	fmt.Println(reports.Execute(context.Background(), func(context.Context) (string, error) { return "done", nil }))
	// Output:
	// done <nil>
}

func ExampleRegistry_Snapshot() {
	reg := must(registry.New(registry.WithClock(clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)))))
	reports := must(pipeline.New[int](reg, "reports").Timeout(2 * time.Second).Bulkhead(bulkhead.MaxConcurrent(10)).Build())
	_ = reports.Run(context.Background(), func(context.Context) error {
		inside := reg.Snapshot()
		fmt.Println(inside.Bulkheads[0].InUse, "of", inside.Bulkheads[0].Limit)
		return nil
	})
	text := must(json.Marshal(reg.Snapshot().Pipelines))
	fmt.Println(string(text))
	// Output:
	// 1 of 10
	// [{"id":"reports","order":["timeout","bulkhead"],"bound":"2s","calls":{"started":1,"succeeded":1,"failed":0,"timedOut":0,"cancelled":0,"rejected":0,"panicked":0,"inFlight":0},"fallback":{"applied":0,"failed":0},"abandoned":{"running":0,"lateSuccess":0,"lateFailure":0,"latePanic":0}}]
}

func ExampleRegistry_Reload() {
	reg := must(registry.New(registry.WithConfig(must(config.Parse("resilience.yaml", []byte(`instances: {reports: {bulkhead: {maxConcurrent: 10}}}`))))))
	must(pipeline.Configured[int](reg, "reports").Build())
	if err := reg.Reload(must(config.Parse("resilience.yaml", []byte(`instances: {reports: {bulkhead: {maxConcurrent: 5}}}`)))); err != nil {
		log.Fatal(err)
	}
	slots, _ := reg.Bulkhead("reports")
	fmt.Println(slots.Snapshot().Limit)

	err := reg.Reload(must(config.Parse("resilience.yaml", []byte(`instances: {reports: {bulkhead: {queue: 4}}}`))))
	fmt.Println(err)
	fmt.Println(slots.Snapshot().Limit)
	// Output:
	// 5
	// resilience.yaml:1:23: instances."reports".bulkhead.maxConcurrent: must be set (write bulkhead: {maxConcurrent: 10}, or give it in code) [R4C-ATR-003]
	// 5
}

func ExampleRegistry_Explain() {
	reg := must(registry.New(registry.WithConfig(must(config.Parse("resilience.yaml", []byte(`instances: {reports: {timeout: {value: 3s}}}`))))))
	must(pipeline.New[int](reg, "reports").Timeout(2 * time.Second).Build())
	for _, s := range reg.Explain("reports") {
		fmt.Println(s.Path, "=", s.Value, "by", s.Origin)
	}
	// Output:
	// instances."reports".timeout.value = 3s by resilience.yaml:1
	// instances."reports".timeout.enabled = true by default
}

func ExampleRegistry_Check() {
	reg := must(registry.New())
	must(pipeline.New[int](reg, "reports").
		Timeout(2*time.Second).
		Bulkhead(bulkhead.MaxConcurrent(10), bulkhead.MaxWait(5*time.Second)).
		Build())
	for _, f := range reg.Check() {
		fmt.Println(f.Code, f.ID, f.Severity)
		fmt.Println(f.Text)
	}
	// Output:
	// R4C-CHK-002 reports warning
	// bulkhead wait 5s can never be served inside timeout 2s, which the wait counts against: give a wait below the timeout, or a longer timeout
}

// Handles look up what pipelines have built, to change it while the program runs.
func ExampleRegistry_RateLimiter() {
	reg := must(registry.New())
	must(pipeline.New[int](reg, "reports").RateLimit(ratelimit.PerSecond(50), ratelimit.Name("backend")).Build())
	if limiter, ok := reg.RateLimiter("backend"); ok {
		fmt.Println(limiter.SetRate(20, time.Second, 20))
	}
	_, ok := reg.RateLimiter("reports")
	fmt.Println(ok)
	// Output:
	// <nil>
	// false
}

func ExampleRegistry_Bulkhead() {
	reg := must(registry.New())
	must(pipeline.New[int](reg, "reports").Bulkhead(bulkhead.MaxConcurrent(10)).Build())
	if slots, ok := reg.Bulkhead("reports"); ok && slots.TryAcquire() {
		fmt.Println(slots.Snapshot().Available)
		slots.Release()
	}
	// Output:
	// 9
}

func ExampleRegistry_CircuitBreaker() {
	reg := must(registry.New())
	must(pipeline.New[int](reg, "reports").CircuitBreaker().Build())
	if breaker, ok := reg.CircuitBreaker("reports"); ok {
		breaker.ForceOpen() // during maintenance
		fmt.Println(breaker.State())
	}
	// Output:
	// open
}

func ExampleRegistry_Retry() {
	reg := must(registry.New())
	must(pipeline.New[int](reg, "reports").Retry(retry.MaxAttempts(4)).Build())
	if r, ok := reg.Retry("reports"); ok {
		fmt.Println(r.Config().MaxAttempts)
	}
	// Output:
	// 4
}

// An orderly end: let calls finish for a while, then end what still waits.
func ExampleRegistry_Drain() {
	reg := must(registry.New())
	reports := must(pipeline.New[int](reg, "reports").Timeout(time.Second).Build())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(reg.Drain(ctx), reg.Close())
	_, err := reports.Execute(context.Background(), func(context.Context) (int, error) { return 1, nil })
	fmt.Println(errors.Is(err, registry.ErrClosed))
	// Output:
	// <nil> <nil>
	// true
}

// All listeners hear all events, on the goroutine on which they happen.
func ExampleWithListener() {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	reg := must(registry.New(registry.WithClock(clk), registry.WithListener(func(_ context.Context, e policy.Event) {
		switch e := e.(type) {
		case retry.Retrying:
			fmt.Println(e.ID(), "attempt", e.Attempt, "failed:", e.Err, "- next in", e.Delay)
		case retry.GaveUp:
			fmt.Println(e.ID(), "gave up:", e.Reason)
		}
	})))
	reports := must(pipeline.New[int](reg, "reports").Retry(retry.MaxAttempts(2), retry.Constant(time.Second)).Build())
	_ = reports.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	// Output:
	// reports attempt 1 failed: down - next in 1s
	// reports gave up: retry: attempts exhausted
}

// Events as structured records; here refusals and retries, too, which are at the level Debug.
func ExampleWithLogger() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	reg := must(registry.New(registry.WithClock(clk), registry.WithLogger(logger)))
	reports := must(pipeline.New[int](reg, "reports").Timeout(time.Second).RateLimit(ratelimit.PerSecond(1)).Build())
	_ = reports.Run(context.Background(), func(ctx context.Context) error { return clk.Sleep(ctx, time.Minute) })
	_ = reports.Run(context.Background(), func(context.Context) error { return nil })
	_ = reports.Run(context.Background(), func(context.Context) error { return nil })
	// Output:
	// level=WARN msg="timeout exceeded" policy=timeout id=reports limit=1s workDone=true
	// level=DEBUG msg="ratelimit limited" policy=ratelimit id=reports
}

// Close ends what waits, from anywhere; snapshots still work.
func ExampleRegistry_Close() {
	reg := must(registry.New())
	reports := must(pipeline.New[int](reg, "reports").Timeout(time.Hour).Build())
	never := pipeline.NewPromise[int]()
	future := reports.ExecuteFuture(context.Background(), func(context.Context) *pipeline.Future[int] { return never.Future() })
	_ = reg.Close()
	_, err := future.Get(context.Background())
	fmt.Println(errors.Is(err, registry.ErrClosed), reg.Snapshot().Closed)
	// Output:
	// true true
}

// An id that was misspelled leads to the one that was meant.
func ExampleRegistry_Nearest() {
	reg := must(registry.New())
	must(pipeline.New[int](reg, "reports").Timeout(time.Second).Build())
	fmt.Println(reg.Nearest("report"))
	// Output:
	// reports
}
