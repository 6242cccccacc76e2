package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
)

// load is the dependency of the examples in docs/migrating.md and in bench/peers.
func load(context.Context) (string, error) { return "report", nil }

func Example_insteadOfFailsafe() {
	ctx := context.Background()
	reg, _ := manual()
	reports := pipeline.Must(pipeline.New[string](reg, "reports").
		Fallback(func(context.Context, error) (string, error) { return "yesterday's", nil }).
		Retry(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2), retry.MaxDelay(5*time.Second)).
		CircuitBreaker(circuitbreaker.CountWindow(20), circuitbreaker.MinCalls(20), circuitbreaker.OpenFor(10*time.Second)).
		RateLimit(ratelimit.PerSecond(50)).
		Timeout(2*time.Second).
		Bulkhead(bulkhead.MaxConcurrent(10), bulkhead.MaxWait(100*time.Millisecond)).
		Build())

	v, err := reports.Execute(ctx, load)
	fmt.Println(v, err)

	future := reports.ExecuteAsync(ctx, load)
	fmt.Println(future.Get(ctx))
	// Output:
	// report <nil>
	// report <nil>
}

func Example_insteadOfGobreaker() {
	breaker := must(circuitbreaker.New("reports", breakerConfig(), clock.NewManual(noon)))

	for range 4 {
		permit, err := breaker.Allow()
		if err != nil {
			fmt.Println(errors.Is(err, circuitbreaker.ErrOpen), err)
			break
		}
		_, err = "", errors.New("down") // the call
		permit.Record(err)
	}
	// Output: true circuitbreaker "reports": open, next probe in 10s
}

// breakerConfig opens after three failures of three.
func breakerConfig() circuitbreaker.Config {
	c := circuitbreaker.Default()
	c.Apply(
		circuitbreaker.CountWindow(3), circuitbreaker.MinCalls(3), circuitbreaker.FailureRatio(1),
		circuitbreaker.OpenFor(10*time.Second),
	)
	return c
}

func Example_insteadOfXRate() {
	c := ratelimit.Default()
	c.Apply(ratelimit.PerSecond(1), ratelimit.Burst(2), ratelimit.MaxWait(time.Second))
	limiter := must(ratelimit.New("backend", c, clock.NewManual(noon)))

	fmt.Println(limiter.TryAcquire(), limiter.TryAcquire(), limiter.TryAcquire())
	fmt.Println(limiter.Acquire(context.Background())) // waits, at most MaxWait
	// Output:
	// true true false
	// <nil>
}

func Example_insteadOfRetryGo() {
	c := retry.Default()
	c.Apply(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2))
	retries := must(retry.New("reports", c, clock.NewManual(noon)))

	attempts := 0
	err := retries.Do(context.Background(), func(context.Context) error {
		attempts++
		return errors.New("down")
	})
	var e *retry.Error
	fmt.Println(attempts, errors.As(err, &e), e.Last)
	// Output: 3 true down
}
