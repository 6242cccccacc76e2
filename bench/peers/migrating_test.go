package peers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	retrygo "github.com/avast/retry-go/v4"
	failsafe "github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"
)

// These are the left sides of docs/migrating.md: how the same is done with the libraries that people come from.

func load(context.Context) (string, error) { return "report", nil }

func Example_failsafe() {
	ctx := context.Background()
	executor := failsafe.With[string](
		fallback.NewWithResult("yesterday's"),
		retrypolicy.NewBuilder[string]().WithMaxAttempts(3).WithBackoff(100*time.Millisecond, 5*time.Second).Build(),
		circuitbreaker.NewBuilder[string]().WithFailureThresholdRatio(10, 20).WithDelay(10*time.Second).Build(),
		ratelimiter.NewBursty[string](50, time.Second),
		timeout.New[string](2*time.Second),
		bulkhead.NewBuilder[string](10).WithMaxWaitTime(100*time.Millisecond).Build(),
	)

	v, err := executor.WithContext(ctx).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
		return load(e.Context())
	})
	fmt.Println(v, err)
	// Output: report <nil>
}

func Example_gobreaker() {
	breaker := gobreaker.NewTwoStepCircuitBreaker[string](gobreaker.Settings{
		Name:        "reports",
		Timeout:     10 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 3 },
	})

	for range 4 {
		done, err := breaker.Allow()
		if err != nil {
			fmt.Println(errors.Is(err, gobreaker.ErrOpenState), err)
			break
		}
		done(errors.New("down"))
	}
	// Output: true circuit breaker is open
}

func Example_xRate() {
	limiter := rate.NewLimiter(1, 2)
	fmt.Println(limiter.Allow(), limiter.Allow(), limiter.Allow())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(limiter.Wait(ctx) != nil) // the wait does not fit
	// Output:
	// true true false
	// true
}

func Example_retryGo() {
	attempts := 0
	err := retrygo.Do(func() error { attempts++; return errors.New("down") },
		retrygo.Attempts(3),
		retrygo.Delay(time.Millisecond),
		retrygo.LastErrorOnly(true),
		retrygo.Context(context.Background()),
	)
	fmt.Println(attempts, err)
	// Output: 3 down
}
