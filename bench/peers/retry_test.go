package peers_test

import (
	"context"
	"testing"
	"time"

	retrygo "github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"resilience4cata.dev/go/bench"
)

func failsafeRetry() retrypolicy.RetryPolicy[int] {
	return retrypolicy.NewBuilder[int]().
		WithMaxAttempts(bench.Attempts).
		WithBackoff(100*time.Millisecond, 30*time.Second).
		Build()
}

// The first attempt succeeds: what a retry costs while nothing is wrong. Ours
// includes the attempt's own context, which carries its number and the
// idempotency key.
func BenchmarkRetry(b *testing.B) {
	ctx := context.Background()
	run := func() (int, error) { return bench.Op(ctx) }
	options := []retrygo.Option{retrygo.Attempts(bench.Attempts), retrygo.Context(ctx)}
	compare(b,
		execute(ctx, bench.Op, bench.Retry),
		loop("failsafe-go", failsafeCall(ctx, bench.Op, failsafeRetry())),
		loop("retry-go", func() error {
			_, err := retrygo.DoWithData(run, options...)
			return err
		}),
		loop("backoff", func() error {
			_, err := backoff.Retry(ctx, run, backoff.WithMaxTries(bench.Attempts))
			return err
		}),
	)
}
