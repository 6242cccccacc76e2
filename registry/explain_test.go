package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/registry"
)

func TestExplain_G9_SaysWhereEachValueCameFrom(t *testing.T) {
	c, err := parse(t, `
configs:
  default: {timeout: {value: 1s}}
instances:
  reports:
    rateLimiter: {name: backend, maxWait: 20ms}
  backend:
    rateLimiter: {limit: 50}
`).WithEnv([]string{`RESILIENCE4CATA_SET=instances."reports".bulkhead.queue=4`})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newRegistry(t, registry.WithConfig(c))
	built(t, pipeline.New[int](r, "reports").RateLimit().Timeout(0).Bulkhead(bulkhead.MaxConcurrent(10)))
	built(t, pipeline.New[int](r, "other").RateLimit(ratelimit.Name("backend")))
	want := []registry.Setting{
		{`instances."backend".rateLimiter.limit`, "50", "resilience.yaml:8"},
		{`instances."backend".rateLimiter.period`, "1s", "default"},
		{`instances."backend".rateLimiter.burst`, "50", "default"},
		{`instances."reports".rateLimiter.maxWait`, "20ms", "resilience.yaml:6"},
		{`instances."reports".rateLimiter.enabled`, "true", "default"},
		{`instances."reports".rateLimiter.name`, "backend", "resilience.yaml:6"},
		{`instances."reports".timeout.value`, "1s", "resilience.yaml:3"},
		{`instances."reports".timeout.enabled`, "true", "default"},
		{`instances."reports".bulkhead.maxConcurrent`, "10", "code"},
		{`instances."reports".bulkhead.queue`, "4", "env"},
		{`instances."reports".bulkhead.maxWait`, "unlimited", "default"},
		{`instances."reports".bulkhead.freeOnTimeout`, "false", "default"},
		{`instances."reports".bulkhead.enabled`, "true", "default"},
	}
	if diff := cmp.Diff(want, r.Explain("reports")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	limiter, _ := r.RateLimiter("backend")
	slots, _ := r.Bulkhead("reports")
	if limiter.SetRate(7, time.Minute, 50) != nil || slots.SetLimit(2) != nil {
		t.Fatal("not set")
	}
	want[0].Value, want[0].Origin = "7", "runtime"
	want[1].Value, want[1].Origin = "1m0s", "runtime"
	want[8].Value, want[8].Origin = "2", "runtime"
	if diff := cmp.Diff(want, r.Explain("reports")); diff != "" {
		t.Errorf("runtime (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want[:3], r.Explain("backend")[:3]); diff != "" {
		t.Errorf("a shared instance by its own id (-want +got)\n%s", diff)
	}
	if got := r.Explain("other"); len(got) == 0 || got[0] != want[0] || got[3].Value != "0s" {
		t.Errorf("a layer that only names the instance: %v", got)
	}
	if got := r.Explain("nobody"); got != nil {
		t.Errorf("nobody: %v", got)
	}
}

func TestExplain_G9_LayersThatAreSwitchedOff(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances: {a: {bulkhead: {maxConcurrent: 3, enabled: false}}}`)))
	built(t, pipeline.New[int](r, "a").Bulkhead())
	got := r.Explain("a")
	if len(got) != 5 || got[4] != (registry.Setting{Path: `instances."a".bulkhead.enabled`, Value: "false", Origin: "resilience.yaml:1"}) {
		t.Errorf("%v", got)
	}
}

// While a reload puts its values in force, those that are not yet are no handle's.
func TestExplain_G9_InTheMiddleOfAReloadNothingIsRuntime(t *testing.T) {
	text := func(limit string) string {
		limiter := "{rateLimiter: {limit: " + limit + ", period: 1m, burst: 1, maxWait: 1h}}"
		return "instances: {a: " + limiter + ", b: " + limiter + "}"
	}
	var r *registry.Registry
	var got []string
	r, _ = newRegistry(t, registry.WithConfig(parse(t, text("60"))), registry.WithListener(func(context.Context, policy.Event) {
		for _, s := range r.Explain("b") {
			if strings.HasSuffix(s.Path, ".limit") {
				got = append(got, s.Value+" "+s.Origin)
			}
		}
	}))
	a := built(t, pipeline.Configured[int](r, "a"))
	built(t, pipeline.Configured[int](r, "b"))
	first, second := a.ExecuteAsync(t.Context(), succeed), a.ExecuteAsync(t.Context(), succeed)
	if err := r.Reload(parse(t, strings.ReplaceAll(text("1"), "1m", "2h"))); err != nil { // the second waits too long
		t.Fatal(err)
	}
	if _, err := first.Get(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := second.Get(t.Context()); !errors.Is(err, ratelimit.ErrLimited) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"1 resilience.yaml:1"}, got); diff != "" {
		t.Errorf("what the listener was told (-want +got)\n%s", diff)
	}
}
