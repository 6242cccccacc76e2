package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
)

const before = `
instances:
  reports:
    retry:       {maxAttempts: 2, delay: 0s}
    rateLimiter: {limit: 50}
    timeout:     {value: 2s}
    bulkhead:    {maxConcurrent: 10}
    circuitBreaker: {minCalls: 1, window: 1}
`

// reports builds a pipeline with all layers, as the configuration has it.
func reports(t *testing.T, text string) (*registry.Registry, *pipeline.Pipeline[int]) {
	t.Helper()
	r, _ := newRegistry(t, registry.WithConfig(parse(t, text)))
	return r, built(t, pipeline.Configured[int](r, "reports"))
}

func TestReload_G7_ChangesValuesAndKeepsHandlesAndState(t *testing.T) {
	r, p := reports(t, before)
	limiter, _ := r.RateLimiter("reports")
	slots, _ := r.Bulkhead("reports")
	breaker, _ := r.CircuitBreaker("reports")
	if _, err := p.Execute(t.Context(), fail); err == nil {
		t.Fatal("it succeeded")
	}
	if breaker.State() != circuitbreaker.Open || !slots.TryAcquire() {
		t.Fatal(breaker.State())
	}
	if err := r.Reload(parse(t, `
instances:
  reports:
    retry:       {maxAttempts: 4, maxDuration: 7s}
    rateLimiter: {limit: 20, period: 2s, maxWait: 1s}
    timeout:     {value: 3s}
    bulkhead:    {maxConcurrent: 5, queue: 3}
    circuitBreaker: {minCalls: 1, window: 1, openFor: 9s}
`)); err != nil {
		t.Fatal(err)
	}
	s := r.Snapshot()
	if c := s.RateLimiters[0].Config; c.Limit != 20 || c.Period != 2*time.Second || c.Burst != 20 {
		t.Errorf("limiter: %+v", c)
	}
	if again, _ := r.RateLimiter("reports"); again != limiter {
		t.Error("another handle")
	}
	if b := s.Bulkheads[0]; b.Limit != 5 || b.InUse != 1 || b.Config.Queue != 3 {
		t.Errorf("bulkhead: %+v", b)
	}
	if s.Timeouts[0].Config.Value != 3*time.Second || s.Retries[0].Config.MaxAttempts != 4 || s.Retries[0].Config.MaxDuration != 7*time.Second {
		t.Errorf("%+v %+v", s.Timeouts, s.Retries)
	}
	if b := s.CircuitBreakers[0]; b.State != circuitbreaker.Open || b.RetryAfterMs != 9000 {
		t.Errorf("breaker: %+v", b)
	}
	if got := s.Pipelines[0].Bound; got != "7s" {
		t.Errorf("bound %q", got)
	}
	if s.Pipelines[0].Calls.Started != 1 {
		t.Errorf("counters: %+v", s.Pipelines[0].Calls)
	}
}

func TestReload_G7_MistakesChangeNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []mistake
	}{
		"a value that the merge makes invalid": {
			`instances: {reports: {retry: {fullJitter: true, jitter: 0.5}, rateLimiter: {limit: 1}, timeout: {value: 9s}, bulkhead: {}, circuitBreaker: {}}}`,
			[]mistake{
				{"R4C-ATR-007", "retry", "reports", `instances."reports".retry.fullJitter`},
				{"R4C-ATR-003", "bulkhead", "reports", `instances."reports".bulkhead.maxConcurrent`},
			},
		},
		"a layer less": {
			`instances: {reports: {retry: {}, rateLimiter: {limit: 1}, timeout: {value: 9s}, circuitBreaker: {}}}`,
			[]mistake{{"R4C-REG-013", "bulkhead", "reports", ""}},
		},
		"another instance": {
			`instances: {reports: {retry: {name: x}, rateLimiter: {limit: 1}, timeout: {value: 9s}, circuitBreaker: {}, bulkhead: {maxConcurrent: 1}}}`,
			[]mistake{{"R4C-REG-013", "retry", "reports", "name"}},
		},
		"the instance is gone": {
			`instances: {report: {retry: {}}}`,
			[]mistake{
				{"R4C-REG-012", "pipeline", "reports", `instances."reports"`},
				{"R4C-REG-013", "retry", "reports", ""},
				{"R4C-REG-013", "circuitbreaker", "reports", ""},
				{"R4C-REG-013", "ratelimit", "reports", ""},
				{"R4C-REG-013", "timeout", "reports", ""},
				{"R4C-REG-013", "bulkhead", "reports", ""},
			},
		},
	} {
		r, _ := reports(t, before)
		was := r.Snapshot()
		err := r.Reload(parse(t, tc.text))
		if diff := cmp.Diff(tc.want, mistakes(err)); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%v", name, diff, err)
		}
		if diff := cmp.Diff(was, r.Snapshot()); diff != "" {
			t.Errorf("%s: something changed (-before +after)\n%s", name, diff)
		}
	}
	r, _ := reports(t, before)
	if diff := cmp.Diff([]mistake{{"R4C-REG-009", "registry", "", "Reload"}}, mistakes(r.Reload(nil))); diff != "" {
		t.Errorf("nil (-want +got)\n%s", diff)
	}
	_ = r.Close()
	if err := r.Reload(parse(t, before)); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestReload_G7_NewLayersOfAConfiguredPipelineAreRefused(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances: {a: {timeout: {value: 1s}}}`)))
	built(t, pipeline.Configured[int](r, "a"))
	built(t, pipeline.New[int](r, "b").Timeout(time.Second))
	err := r.Reload(parse(t, `configs: {default: {bulkhead: {maxConcurrent: 3}}}
instances: {a: {timeout: {value: 1s}}}`))
	if diff := cmp.Diff([]mistake{{"R4C-REG-013", "bulkhead", "a", ""}}, mistakes(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReload_G7_SwitchesLayersOffAndOn(t *testing.T) {
	text := func(enabled string) string {
		return `instances: {reports: {retry: {maxAttempts: 1, enabled: ` + enabled + `}, rateLimiter: {limit: 1, enabled: ` + enabled +
			`}, timeout: {value: 1s, enabled: ` + enabled + `}, bulkhead: {maxConcurrent: 1, enabled: ` + enabled + `}, circuitBreaker: {enabled: ` + enabled + `}}}`
	}
	r, p := reports(t, text("false"))
	if s := r.Snapshot(); len(s.Pipelines[0].Order)+len(s.Timeouts)+len(s.Bulkheads) != 0 {
		t.Errorf("%+v", s)
	}
	for range 3 {
		if _, err := p.Execute(t.Context(), succeed); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Reload(parse(t, text("true"))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"retry", "circuitbreaker", "ratelimit", "timeout", "bulkhead"}, r.Snapshot().Pipelines[0].Order); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	attempt := 0
	_, _ = p.Execute(t.Context(), func(ctx context.Context) (int, error) {
		attempt = retry.Attempt(ctx)
		return 0, nil
	})
	if _, err := p.Execute(t.Context(), succeed); !errors.Is(err, ratelimit.ErrLimited) || attempt != 1 {
		t.Errorf("on: %v, attempt %d", err, attempt)
	}
	if err := r.Reload(parse(t, text("false"))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Execute(t.Context(), succeed); err != nil {
		t.Errorf("off: %v", err)
	}
	if n := r.Snapshot().RateLimiters[0].Admitted; n != 1 {
		t.Errorf("counters are gone: %d", n)
	}
}

func TestReload_G7_WhatAHandleSetStaysUnlessThatKeyChanged(t *testing.T) {
	text := func(limit, concurrent string) string {
		return `instances: {reports: {rateLimiter: {limit: ` + limit + `, burst: 5}, bulkhead: {maxConcurrent: ` + concurrent + `, queue: ` + limit + `}}}`
	}
	r, _ := reports(t, text("50", "10"))
	limiter, _ := r.RateLimiter("reports")
	slots, _ := r.Bulkhead("reports")
	if err := errors.Join(limiter.SetRate(600, time.Minute, 7), slots.SetLimit(3)); err != nil {
		t.Fatal(err)
	}
	step := func(limit, concurrent string, rate ratelimit.Config, slotsLimit int) {
		t.Helper()
		if err := r.Reload(parse(t, text(limit, concurrent))); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rate, limiter.Config()); diff != "" {
			t.Errorf("rate (-want +got)\n%s", diff)
		}
		if got := slots.Snapshot().Limit; got != slotsLimit {
			t.Errorf("limit %d, want %d", got, slotsLimit)
		}
	}
	step("50", "10", ratelimit.Config{Limit: 600, Period: time.Minute, Burst: 7}, 3)
	step("60", "10", ratelimit.Config{Limit: 60, Period: time.Second, Burst: 7}, 3)
	step("60", "11", ratelimit.Config{Limit: 60, Period: time.Second, Burst: 7}, 11)
}

func TestReload_G7_CallsInFlightKeepWhatTheyStartedWith(t *testing.T) {
	r, p := reports(t, `instances: {reports: {retry: {maxAttempts: 3, delay: 1s}, timeout: {value: 2s}}}`)
	n := 0
	_, err := p.Execute(t.Context(), func(context.Context) (int, error) {
		if n++; n == 1 {
			if err := r.Reload(parse(t, `instances: {reports: {retry: {maxAttempts: 1}, timeout: {value: 1s, enabled: false}}}`)); err != nil {
				t.Error(err)
			}
		}
		return 0, errBoom
	})
	if n != 3 || !errors.Is(err, retry.ErrExhausted) {
		t.Errorf("%d attempts: %v", n, err)
	}
	n = 0
	if _, _ = p.Execute(t.Context(), func(context.Context) (int, error) { n++; return 0, errBoom }); n != 1 {
		t.Errorf("%d attempts after the reload", n)
	}
}

// A callback that a reload has called may reload, too.
func TestReload_X3_ACallbackMayReload(t *testing.T) {
	var r *registry.Registry
	var once sync.Once
	text := `instances: {p: {rateLimiter: {limit: 1, maxWait: 1h}, retry: {maxAttempts: 1}}}`
	listen := func(_ context.Context, e policy.Event) {
		if _, ok := e.(ratelimit.Limited); ok {
			once.Do(func() {
				r.Snapshot()
				if err := r.Reload(parse(t, text)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	r, m := newRegistry(t, registry.WithConfig(parse(t, text)), registry.WithListener(listen))
	m.Passive()
	p := built(t, pipeline.Configured[int](r, "p"))
	_, _ = p.Execute(t.Context(), succeed)
	f := p.ExecuteAsync(t.Context(), succeed) // waits 1 s
	if err := m.AwaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(parse(t, `instances: {p: {rateLimiter: {limit: 1, period: 10h, maxWait: 1h}, retry: {maxAttempts: 1}}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context()); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("a waiter that no longer fits: %v", err)
	}
}

// A file changes on disk while calls run: none is lost, none sees a mixture that
// was never configured, and a bad file changes nothing.
func TestReload_G7_AFileChangesUnderLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resilience.yaml")
	write := func(text string) *config.Config {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(file)
		if err != nil {
			return nil
		}
		return c
	}
	text := func(n string) string {
		return `instances: {p: {bulkhead: {maxConcurrent: ` + n + `, queue: unlimited, maxWait: unlimited}, timeout: {value: 1h}}}`
	}
	r, err := registry.New(registry.WithConfig(write(text("4"))))
	if err != nil {
		t.Fatal(err)
	}
	p := built(t, pipeline.Configured[int](r, "p"))
	var wg sync.WaitGroup
	var stop atomic.Bool
	var calls, peak, inside atomic.Int64
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				_, err := p.Execute(context.Background(), func(context.Context) (int, error) {
					n := inside.Add(1)
					defer inside.Add(-1)
					for old := peak.Load(); n > old; old = peak.Load() {
						peak.CompareAndSwap(old, n)
					}
					return 0, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for i := range 24 {
		n := []string{"4", "3", "2", "1"}[i%4]
		if err := r.Reload(write(text(n))); err != nil {
			t.Error(err)
		}
		if bad := write(`instances: {p: {bulkhead: {maxConcurrent: 0}}}`); bad != nil {
			t.Error("a bad file was read")
		}
	}
	stop.Store(true)
	wg.Wait()
	s := r.Snapshot()
	if peak.Load() > 4 || uint64(calls.Load()) != s.Pipelines[0].Calls.Succeeded || s.Bulkheads[0].InUse != 0 || s.Bulkheads[0].Limit != 1 {
		t.Errorf("peak %d, calls %d, %+v", peak.Load(), calls.Load(), s)
	}
}
