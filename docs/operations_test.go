package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
	"resilience4cata.dev/go/registry/health"
)

func Example_healthEndpoint() {
	reg, _ := manual()
	pipeline.Must(pipeline.New[string](reg, "reports").CircuitBreaker().Build())
	mux := http.NewServeMux()
	mux.Handle("/healthz", health.Handler(reg))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz?id=reports", http.NoBody))
	fmt.Println(w.Code, w.Body.String()[:30])
	// Output: 200 {"status":"pass","reasons":[],
}

func Example_logs() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	reg, clk := manual(registry.WithLogger(logger))
	reports := pipeline.Must(pipeline.New[string](reg, "reports").
		CircuitBreaker(circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(1)).
		Timeout(2 * time.Second).
		Build())

	_ = reports.Run(context.Background(), func(ctx context.Context) error { return clk.Sleep(ctx, 5*time.Second) })
	// Output:
	// level=WARN msg="circuitbreaker state changed" policy=circuitbreaker id=reports from=closed to=open
	// level=WARN msg="timeout exceeded" policy=timeout id=reports limit=2s workDone=true
}

func Example_events() {
	metrics := map[string]int{}
	reg, clk := manual(registry.WithListener(func(_ context.Context, e policy.Event) {
		switch e := e.(type) {
		case circuitbreaker.StateChanged:
			metrics[e.ID()+" "+string(e.To)]++
		case pipeline.LateSuccess, pipeline.LateFailure, pipeline.LatePanic:
			metrics[e.ID()+" late"]++
		}
	}))
	reports := pipeline.Must(pipeline.New[string](reg, "reports").Timeout(time.Second).Build())
	_ = reports.Run(context.Background(), func(context.Context) error { clk.Advance(2 * time.Second); return nil })
	fmt.Println(metrics)
	// Output: map[reports late:1]
}

func Example_reload() {
	before := must(config.Parse("resilience.yaml", []byte(`instances: {reports: {timeout: {value: 2s}, bulkhead: {maxConcurrent: 10}}}`)))
	reg, _ := manual(registry.WithConfig(before))
	pipeline.Must(pipeline.Configured[string](reg, "reports").Build())

	after, err := config.Parse("resilience.yaml", []byte(`instances: {reports: {timeout: {value: 1s}, bulkhead: {maxConcurrent: 5}}}`))
	if err == nil {
		err = reg.Reload(after) // all of it, or nothing
	}
	fmt.Println(err)
	for _, s := range reg.Explain("reports") {
		if s.Origin != "default" {
			fmt.Println(s.Path, "=", s.Value, "by", s.Origin)
		}
	}
	// Output:
	// <nil>
	// instances."reports".timeout.value = 1s by resilience.yaml:1
	// instances."reports".bulkhead.maxConcurrent = 5 by resilience.yaml:1
}

func Example_shutdown() {
	reg, _ := manual()
	reports := pipeline.Must(pipeline.New[string](reg, "reports").Bulkhead(bulkhead.MaxConcurrent(10)).Build())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := reg.Drain(ctx); err != nil { // refuses new calls, waits for those in flight and for abandoned work
		fmt.Println("still busy:", err)
	}
	_ = reg.Close() // ends what still waits

	err := reports.Run(ctx, func(context.Context) error { return nil })
	fmt.Println(errors.Is(err, registry.ErrClosed))
	// Output: true
}
