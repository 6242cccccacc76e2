package registry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// reload puts a text in force that is right.
func reload(t *testing.T, r *registry.Registry, text string) {
	t.Helper()
	if err := r.Reload(parse(t, text)); err != nil {
		t.Fatal(err)
	}
}

// origin is where the value of a path came from, for id.
func origin(r *registry.Registry, id, path string) string {
	for _, s := range r.Explain(id) {
		if s.Path == path {
			return s.Value + " " + s.Origin
		}
	}
	return ""
}

// Nobody uses the instances while the file changes, as their only layers are
// switched off. What the file says holds for them nevertheless: for handles, and
// for the layers that are built later.
func TestReload_G7_G9_G1_InstancesWhoseLayersAreAllOffHaveTheNewValues(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances:
  x:
    bulkhead: {maxConcurrent: 1}
    rateLimiter: {limit: 1}
    circuitBreaker: {openFor: 1m}
    retry: {budget: {minPerSecond: 1}}
`)))
	names := func(id string) *pipeline.Builder[int] {
		return pipeline.New[int](r, id).Bulkhead(bulkhead.Name("x")).RateLimit(ratelimit.Name("x")).
			CircuitBreaker(circuitbreaker.Name("x")).Retry(retry.Name("x"))
	}
	built(t, names("p0"))
	limiter, _ := r.RateLimiter("x")
	reload(t, r, `instances:
  p0:
    bulkhead: {name: x, enabled: false}
    rateLimiter: {name: x, enabled: false}
    circuitBreaker: {name: x, enabled: false}
    retry: {name: x, enabled: false}

  x:
    bulkhead: {maxConcurrent: 10}
    rateLimiter: {limit: 10}
    circuitBreaker: {openFor: 9m}
    retry: {budget: {minPerSecond: 10}}
`)
	if got := limiter.Config().Limit; got != 10 {
		t.Errorf("the handle has limit %d, want 10", got)
	}
	built(t, names("p1"))
	for path, want := range map[string]string{
		`instances."x".bulkhead.maxConcurrent`:    "10 resilience.yaml:9",
		`instances."x".rateLimiter.limit`:         "10 resilience.yaml:10",
		`instances."x".circuitBreaker.openFor`:    "9m0s resilience.yaml:11",
		`instances."x".retry.budget.minPerSecond`: "10 resilience.yaml:12",
	} {
		for _, id := range []string{"x", "p1"} {
			if got := origin(r, id, path); got != want {
				t.Errorf("%s: %s = %q, want %q", id, path, got, want)
			}
		}
	}
	slots, _ := r.Bulkhead("x")
	breaker, _ := r.CircuitBreaker("x")
	budget, _ := r.Retry("x")
	if n, d, b := slots.Config().MaxConcurrent, breaker.Config().OpenFor, budget.Config().Budget; n != 10 || d != 9*time.Minute || b == nil || b.MinPerSecond != 10 {
		t.Errorf("in force: maxConcurrent %d, openFor %v, budget %+v", n, d, b)
	}
	if _, err := pipeline.New[int](r, "p2").Bulkhead(bulkhead.Name("x"), bulkhead.Queue(0)).Build(); err != nil {
		t.Errorf("a layer that says the same: %v", err)
	}
}

// bare is a registry with a limiter "x" whose maker, "p0", is off, and to which the
// file gives no limit any more.
func bare(t *testing.T) (*registry.Registry, *ratelimit.Policy) {
	t.Helper()
	r, _ := newRegistry(t, registry.WithConfig(parse(t, "instances: {x: {rateLimiter: {limit: 1}}}")))
	built(t, pipeline.New[int](r, "p0").RateLimit(ratelimit.Name("x")))
	reload(t, r, "instances: {p0: {rateLimiter: {name: x, enabled: false}}}")
	limiter, _ := r.RateLimiter("x")
	return r, limiter
}

// A limit that nobody gives any more is no mistake as long as no layer needs it.
// Then it is one, as it would be if that layer were there already at the reload; the
// limit of the replaced file is none to join.
func TestReload_G7_G1_AnInstanceThatNobodySpeaksForIsNotJoinedAsItWas(t *testing.T) {
	names := func(r *registry.Registry, opts ...ratelimit.Option) *pipeline.Builder[int] {
		return pipeline.New[int](r, "p1").RateLimit(append(opts, ratelimit.Name("x"))...)
	}
	t.Run("one that only names it", func(t *testing.T) {
		r, limiter := bare(t)
		before := r.Snapshot()
		_, err := names(r).Build()
		if diff := cmp.Diff([]mistake{{"R4C-ATR-003", "ratelimit", "x", "limit"}}, mistakes(err)); diff != "" {
			t.Errorf("(-want +got)\n%s\n%v", diff, err)
		}
		if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
			t.Errorf("a refused build changed something (-before +after)\n%s", diff)
		}
		reload(t, r, "instances: {p0: {rateLimiter: {name: x, enabled: false}}, x: {rateLimiter: {limit: 4}}}")
		built(t, names(r))
		if got := limiter.Config().Limit; got != 4 {
			t.Errorf("limit %d after the file gives it, want 4", got)
		}
	})
	t.Run("one that gives a limit", func(t *testing.T) {
		r, limiter := bare(t)
		built(t, names(r, ratelimit.PerSecond(7)))
		if got, from := limiter.Config().Limit, origin(r, "x", `instances."x".rateLimiter.limit`); got != 7 || from != "7 code" {
			t.Errorf("limit %d, explained as %q", got, from)
		}
		_, err := pipeline.New[int](r, "p2").RateLimit(ratelimit.Name("x"), ratelimit.PerSecond(8)).Build()
		want := []mistake{{"R4C-REG-010", "ratelimit", "x", "limit"}, {"R4C-REG-010", "ratelimit", "x", "burst"}}
		if diff := cmp.Diff(want, mistakes(err)); diff != "" {
			t.Errorf("another limit joins (-want +got)\n%s", diff)
		}
		reload(t, r, "instances: {p0: {rateLimiter: {name: x, enabled: false}}}")
		if got := limiter.Config().Limit; got != 7 {
			t.Errorf("limit %d after the same file, want 7", got)
		}
	})
	t.Run("a reload with a layer that names it", func(t *testing.T) {
		r, _ := bare(t)
		err := r.Reload(parse(t, "{}"))
		if diff := cmp.Diff([]mistake{{"R4C-ATR-003", "ratelimit", "x", "limit"}}, mistakes(err)); diff != "" {
			t.Errorf("(-want +got)\n%s\n%v", diff, err)
		}
	})
}

// The instance is there, so it is too late for functions, whoever gives its settings.
func TestReload_G1_AnInstanceThatNobodySpeaksForTakesNoFunctions(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, "instances: {x: {circuitBreaker: {failureRatio: 0.5}}}")))
	built(t, pipeline.New[int](r, "p0").CircuitBreaker(circuitbreaker.Name("x"), circuitbreaker.FailureRatio(2)))
	reload(t, r, "instances: {p0: {circuitBreaker: {name: x, enabled: false}}}")
	b := func(opts ...circuitbreaker.Option) *pipeline.Builder[int] {
		return pipeline.New[int](r, "p1").CircuitBreaker(append(opts, circuitbreaker.Name("x"), circuitbreaker.FailureRatio(.4))...)
	}
	_, err := b(circuitbreaker.FailIf(func(error) bool { return true })).Build()
	if diff := cmp.Diff([]mistake{{"R4C-REG-011", "circuitbreaker", "x", "failIf"}}, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s\n%v", diff, err)
	}
	built(t, b())
	breaker, _ := r.CircuitBreaker("x")
	if got := breaker.Config().FailureRatio; got != .4 {
		t.Errorf("failureRatio %v, want 0.4", got)
	}
}
