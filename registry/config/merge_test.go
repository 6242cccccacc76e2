package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry/config"
)

// Conformance 71 and G-2: each level overrides those below it, and an attribute
// that a level does not have comes from below.
func TestConform_71_LevelsOverrideInOrder(t *testing.T) {
	const everybody = "configs:\n  default: {retry: {maxAttempts: 11}}\n"
	const fast = "  fast: {retry: {maxAttempts: 12}}\n"
	const slow = "  slow: {retry: {maxAttempts: 14}}\n"
	var code config.Code[retryConfig]
	code.Keys = code.Config.Apply(retry.MaxAttempts(13))
	for _, tc := range []struct {
		name, text, base, env string
		code                  bool
		want                  int
		origin                string
	}{
		{"nothing", "", "", "", false, 3, "default"},
		{"configs.default", everybody, "", "", false, 11, "f:2"},
		{"the base named in code", everybody + fast, "fast", "", false, 12, "f:3"},
		{"code", everybody + fast, "fast", "", true, 13, "code"},
		{"the config of the instance", everybody + fast + slow + "instances: {a: {config: slow}}", "fast", "", true, 14, "f:4"},
		{"the instance", everybody + fast + slow + "instances: {a: {config: slow, retry: {maxAttempts: 15}}}", "fast", "", true, 15, "f:5"},
		{"the environment keeps the rank of its path", everybody + fast + slow + "instances: {a: {config: slow}}", "fast", "configs.fast.retry.maxAttempts=99", true, 14, "f:4"},
		{"the environment replaces a value", everybody + fast + slow + "instances: {a: {config: slow}}", "fast", "configs.slow.retry.maxAttempts=99", true, 99, "env"},
		{"another instance", everybody + "instances: {b: {retry: {maxAttempts: 15}}}", "", "", false, 11, "f:2"},
		{"config names default", everybody + "instances: {a: {config: default}}", "", "", true, 11, "f:2"},
	} {
		c, err := config.Parse("f", []byte(tc.text))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if c, err = c.WithEnv([]string{"RESILIENCE4CATA_SET=" + tc.env}); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		given := config.Code[retryConfig]{Base: tc.base}
		if tc.code {
			given.Config, given.Keys = code.Config, code.Keys
		}
		got, err := config.Retry(c, "a", given)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if got.Config.MaxAttempts != tc.want || got.Settings[0].Origin != tc.origin {
			t.Errorf("%s: %d from %s, want %d from %s", tc.name, got.Config.MaxAttempts, got.Settings[0].Origin, tc.want, tc.origin)
		}
		if got.Config.Delay != 100*ms || got.Settings[2].Origin != "default" {
			t.Errorf("%s: delay %v from %s, want the default", tc.name, got.Config.Delay, got.Settings[2].Origin)
		}
	}
}

// Conformance 71: configuration for a policy that is not in the pipeline is
// ignored, which Present lets the registry tell.
func TestPresentSaysWhetherTheFileNamesTheLayer(t *testing.T) {
	c := parse(t, `
configs:
  default: {timeout: {value: 1s}}
  slow: {retry: {}}
  fast: {bulkhead: {maxConcurrent: 3}}
instances:
  a: {config: slow, rateLimiter: {limit: 5}}
  b: {timeout: {enabled: false}}
`)
	d, err := config.Timeout(c, "a", config.Code[timeoutConfig]{})
	if err != nil || !d.Present || !d.Enabled {
		t.Errorf("timeout of configs.default: %+v, %v", d, err)
	}
	r, _ := config.Retry(c, "a", config.Code[retryConfig]{})
	l, _ := config.RateLimit(c, "a", config.Code[rateConfig]{})
	h, _ := config.Bulkhead(c, "a", config.Code[bulkheadConfig]{})
	fast, _ := config.Bulkhead(c, "a", config.Code[bulkheadConfig]{Base: "fast"})
	b, _ := config.CircuitBreaker(c, "a", config.Code[breakerConfig]{})
	if !r.Present || !l.Present || h.Present || !fast.Present || b.Present {
		t.Errorf("present: retry %v, limiter %v, bulkhead %v, with the base fast %v, breaker %v", r.Present, l.Present, h.Present, fast.Present, b.Present)
	}
	off, err := config.Timeout(c, "b", config.Code[timeoutConfig]{})
	if err != nil || off.Enabled || !off.Present {
		t.Errorf("enabled: false: %+v, %v", off, err)
	}
	for _, nobody := range []*config.Config{nil, parse(t, "")} {
		if got, err := config.Timeout(nobody, "a", config.Code[timeoutConfig]{}); err == nil || got.Present {
			t.Errorf("without a file: %+v, %v; want the error of a timeout without value", got, err)
		}
	}
}

func TestExplicitZeroIsAValue(t *testing.T) {
	c := parse(t, `
configs:
  default: {retry: {delay: 3s, jitter: 0.5, fullJitter: false, maxDuration: 9s}}
instances:
  a: {retry: {delay: 0, jitter: 0, maxDuration: 0s}}
`)
	got, err := config.Retry(c, "a", config.Code[retryConfig]{})
	if err != nil || got.Config.Delay != 0 || got.Config.Jitter != 0 || got.Config.MaxDuration != 0 {
		t.Errorf("%+v, %v", got.Config, err)
	}
}

// B-2: what is not said of queue and maxWait bounds nothing if the other is.
func TestBulkheadB2_OneOfQueueAndMaxWait(t *testing.T) {
	for _, tc := range []struct {
		file  string
		opts  []bulkhead.Option
		queue int
		wait  time.Duration
		word  string
	}{
		{"{}", nil, 0, 0, ""},
		{"{queue: 5}", nil, 5, -1, "maxWait"},
		{"{maxWait: 1s}", nil, -1, time.Second, "queue"},
		{"{queue: 5, maxWait: 1s}", nil, 5, time.Second, ""},
		{"{queue: 0}", nil, 0, -1, "maxWait"},
		{"{maxWait: 0}", nil, -1, 0, "queue"},
		{"{queue: unlimited, maxWait: 0s}", nil, -1, 0, "queue"},
		{"{queue: 5}", []bulkhead.Option{bulkhead.MaxWait(time.Second)}, 5, time.Second, ""},
		{"{}", []bulkhead.Option{bulkhead.Queue(5)}, 5, -1, "maxWait"},
		{"{queue: 7}", []bulkhead.Option{bulkhead.Queue(5)}, 7, -1, "maxWait"},
		{"{maxWait: unlimited}", []bulkhead.Option{bulkhead.Queue(5)}, 5, -1, "maxWait"},
	} {
		c := parse(t, "instances: {a: {bulkhead: "+tc.file+"}}")
		var code config.Code[bulkheadConfig]
		code.Keys = code.Config.Apply(append(tc.opts, bulkhead.MaxConcurrent(1))...)
		got, err := config.Bulkhead(c, "a", code)
		if err != nil || got.Config.Queue != tc.queue || got.Config.MaxWait != tc.wait {
			t.Errorf("%s with %v: queue %d, maxWait %v, %v; want %d, %v", tc.file, tc.opts, got.Config.Queue, got.Config.MaxWait, err, tc.queue, tc.wait)
		}
		for _, s := range got.Settings {
			if tc.word != "" && strings.HasSuffix(s.Path, "."+tc.word) && s.Value != "unlimited" {
				t.Errorf("%s: %s shown as %q, want unlimited", tc.file, s.Path, s.Value)
			}
		}
	}
}

func TestBurstIsTheEffectiveLimit(t *testing.T) {
	var code config.Code[rateConfig]
	code.Keys = code.Config.Apply(ratelimit.PerSecond(10))
	for _, tc := range []struct {
		file               string
		limit, burst       int
		burstIsFromDefault bool
	}{
		{"{}", 10, 10, true},
		{"{limit: 50}", 50, 50, true},
		{"{limit: 50, burst: 3}", 50, 3, false},
		{"{burst: 3}", 10, 3, false},
	} {
		got, err := config.RateLimit(parse(t, "instances: {a: {rateLimiter: "+tc.file+"}}"), "a", code)
		if err != nil || got.Config.Limit != tc.limit || got.Config.Burst != tc.burst || got.Config.Period != time.Second {
			t.Errorf("%s: %+v, %v", tc.file, got.Config, err)
		}
	}
}

// Of window and timeWindow the one that is set at the higher level holds.
func TestBreakerHasTheWindowOfTheHigherLevel(t *testing.T) {
	count := []circuitbreaker.Option{circuitbreaker.CountWindow(40)}
	span := []circuitbreaker.Option{circuitbreaker.TimeWindow(9 * time.Second)}
	for _, tc := range []struct {
		everybody, own string
		opts           []circuitbreaker.Option
		window         int
		timeWindow     time.Duration
	}{
		{"{}", "{}", nil, 100, 0},
		{"{timeWindow: 10s}", "{}", nil, 0, 10 * time.Second},
		{"{timeWindow: 10s}", "{window: 50}", nil, 50, 0},
		{"{window: 50}", "{timeWindow: 10s}", nil, 0, 10 * time.Second},
		{"{timeWindow: 10s}", "{timeWindow: 0}", nil, 100, 0},
		{"{timeWindow: 10s}", "{}", count, 40, 0},
		{"{window: 50}", "{}", span, 0, 9 * time.Second},
		{"{}", "{window: 50}", span, 50, 0},
		{"{}", "{timeWindow: 10s}", count, 0, 10 * time.Second},
		{"{}", "{}", append(count, span...), 0, 9 * time.Second},
		{"{}", "{}", append(span, count...), 40, 0},
	} {
		c := parse(t, "configs: {default: {circuitBreaker: "+tc.everybody+"}}\ninstances: {a: {circuitBreaker: "+tc.own+"}}")
		var code config.Code[breakerConfig]
		code.Keys = code.Config.Apply(tc.opts...)
		got, err := config.CircuitBreaker(c, "a", code)
		if err != nil || got.Config.Window != tc.window || got.Config.TimeWindow != tc.timeWindow {
			t.Errorf("%s, %v, %s: window %d, timeWindow %v, %v; want %d, %v", tc.everybody, tc.opts, tc.own,
				got.Config.Window, got.Config.TimeWindow, err, tc.window, tc.timeWindow)
		}
	}
	got := refuse(t, "configs: {x: {circuitBreaker: {timeWindow: 10s, window: 50}}}")
	if want := `resilience.yaml:1:57: configs.x.circuitBreaker.window: window together with timeWindow (a breaker has one window: remove one of the two) [R4C-ATR-007]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Functions and error lists are the code's, and code's own slices stay its own
// (G-10).
func TestFunctionsOfTheCodePassThrough(t *testing.T) {
	errA, errB := errors.New("a"), errors.New("b")
	list := []error{errA}
	c := parse(t, "instances: {a: {retry: {maxAttempts: 9, budget: {ratio: 0.5}}, timeout: {value: 3s}}}")
	code := config.Code[retryConfig]{Config: retryConfig{On: list, Budget: &retry.BudgetConfig{Ratio: .1, MinPerSecond: 7}}, Keys: []string{"budget"}}
	r, err := config.Retry(c, "a", code)
	list[0] = errB
	if err != nil || len(r.Config.On) != 1 || !errors.Is(r.Config.On[0], errA) {
		t.Errorf("On = %v, %v", r.Config.On, err)
	}
	if diff := cmp.Diff(&retry.BudgetConfig{Ratio: .5, MinPerSecond: 7}, r.Config.Budget); diff != "" {
		t.Errorf("budget (-want +got)\n%s", diff)
	}
	if code.Config.Budget.Ratio != .1 {
		t.Error("the code's own budget was written to")
	}
	d, err := config.Timeout(c, "a", config.Code[timeoutConfig]{Config: timeout.Config{Func: func(context.Context) time.Duration { return 5 }}})
	if err != nil || d.Config.Func == nil || d.Config.Value != 3*time.Second {
		t.Errorf("%+v, %v", d.Config, err)
	}
}

// G-2: only the merged result is validated, with the place of the value.
func TestOnlyTheMergedResultIsValidated(t *testing.T) {
	c := parse(t, "configs:\n  default: {timeout: {value: 0s}, bulkhead: {maxConcurrent: -1}}\ninstances:\n  good: {timeout: {value: 1s}}\n")
	if _, err := config.Timeout(c, "good", config.Code[timeoutConfig]{}); err != nil {
		t.Errorf("overridden: %v", err)
	}
	_, err := config.Timeout(c, "bad", config.Code[timeoutConfig]{})
	if want := `resilience.yaml:2:30: configs.default.timeout.value: 0s is not a positive duration (give a duration above 0, such as 2s, or leave the timeout out) [R4C-ATR-002]`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = config.Bulkhead(c, "bad", config.Code[bulkheadConfig]{})
	if want := `resilience.yaml:2:61: configs.default.bulkhead.maxConcurrent: -1 is out of range (give a value at least 1) [R4C-ATR-003]`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	// In code there is no place, but a policy, an id and a key.
	_, err = config.Bulkhead(nil, "a", config.Code[bulkheadConfig]{Config: bulkheadConfig{MaxConcurrent: -3}, Keys: []string{"maxConcurrent"}})
	if errs := policy.ConfigErrors(err); len(errs) != 1 || errs[0].File != "" || errs[0].ID != "a" || !strings.HasPrefix(err.Error(), `bulkhead "a": maxConcurrent: `) {
		t.Errorf("in code: %v", err)
	}
	// Contradictions show in the merged result alone.
	_, err = config.Retry(parse(t, "configs: {default: {retry: {jitter: 0.5}}}\ninstances: {a: {retry: {fullJitter: true}}}"), "a", config.Code[retryConfig]{})
	if errs := policy.ConfigErrors(err); len(errs) != 1 || errs[0].Code != "R4C-ATR-007" || errs[0].Line != 2 {
		t.Errorf("jitter with fullJitter: %v", err)
	}
}

// G-2: a value that must be set and is not is told with the place of its layer,
// and as missing, not as the zero that nobody wrote.
func TestMissingValueSaysThatItMustBeSet(t *testing.T) {
	c := parse(t, "instances:\n  a: {bulkhead: {queue: 1}, rateLimiter: {period: 1s}, timeout: {}, retry: {}}\nconfigs: {default: {bulkhead: {}}}")
	_, bulkheadErr := config.Bulkhead(c, "a", config.Code[bulkheadConfig]{})
	_, limiterErr := config.RateLimit(c, "a", config.Code[rateConfig]{})
	_, timeoutErr := config.Timeout(c, "a", config.Code[timeoutConfig]{})
	_, defaultErr := config.Bulkhead(c, "b", config.Code[bulkheadConfig]{})
	_, codeErr := config.Timeout(c, "b", config.Code[timeoutConfig]{})
	_, zeroErr := config.Bulkhead(c, "b", config.Code[bulkheadConfig]{Keys: []string{"maxConcurrent"}})
	for _, tc := range []struct {
		err  error
		want string
	}{
		{bulkheadErr, `resilience.yaml:2:7: instances."a".bulkhead.maxConcurrent: must be set (write bulkhead: {maxConcurrent: 10}, or give it in code) [R4C-ATR-003]`},
		{limiterErr, `resilience.yaml:2:29: instances."a".rateLimiter.limit: must be set (write rateLimiter: {limit: 50}, or give it in code) [R4C-ATR-003]`},
		{timeoutErr, `resilience.yaml:2:56: instances."a".timeout.value: must be set (write timeout: {value: 2s}, or give it in code) [R4C-ATR-002]`},
		{defaultErr, `resilience.yaml:3:21: configs.default.bulkhead.maxConcurrent: must be set (write bulkhead: {maxConcurrent: 10}, or give it in code) [R4C-ATR-003]`},
		{codeErr, `timeout "b": value: must be set (give it in code, or in the configuration as timeout: {value: 2s}) [R4C-ATR-002]`},
		{zeroErr, `bulkhead "b": maxConcurrent: 0 lets no call in (give the number of calls that may run at once, at least 1) [R4C-ATR-003]`},
	} {
		if tc.err == nil || tc.err.Error() != tc.want {
			t.Errorf("got  %v\nwant %s", tc.err, tc.want)
		}
	}
	if errs := policy.ConfigErrors(bulkheadErr); len(errs) != 1 || errs[0].ID != "a" || errs[0].Policy != "bulkhead" {
		t.Errorf("missing value: %+v", errs)
	}
}

func TestUnknownBaseInCode(t *testing.T) {
	_, err := config.Timeout(parse(t, "configs: {slow: {timeout: {value: 3s}}}"), "a", config.Code[timeoutConfig]{Base: "slwo", Config: timeoutConfig{Value: 1}, Keys: []string{"value"}})
	if want := `timeout "a": config: unknown config "slwo" (did you mean "slow"?) [R4C-REG-004]`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = config.Timeout(nil, "a", config.Code[timeoutConfig]{Base: "slow", Config: timeoutConfig{Value: 1}, Keys: []string{"value"}})
	if want := `timeout "a": config: unknown config "slow" (there are no configs) [R4C-REG-004]`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
