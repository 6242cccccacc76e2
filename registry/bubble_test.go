package registry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// TestBubble_X2_LeavesNothingBehind uses every entry point inside a bubble, which
// ends only when no goroutine and no timer of it is left; the last registry is
// never closed.
func TestBubble_X2_LeavesNothingBehind(t *testing.T) {
	for name, end := range map[string]func(r *registry.Registry){
		"Close":   func(r *registry.Registry) { _ = r.Close() },
		"Drain":   func(r *registry.Registry) { _ = r.Drain(context.Background()) },
		"neither": func(*registry.Registry) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				text := `instances: {p: {retry: {maxAttempts: 2}, timeout: {value: 1s}, bulkhead: {maxConcurrent: 2}, rateLimiter: {limit: 9}, circuitBreaker: {}}}`
				r, err := registry.New(registry.WithConfig(parse(t, text)))
				if err != nil {
					t.Fatal(err)
				}
				p := built(t, pipeline.Configured[int](r, "p"))
				_, _ = p.Execute(t.Context(), func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, ctx.Err()
				})
				if err := r.Reload(parse(t, text)); err != nil {
					t.Error(err)
				}
				r.Snapshot()
				r.Check()
				r.Explain("p")
				end(r)
			})
		})
	}
}

// A registry that was made outside of a bubble may be used inside.
func TestBubble_X2_ARegistryFromOutside(t *testing.T) {
	r, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	build := func(id string) *pipeline.Pipeline[int] {
		return built(t, pipeline.New[int](r, id).Retry(retry.Constant(time.Second)).CircuitBreaker(circuitbreaker.MinCalls(50)).
			RateLimit(ratelimit.PerSecond(50)).Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(2)))
	}
	p := build("outside")
	synctest.Test(t, func(t *testing.T) {
		for _, p := range []*pipeline.Pipeline[int]{p, build("inside")} {
			begin := time.Now()
			if _, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}); err == nil || time.Since(begin) < 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		}
		r.Snapshot()
	})
	if n := r.Snapshot().Pipelines[0].Calls.TimedOut; n != 1 {
		t.Errorf("timed out: %d", n)
	}
}
