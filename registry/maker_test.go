package registry_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// switched is a configuration in which the config "first" switches the limiter on
// or off.
func switched(on bool, more string) string {
	return "configs: {first: {rateLimiter: {enabled: " + strconv.FormatBool(on) + "}}}\n" + more
}

// The pipeline that made a shared limiter is switched off, and one that only names
// the limiter goes on with it as it is; the file may still change it.
func TestReload_G7_TheMakerOfASharedInstanceIsSwitchedOff(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, switched(true, ""))))
	first := built(t, pipeline.New[int](r, "first").Config("first").
		RateLimit(ratelimit.Name("shared"), ratelimit.PerSecond(5), ratelimit.Burst(2)))
	second := built(t, pipeline.New[int](r, "second").RateLimit(ratelimit.Name("shared")))
	limiter, _ := r.RateLimiter("shared")
	steps := []struct {
		text string
		want ratelimit.Config
	}{
		{switched(false, ""), ratelimit.Config{Limit: 5, Period: time.Second, Burst: 2}},
		{switched(false, "instances: {shared: {rateLimiter: {limit: 6}}}"), ratelimit.Config{Limit: 6, Period: time.Second, Burst: 2}},
		{switched(true, ""), ratelimit.Config{Limit: 5, Period: time.Second, Burst: 2}},
		{switched(false, ""), ratelimit.Config{Limit: 5, Period: time.Second, Burst: 2}},
	}
	for i, s := range steps {
		if err := r.Reload(parse(t, s.text)); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(s.want, limiter.Config()); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", i, diff)
		}
	}
	for range 3 {
		if _, err := first.Execute(t.Context(), succeed); err != nil {
			t.Errorf("switched off: %v", err)
		}
	}
	var err error
	for range 3 {
		_, err = second.Execute(t.Context(), succeed)
	}
	if !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("the third call of the other: %v", err)
	}
}

// What the maker no longer says, another pipeline may: it has the settings then.
func TestReload_G7_AnotherPipelineSpeaksForTheMakerThatIsOff(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, switched(true, "instances: {first: {rateLimiter: {name: shared, limit: 5}}}"))))
	built(t, pipeline.New[int](r, "first").Config("first").RateLimit())
	built(t, pipeline.New[int](r, "second").RateLimit(ratelimit.Name("shared"), ratelimit.PerSecond(5)))
	if err := r.Reload(parse(t, switched(false, "instances: {first: {rateLimiter: {name: shared}}}"))); err != nil {
		t.Fatal(err)
	}
	if limiter, _ := r.RateLimiter("shared"); limiter.Config().Limit != 5 {
		t.Error(limiter.Config())
	}
}

// A layer that only names the limiter is switched on, and was built before the
// pipeline that made it.
func TestReload_G7_ALayerBeforeTheMakerIsSwitchedOn(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, switched(false, ""))))
	first := built(t, pipeline.New[int](r, "first").Config("first").RateLimit(ratelimit.Name("shared")))
	built(t, pipeline.New[int](r, "second").RateLimit(ratelimit.Name("shared"), ratelimit.PerSecond(1)))
	if err := r.Reload(parse(t, switched(true, ""))); err != nil {
		t.Fatal(err)
	}
	_, _ = first.Execute(t.Context(), succeed)
	if _, err := first.Execute(t.Context(), succeed); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("it does not use the limiter: %v", err)
	}
	limiter, _ := r.RateLimiter("shared")
	if err := r.Reload(parse(t, switched(true, "instances: {shared: {rateLimiter: {limit: 3}}}"))); err != nil || limiter.Config().Limit != 3 {
		t.Errorf("%v: %+v", err, limiter.Config())
	}
}

// A rate that a handle sets while a reload is under way is not undone by it.
func TestReload_G7_ARateSetMeanwhileStays(t *testing.T) {
	text := func(burst int) string {
		return "instances: {p: {rateLimiter: {limit: 5, burst: " + strconv.Itoa(burst) + "}}}"
	}
	r, _ := newRegistry(t, registry.WithConfig(parse(t, text(1))))
	built(t, pipeline.Configured[int](r, "p"))
	limiter, _ := r.RateLimiter("p")
	for i := range 300 {
		c := parse(t, text(2+i%2))
		var both sync.WaitGroup
		both.Go(func() {
			if err := r.Reload(c); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := limiter.SetRate(10+i, time.Second, 1); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if got := limiter.Config().Limit; got != 10+i {
			t.Fatalf("round %d: the rate is %d again", i, got)
		}
	}
}

// Findings are about waits that there are, and about pipelines that share.
func TestCheck_G8_NothingIsFoundWhereNothingWaitsOrShares(t *testing.T) {
	text := "configs: {off: {rateLimiter: {enabled: false}}}"
	r, _ := newRegistry(t, registry.WithConfig(parse(t, text)))
	built(t, pipeline.New[int](r, "no queue").Timeout(time.Second).
		Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.Queue(0), bulkhead.MaxWait(5*time.Second)))
	built(t, pipeline.New[int](r, "alone").Retry(retry.MaxAttempts(3), retry.Constant(0)).
		RateLimit(ratelimit.Name("shared"), ratelimit.PerSecond(5)))
	built(t, pipeline.New[int](r, "switched off").Config("off").
		Timeout(time.Second).RateLimit(ratelimit.Name("shared")))
	if found := r.Check(); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}
