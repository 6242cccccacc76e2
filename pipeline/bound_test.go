package pipeline_test

import (
	"context"
	"math"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

func TestBound_R17(t *testing.T) {
	perCall := timeout.Func(func(context.Context) time.Duration { return s })
	asked := retry.DelayFunc(func(int, error) (time.Duration, bool) { return time.Hour, true })
	for _, c := range []struct {
		name  string
		build layers
		want  time.Duration // 0: none
	}{
		{"nothing", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b }, 0},
		{"timeout", twoSeconds, 2 * s},
		{"timeout per call", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(s, perCall) }, 0},
		{"limiter alone", limited(ratelimit.PerSecond(1), ratelimit.MaxWait(s)), 0},
		{"bulkhead alone", bulked(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(s)), 0},
		{"limiter and timeout", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(500*ms))
		}, 2500 * ms},
		{"the wait for a slot is inside", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(time.Hour))
		}, 2 * s},
		{"the fallback is not included", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Fallback(func(context.Context, error) (int, error) { return 0, nil })
		}, 2 * s},
		{"retry and timeout", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), retry.Exponential(100*ms, 2))
		}, 6300 * ms},
		{"one attempt", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(1))
		}, 2 * s},
		{"all but a total", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), retry.Constant(s)).RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(s))
		}, 11 * s},
		{"the upper jitter", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), retry.Constant(s), retry.Jitter(.25))
		}, 8500 * ms},
		{"the upper jitter, capped", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), retry.Constant(s), retry.Jitter(.25), retry.MaxDelay(1100*ms))
		}, 8200 * ms},
		{"full jitter", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), retry.Constant(s), retry.FullJitter())
		}, 8 * s},
		{"a total that is less", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), retry.Constant(s), retry.MaxDuration(5*s), retry.Reserve(s))
		}, 5 * s},
		{"a total that is more", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(2), retry.Constant(s), retry.MaxDuration(time.Hour))
		}, 5 * s},
		{"a total without a timeout", retrying(retry.MaxDuration(5 * s)), 5 * s},
		{"neither", retrying(retry.MaxAttempts(3)), 0},
		{"unlimited", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return twoSeconds(b).Retry(retry.Unlimited()) }, 0},
		{"unlimited, with a total", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.Unlimited(), retry.MaxDuration(time.Minute))
		}, time.Minute},
		{"timeout per call and retry", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(s, perCall).Retry(retry.MaxAttempts(3))
		}, 0},
		{"timeout per call, with a total", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(s, perCall).Retry(retry.MaxDuration(time.Minute))
		}, time.Minute},
		{"a delay that is asked, uncapped", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), asked, retry.MaxDelay(0))
		}, 0},
		{"a delay that is asked, capped", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(retry.MaxAttempts(3), asked, retry.MaxDelay(10*s))
		}, 26 * s},
		{"a delay that is asked, with a total", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return twoSeconds(b).Retry(asked, retry.MaxDelay(0), retry.MaxDuration(time.Minute))
		}, time.Minute},
		{"saturated", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(math.MaxInt64).Retry(retry.MaxAttempts(3)).RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(s))
		}, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			d, ok := build(w, "x", c.build).Bound()
			if d != c.want || ok != (c.want != 0) {
				t.Errorf("%v, %v; want %v", d, ok, c.want)
			}
			text := ""
			if c.want != 0 {
				text = c.want.String()
			}
			if got := w.pipeline("x").Bound; got != text {
				t.Errorf("in the snapshot: %q, want %q", got, text)
			}
		})
	}
}

// The bound is reached, and not passed, by the worst that can happen.
func TestBound_R17_TheWorstCaseTakesExactlyThatLong(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(2*s).RateLimit(ratelimit.Per(1, 6*s), ratelimit.MaxWait(3*s)).
				Retry(retry.MaxAttempts(3), retry.Constant(800*ms), retry.Jitter(.25), retry.Rand(func() float64 { return 1 }))
		})
		want, ok := p.Bound()
		if !ok || want != 17*s { // 3 × (3 + 2) + 2 × 1
			a.Fatalf("bound %v, %v", want, ok)
		}
		limiter, _ := a.reg.RateLimiter("x")
		limiter.TryAcquire()
		a.advance(3 * s)
		from := a.at()
		_, err := a.call(a.Context(), p, a.plan(step{takes: time.Hour}).run)
		a.is(err, timeout.ErrExceeded)
		if took := a.at() - from; took != want {
			a.Errorf("took %v, bound %v", took, want)
		}
	})
}
