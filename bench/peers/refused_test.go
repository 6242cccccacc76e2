package peers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	failsafe "github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/pipeline"
)

var errEntered = errors.New("the function was entered")

func compareRefused(b *testing.B, build func(testing.TB) *pipeline.Pipeline[int], peer failsafe.Policy[int]) {
	b.Helper()
	call := failsafeCall(context.Background(), bench.Op, peer)
	compare(b,
		ours(func(b *testing.B) { b.Helper(); bench.Refused(b, build(b)) }),
		loop("failsafe-go", func() error {
			if call() == nil {
				return errEntered
			}
			return nil
		}),
	)
}

func BenchmarkRefusedFull(b *testing.B) {
	peer := bulkhead.New[int](1)
	if !peer.TryAcquirePermit() {
		b.Fatal("the only slot is not free")
	}
	compareRefused(b, bench.FullBulkhead, peer)
}

func BenchmarkRefusedLimited(b *testing.B) {
	peer := ratelimiter.NewBursty[int](1, time.Hour)
	if !peer.TryAcquirePermit() {
		b.Fatal("the only permit is not there")
	}
	compareRefused(b, bench.UsedUpLimiter, peer)
}

func BenchmarkRefusedOpen(b *testing.B) {
	peer := circuitbreaker.NewBuilder[int]().WithDelay(time.Hour).Build()
	peer.Open()
	compareRefused(b, bench.OpenBreaker, peer)
}
