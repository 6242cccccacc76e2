package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
)

const levels = `
configs:
  default: {timeout: {value: 1s}}
  slow:    {timeout: {value: 10s}, retry: {maxAttempts: 2}}
  base:    {bulkhead: {maxConcurrent: 4}}
instances:
  reports:
    config: slow
    rateLimiter: {maxWait: 5ms, name: backend}
  backend:
    rateLimiter: {limit: 70}
  off:
    bulkhead: {maxConcurrent: 3, enabled: false}
`

func TestBuild_G2_ConfiguredTakesTheLayersThatAreListed(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, levels)))
	built(t, pipeline.Configured[int](r, "reports").Timeout(0).Retry(retry.On(errBoom)).Config("base"))
	s := r.Snapshot()
	if diff := cmp.Diff([]string{"retry", "ratelimit", "timeout", "bulkhead"}, s.Pipelines[0].Order); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s.Timeouts[0].Config.Value != 10*time.Second || s.Retries[0].Config.MaxAttempts != 2 || s.Bulkheads[0].Limit != 4 {
		t.Errorf("%+v %+v %+v", s.Timeouts, s.Retries, s.Bulkheads)
	}
	if s.RateLimiters[0].ID != "backend" || s.RateLimiters[0].Config.Limit != 70 {
		t.Errorf("the shared instance's own section counts more: %+v", s.RateLimiters)
	}
}

func TestBuild_G2_CodeAddsNoLayersToAConfiguredPipeline(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, levels)))
	_, err := pipeline.Configured[int](r, "reports").Bulkhead(bulkhead.MaxConcurrent(3)).Build()
	if diff := cmp.Diff([]mistake{{"R4C-REG-012", "bulkhead", "reports", `instances."reports".bulkhead`}}, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = pipeline.Configured[int](r, "report").Build()
	if diff := cmp.Diff([]mistake{{"R4C-REG-012", "pipeline", "report", `instances."report"`}}, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !strings.Contains(err.Error(), `did you mean "reports"?`) {
		t.Errorf("no nearest id: %v", err)
	}
	none, _ := newRegistry(t)
	if _, err = pipeline.Configured[int](none, "reports").Build(); len(mistakes(err)) != 1 {
		t.Errorf("without a configuration: %v", err)
	}
	_, err = pipeline.New[int](r, "x").Timeout(1).Config("slwo").Build()
	if diff := cmp.Diff([]mistake{{"R4C-REG-004", "pipeline", "x", "config"}}, mistakes(err)); diff != "" || !strings.Contains(err.Error(), `"slow"`) {
		t.Errorf("(-want +got)\n%s\n%v", diff, err)
	}
}

func TestBuild_G2_NewNeverGainsALayer(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, levels)))
	built(t, pipeline.New[int](r, "reports").Retry())
	s := r.Snapshot()
	if diff := cmp.Diff([]string{"retry"}, s.Pipelines[0].Order); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s.Retries[0].Config.MaxAttempts != 2 {
		t.Errorf("the file counts more than the default: %+v", s.Retries)
	}
}

func TestBuild_G2_ASectionUnderThePipelineOfALayerThatIsNamedInCode(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, levels)))
	_, err := pipeline.New[int](r, "reports").RateLimit(ratelimit.Name("other"), ratelimit.PerSecond(1)).Build()
	if err != nil {
		t.Fatalf("the file renames it: %v", err) // its name outranks the code's
	}
	r, _ = newRegistry(t, registry.WithConfig(parse(t, `instances: {p: {rateLimiter: {limit: 5}}}`)))
	_, err = pipeline.New[int](r, "p").RateLimit(ratelimit.Name("other"), ratelimit.PerSecond(1)).Build()
	if diff := cmp.Diff([]mistake{{"R4C-REG-007", "ratelimit", "p", `instances."p".rateLimiter`}}, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBuild_G3_EnabledFalseTakesTheLayerOut(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, levels)))
	p := built(t, pipeline.New[int](r, "off").Bulkhead())
	s := r.Snapshot()
	if diff := cmp.Diff([]string{}, s.Pipelines[0].Order); diff != "" || len(s.Bulkheads) != 0 {
		t.Errorf("(-want +got)\n%s\n%+v", diff, s.Bulkheads)
	}
	if _, err := p.Execute(t.Context(), succeed); err != nil {
		t.Error(err)
	}
	if n := r.Snapshot().Pipelines[0].Calls.Succeeded; n != 1 {
		t.Errorf("succeeded = %d: a pipeline with a layer that is switched off counts", n)
	}
	built(t, pipeline.New[int](r, "plain"))
}

func TestBuild_G10_TheCallersSlicesAreCopied(t *testing.T) {
	errs := []error{errBoom}
	r, _ := newRegistry(t)
	p := built(t, pipeline.New[int](r, "p").Retry(retry.MaxAttempts(2), retry.Constant(0), retry.On(errs...)))
	errs[0] = nil
	n := 0
	if err := p.Run(t.Context(), func(context.Context) error { n++; return errBoom }); err == nil || n != 2 {
		t.Errorf("%d attempts, %v", n, err)
	}
}

func TestBuild_G10_ABaseIsNotChanged(t *testing.T) {
	c := parse(t, levels)
	r, _ := newRegistry(t, registry.WithConfig(c))
	built(t, pipeline.New[int](r, "a").Timeout(0).Config("slow"))
	built(t, pipeline.New[int](r, "b").Timeout(7*time.Second).Config("slow").Retry(retry.MaxAttempts(9)))
	built(t, pipeline.New[int](r, "c").Timeout(0).Config("slow").Retry())
	s := r.Snapshot()
	for i, want := range []time.Duration{10 * time.Second, 7 * time.Second, 10 * time.Second} {
		if got := s.Timeouts[i].Config.Value; got != want {
			t.Errorf("%s: %v, want %v", s.Timeouts[i].Instance, got, want)
		}
	}
	if s.Retries[1].ID != "c" || s.Retries[1].Config.MaxAttempts != 2 {
		t.Errorf("%+v", s.Retries)
	}
	e, err := config.Timeout(c, "reports", config.Code[timeout.Config]{})
	if err != nil || e.Config.Value != 10*time.Second {
		t.Errorf("%+v %v", e, err)
	}
}

func TestNew_EveryMistakeAtOnce(t *testing.T) {
	_, err := registry.New(nil, registry.WithConfig(nil), registry.WithClock(nil), registry.WithListener(nil), registry.WithLogger(nil),
		registry.WithClock((*clock.Manual)(nil)))
	want := []mistake{
		{"R4C-REG-009", "registry", "", "option"},
		{"R4C-REG-009", "registry", "", "WithConfig"},
		{"R4C-REG-009", "registry", "", "WithClock"},
		{"R4C-REG-009", "registry", "", "WithListener"},
		{"R4C-REG-009", "registry", "", "WithLogger"},
		{"R4C-REG-009", "registry", "", "WithClock"},
	}
	if diff := cmp.Diff(want, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, e := range policy.ConfigErrors(err) {
		if e.Got == "" || e.Hint == "" {
			t.Errorf("no text: %+v", e)
		}
	}
}

func TestLookups_FindAndNeverCreate(t *testing.T) {
	r, _ := newRegistry(t)
	built(t, pipeline.New[int](r, "a").Retry().CircuitBreaker().RateLimit(ratelimit.PerSecond(1)).Bulkhead(bulkhead.MaxConcurrent(1)))
	if p, ok := r.Retry("a"); !ok || p.ID() != "a" {
		t.Error("no retry")
	}
	if p, ok := r.CircuitBreaker("a"); !ok || p.ID() != "a" {
		t.Error("no breaker")
	}
	if p, ok := r.RateLimiter("a"); !ok || p.ID() != "a" {
		t.Error("no limiter")
	}
	p, ok := r.Bulkhead("a")
	if !ok || p.ID() != "a" {
		t.Error("no bulkhead")
	}
	if again, _ := r.Bulkhead("a"); again != p {
		t.Error("another handle")
	}
	if p, ok := r.Bulkhead("b"); ok || p != nil {
		t.Error("a bulkhead that nobody built")
	}
	if n := len(r.Snapshot().Bulkheads); n != 1 {
		t.Errorf("%d bulkheads", n)
	}
	if got := r.Nearest("A"); got != "a" {
		t.Errorf("Nearest = %q", got)
	}
}
