package peers_test

import (
	"context"
	"testing"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/clock"
	own "resilience4cata.dev/go/policy/circuitbreaker"
)

// Closed, through a pipeline.
func BenchmarkCircuitBreaker(b *testing.B) {
	ctx := context.Background()
	compare(b,
		execute(ctx, bench.Op, bench.CircuitBreaker),
		loop("failsafe-go", failsafeCall(ctx, bench.Op, circuitbreaker.NewWithDefaults[int]())),
	)
}

// Closed, on the handle: ask, call, and say how it went. Execute is gobreaker's
// cheapest form; its form in two steps allocates.
func BenchmarkCircuitBreakerHandle(b *testing.B) {
	ctx := context.Background()
	h, err := own.New("bench", own.Default(), clock.System())
	if err != nil {
		b.Fatal(err)
	}
	cb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{})
	two := gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{})
	run := func() (int, error) { return bench.Op(ctx) }
	compare(b,
		loop("ours", func() error {
			permit, err := h.Allow()
			if err != nil {
				return err
			}
			_, err = bench.Op(ctx)
			permit.Record(err)
			return err
		}),
		loop("gobreaker", func() error {
			_, err := cb.Execute(run)
			return err
		}),
		loop("gobreaker-two-step", func() error {
			done, err := two.Allow()
			if err != nil {
				return err
			}
			_, err = bench.Op(ctx)
			done(err)
			return err
		}),
	)
}
