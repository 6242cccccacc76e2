package peers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/clock"
	own "resilience4cata.dev/go/policy/ratelimit"
)

var errLimited = errors.New("limited")

// failsafeLimiter is the kind that, like a token bucket, lets a burst through.
func failsafeLimiter() ratelimiter.RateLimiter[int] {
	return ratelimiter.NewBursty[int](bench.Rate, time.Second)
}

// A permit is free, through a pipeline.
func BenchmarkRateLimit(b *testing.B) {
	ctx := context.Background()
	compare(b,
		execute(ctx, bench.Op, bench.RateLimit),
		loop("failsafe-go", failsafeCall(ctx, bench.Op, failsafeLimiter())),
	)
}

// A permit is free, on the handle.
func BenchmarkRateLimitHandle(b *testing.B) {
	c := own.Default()
	c.Apply(own.PerSecond(bench.Rate))
	h, err := own.New("bench", c, clock.System())
	if err != nil {
		b.Fatal(err)
	}
	limiter := rate.NewLimiter(bench.Rate, bench.Rate)
	compare(b,
		loop("ours", func() error {
			if !h.TryAcquire() {
				return errLimited
			}
			return nil
		}),
		loop("x-time-rate", func() error {
			if !limiter.Allow() {
				return errLimited
			}
			return nil
		}),
	)
}
