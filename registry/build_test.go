package registry_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

func TestField_CF03_ARushMakesOneInstance(t *testing.T) {
	rounds, rush := 60, 100
	if raceEnabled {
		rounds = 10
	}
	for range rounds {
		r, _ := newRegistry(t)
		var wg sync.WaitGroup
		begin := make(chan struct{})
		pipelines := make([]*pipeline.Pipeline[int], rush)
		for i := range pipelines {
			wg.Go(func() {
				<-begin
				id := "p"
				if i%2 == 1 { // half share the pipeline, half only its bulkhead
					id = string(rune('a' + i%26))
				}
				p, err := pipeline.New[int](r, id).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Name("a")).Build()
				if err != nil {
					t.Error(err)
				}
				pipelines[i] = p
			})
		}
		close(begin)
		wg.Wait()
		if t.Failed() {
			return
		}
		s := r.Snapshot()
		if len(s.Bulkheads) != 1 || s.Wheel.Pending != 0 {
			t.Fatalf("%d bulkheads, pending %d", len(s.Bulkheads), s.Wheel.Pending)
		}
		entered := 0
		_, _ = pipelines[0].Execute(context.Background(), func(context.Context) (int, error) {
			for _, p := range pipelines { // the one slot is taken
				if _, err := p.Execute(context.Background(), succeed); !errors.Is(err, bulkhead.ErrFull) {
					entered++
				}
			}
			return 0, nil
		})
		if entered != 0 {
			t.Fatalf("%d calls entered beside the first", entered)
		}
	}
}

func TestField_CF05_OtherSettingsAreAnError(t *testing.T) {
	r, _ := newRegistry(t)
	first := built(t, pipeline.New[int](r, "r").Retry(retry.MaxAttempts(5)))

	_, err := pipeline.New[int](r, "r").Retry(retry.MaxAttempts(3)).Build()
	if diff := cmp.Diff([]mistake{{"R4C-REG-010", "retry", "r", "maxAttempts"}}, mistakes(err)); diff != "" {
		t.Errorf("same pipeline, other attempts (-want +got)\n%s", diff)
	}
	if text := err.Error(); !strings.Contains(text, "3 at build_test.go:") || !strings.Contains(text, "but 5 at helpers_test.go:") {
		t.Errorf("both values and both places are not in %q", text)
	}

	again := built(t, pipeline.New[string](r, "r").Retry(retry.MaxAttempts(5)))
	if _, err := again.Execute(context.Background(), func(context.Context) (string, error) { return "", nil }); err != nil {
		t.Error(err)
	}
	_, _ = first.Execute(context.Background(), succeed)

	built(t, pipeline.New[int](r, "a").Retry(retry.Name("r")))
	built(t, pipeline.New[int](r, "b").Retry(retry.Name("r"), retry.MaxAttempts(5)))
	_, err = pipeline.New[int](r, "c").Retry(retry.Name("r"), retry.MaxAttempts(4), retry.Constant(0)).Build()
	want := []mistake{
		{"R4C-REG-010", "retry", "r", "maxAttempts"}, {"R4C-REG-010", "retry", "r", "backoff"}, {"R4C-REG-010", "retry", "r", "delay"},
	}
	if diff := cmp.Diff(want, mistakes(err)); diff != "" {
		t.Errorf("shared by name, other settings (-want +got)\n%s", diff)
	}

	s := r.Snapshot()
	if len(s.Retries) != 1 || s.Retries[0].Config.MaxAttempts != 5 {
		t.Errorf("retries: %+v", s.Retries)
	}
	if len(s.Pipelines) != 3 || s.Pipelines[2].Calls.Succeeded != 2 {
		t.Errorf("one record for the id, of both types: %+v", s.Pipelines)
	}
}

func TestBuild_G1_OnlyANameJoinsWhatExists(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `
configs:
  default: {bulkhead: {maxConcurrent: 7}}
instances:
  configured: {rateLimiter: {limit: 9, maxWait: 3ms}}
`)))
	built(t, pipeline.New[int](r, "maker").
		RateLimit(ratelimit.PerSecond(50), ratelimit.Name("backend")).
		Bulkhead(bulkhead.MaxConcurrent(10), bulkhead.Queue(2), bulkhead.Name("backend")).
		CircuitBreaker(circuitbreaker.MinCalls(3), circuitbreaker.Name("backend")))
	built(t, pipeline.New[int](r, "joins").
		RateLimit(ratelimit.Name("backend"), ratelimit.MaxWait(time.Second)).
		Bulkhead(bulkhead.Name("backend"), bulkhead.MaxWait(20*time.Millisecond), bulkhead.FreeOnTimeout()).
		CircuitBreaker(circuitbreaker.Name("backend")))
	built(t, pipeline.New[int](r, "says part of it").RateLimit(ratelimit.Name("backend"), ratelimit.Burst(50)))
	built(t, pipeline.New[int](r, "joins what is configured").RateLimit(ratelimit.Name("configured")))

	s := r.Snapshot()
	if len(s.RateLimiters) != 2 || len(s.Bulkheads) != 1 || len(s.CircuitBreakers) != 1 {
		t.Fatalf("instances: %d %d %d", len(s.RateLimiters), len(s.Bulkheads), len(s.CircuitBreakers))
	}
	// The maker's settings, waits included.
	if diff := cmp.Diff(bulkhead.Config{MaxConcurrent: 10, Queue: 2, MaxWait: -1}, s.Bulkheads[0].Config); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(ratelimit.Config{Limit: 9, Period: time.Second, Burst: 9, MaxWait: 3 * time.Millisecond}, s.RateLimiters[1].Config); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	_, err := pipeline.New[int](r, "x").
		RateLimit(ratelimit.Name("backend"), ratelimit.PerSecond(40)).
		Bulkhead(bulkhead.Name("backend"), bulkhead.Queue(3), bulkhead.MaxWait(-5)).
		CircuitBreaker(circuitbreaker.Name("backend"), circuitbreaker.Ignore(errBoom)).Build()
	want := []mistake{
		{"R4C-REG-011", "circuitbreaker", "backend", "ignore"},
		{"R4C-REG-010", "ratelimit", "backend", "limit"},
		{"R4C-REG-010", "ratelimit", "backend", "burst"},
		{"R4C-ATR-003", "bulkhead", "backend", "maxWait"},
		{"R4C-REG-010", "bulkhead", "backend", "maxConcurrent"}, // 7 by configs.default
		{"R4C-REG-010", "bulkhead", "backend", "queue"},
	}
	if diff := cmp.Diff(want, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s\n%v", diff, err)
	}
}

func TestBuild_G1_WaitsAndRulesBelongToTheLayer(t *testing.T) {
	other := errors.New("other")
	r, m := newRegistry(t)
	a := built(t, pipeline.New[int](r, "a").Retry(retry.Name("shared"), retry.MaxAttempts(2), retry.On(errBoom)).
		RateLimit(ratelimit.PerSecond(1), ratelimit.Name("limit")))
	b := built(t, pipeline.New[int](r, "b").Retry(retry.Name("shared"), retry.On(other)).
		RateLimit(ratelimit.Name("limit"), ratelimit.MaxWait(time.Hour)))
	if _, ok := r.Retry("a"); ok {
		t.Error("a retry with the pipeline's id")
	}
	var gaveUp *retry.Error
	if _, err := b.Execute(context.Background(), fail); !errors.Is(err, errBoom) || errors.As(err, &gaveUp) {
		t.Errorf("b retried what only a retries: %v", err)
	}
	// a does not wait for a permit, b does: the manual clock shows it.
	if _, err := a.Execute(context.Background(), succeed); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("a: %v", err)
	}
	before := m.Now()
	if _, err := b.Execute(context.Background(), succeed); err != nil || m.Now().Equal(before) {
		t.Errorf("b: %v after %v", err, m.Now().Sub(before))
	}
	m.Advance(time.Hour)
	if _, err := a.Execute(context.Background(), fail); !errors.As(err, &gaveUp) || gaveUp.Instance != "shared" {
		t.Errorf("a did not retry what it retries: %v", err)
	}
}

func TestBuild_G1_APipelineIsOneRecord(t *testing.T) {
	r, _ := newRegistry(t)
	rules := func() *pipeline.Builder[int] {
		return pipeline.New[int](r, "p").Retry(retry.On(errBoom)).Timeout(time.Second)
	}
	built(t, rules())
	built(t, rules()) // the same list of the same errors is known to be equal

	for name, tc := range map[string]struct {
		b    *pipeline.Builder[int]
		want []mistake
	}{
		"another layer":  {rules().Bulkhead(bulkhead.MaxConcurrent(1)), []mistake{{"R4C-REG-010", "bulkhead", "p", ""}}},
		"no layers":      {pipeline.New[int](r, "p"), []mistake{{"R4C-REG-010", "retry", "p", ""}, {"R4C-REG-010", "timeout", "p", ""}}},
		"other instance": {pipeline.New[int](r, "p").Retry(retry.Name("q")).Timeout(time.Second), []mistake{{"R4C-REG-010", "retry", "p", "name"}}},
		"a fallback": {
			rules().Fallback(func(context.Context, error) (int, error) { return 0, nil }),
			[]mistake{{"R4C-REG-010", "pipeline", "p", "fallback"}},
		},
		"another timeout": {pipeline.New[int](r, "p").Retry().Timeout(2 * time.Second), []mistake{{"R4C-REG-010", "timeout", "p", "value"}}},
		"functions": {
			pipeline.New[int](r, "p").Retry(retry.If(func(error) bool { return true }), retry.AbortOn(errBoom), retry.Rand(func() float64 { return 0 })).
				Timeout(time.Second, timeout.Func(func(context.Context) time.Duration { return 0 })),
			[]mistake{
				{"R4C-REG-011", "retry", "p", "rand"},
				{"R4C-REG-011", "retry", "p", "if"},
				{"R4C-REG-011", "retry", "p", "abortOn"},
				{"R4C-REG-011", "timeout", "p", "func"},
			},
		},
	} {
		_, err := tc.b.Build()
		if diff := cmp.Diff(tc.want, mistakes(err)); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%v", name, diff, err)
		}
	}
}

type uncomparable struct{ of []int }

func (uncomparable) Error() string { return "" }

func TestBuild_G1_ErrorsThatCannotBeComparedAreNotTheSame(t *testing.T) {
	r, _ := newRegistry(t)
	build := func() error {
		_, err := pipeline.New[int](r, "p").Retry(retry.On(uncomparable{[]int{1}})).Build()
		return err
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]mistake{{"R4C-REG-011", "retry", "p", "on"}}, mistakes(build())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBuild_G1_Ids(t *testing.T) {
	r, _ := newRegistry(t)
	for _, id := range []string{"", " a", "a ", "a\n", "a\x00b", "\xff"} {
		_, err := pipeline.New[int](r, id).Bulkhead(bulkhead.MaxConcurrent(1)).Build()
		if diff := cmp.Diff([]mistake{{"R4C-ATR-004", "pipeline", id, "id"}}, mistakes(err)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", id, diff)
		}
	}
	_, err := pipeline.New[int](r, "p").Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Name("x ")).Build()
	if diff := cmp.Diff([]mistake{{"R4C-ATR-004", "bulkhead", "x ", "name"}}, mistakes(err)); diff != "" {
		t.Errorf("name (-want +got)\n%s", diff)
	}
	if s := r.Snapshot(); len(s.Pipelines)+len(s.Bulkheads) != 0 {
		t.Errorf("registered: %+v", s)
	}
	for _, id := range []string{"com.acme.ReportApi#build(java.lang.String)", "a/b", `"`, "größe", "a.timeout.b"} {
		built(t, pipeline.New[int](r, id).Bulkhead(bulkhead.MaxConcurrent(1)))
		built(t, pipeline.New[int](r, id).Bulkhead(bulkhead.MaxConcurrent(1)))
	}
}

func TestField_CF10_AMistakeRegistersNothing(t *testing.T) {
	r, _ := newRegistry(t)
	var text string
	for range 20 {
		_, err := pipeline.New[int](r, "bad").
			Retry(retry.MaxAttempts(0), retry.Name("shared")).
			RateLimit(ratelimit.PerSecond(10)).
			Timeout(-1).
			Bulkhead(bulkhead.MaxConcurrent(0)).
			FailIf(func(int, error) bool { return true }).
			Config("missing").Build()
		want := []mistake{
			{"R4C-BLD-001", "circuitbreaker", "bad", "FailIf"},
			{"R4C-REG-004", "pipeline", "bad", "config"},
			{"R4C-ATR-003", "retry", "shared", "maxAttempts"},
			{"R4C-ATR-002", "timeout", "bad", "value"},
			{"R4C-ATR-003", "bulkhead", "bad", "maxConcurrent"},
		}
		if diff := cmp.Diff(want, mistakes(err)); diff != "" {
			t.Fatalf("(-want +got)\n%s\n%v", diff, err)
		}
		if got := err.Error(); text == "" {
			text = got
		} else if got != text {
			t.Fatalf("another text: %s\n%s", got, text)
		}
	}
	s := r.Snapshot()
	if n := len(s.Pipelines) + len(s.Timeouts) + len(s.Retries) + len(s.RateLimiters) + len(s.Bulkheads); n != 0 || s.Wheel.Pending != 0 {
		t.Errorf("registered: %+v", s)
	}
	// The builder's own mistakes alone prevent it, too.
	if _, err := pipeline.New[int](r, "bad").RetryIf(func(int, error) bool { return true }).Timeout(time.Second).Build(); err == nil {
		t.Error("RetryIf without a retry was accepted")
	}
	built(t, pipeline.New[int](r, "bad").Retry(retry.Name("shared")).RateLimit(ratelimit.PerSecond(10)).Timeout(1).Bulkhead(bulkhead.MaxConcurrent(1)))
}

func TestBuild_T12_ATimeoutOfZeroNeedsTheConfiguration(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances: {a: {timeout: {value: 3s}}}`)))
	built(t, pipeline.New[int](r, "a").Timeout(0))
	_, err := pipeline.New[int](r, "b").Timeout(0).Build()
	if diff := cmp.Diff([]mistake{{"R4C-ATR-002", "timeout", "b", "value"}}, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s := r.Snapshot(); len(s.Timeouts) != 1 || s.Timeouts[0].Config.Value != 3*time.Second {
		t.Errorf("timeouts: %+v", s.Timeouts)
	}
}
