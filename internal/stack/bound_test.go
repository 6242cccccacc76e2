package stack_test

import (
	"context"
	"math"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// layers makes what bounds a call; limit 0: no timeout, wait -1: no limiter, nil:
// no retry.
func layers(t *testing.T, limit, wait time.Duration, opts []retry.Option, dynamic bool) *stack.Layers {
	t.Helper()
	s := scope.New(clock.NewManual(time.Unix(0, 0)), nil)
	l := &stack.Layers{}
	var err error
	if limit > 0 {
		c := timeout.Config{Value: limit}
		if dynamic {
			c.Func = func(context.Context) time.Duration { return limit }
		}
		if l.Timeout, err = timeout.NewIn(s, "p", c, opts != nil); err != nil {
			t.Fatal(err)
		}
	}
	if wait >= 0 {
		if l.Limiter, err = ratelimit.NewIn(s, "p", ratelimit.Config{Limit: 1, Period: time.Second, Burst: 1}); err != nil {
			t.Fatal(err)
		}
		l.LimiterWait = wait
	}
	if opts != nil {
		c := retry.Default()
		c.Apply(opts...)
		if l.Retry, err = retry.NewIn(s, "p", c); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestBound_R17(t *testing.T) {
	const s, ms, none = time.Second, time.Millisecond, time.Duration(-1)
	type options = []retry.Option
	for name, tc := range map[string]struct {
		l    *stack.Layers
		want time.Duration // none: no bound
	}{
		"attempts and delays":         {layers(t, 2*s, none, options{retry.MaxAttempts(3), retry.Exponential(100*ms, 2)}, false), 6300 * ms},
		"and the limiter's wait":      {layers(t, 2*s, 50*ms, options{retry.MaxAttempts(3), retry.Exponential(100*ms, 2)}, false), 6450 * ms},
		"maxDuration is less":         {layers(t, 2*s, none, options{retry.MaxDuration(5 * s)}, false), 5 * s},
		"maxDuration is more":         {layers(t, 2*s, none, options{retry.MaxAttempts(1), retry.MaxDuration(5 * s)}, false), 2 * s},
		"upper jitter":                {layers(t, s, none, options{retry.MaxAttempts(2), retry.Constant(s), retry.Jitter(.25)}, false), 3250 * ms},
		"upper jitter, capped":        {layers(t, s, none, options{retry.MaxAttempts(2), retry.Constant(s), retry.Jitter(.25), retry.MaxDelay(s)}, false), 3 * s},
		"no retry":                    {layers(t, 2*s, 20*ms, nil, false), 2020 * ms},
		"nothing":                     {layers(t, 0, none, nil, false), none},
		"a limiter alone":             {layers(t, 0, s, nil, false), none},
		"a retry alone":               {layers(t, 0, none, options{}, false), none},
		"maxDuration alone":           {layers(t, 0, none, options{retry.MaxDuration(s)}, false), s},
		"unlimited":                   {layers(t, s, none, options{retry.Unlimited()}, false), none},
		"unlimited with maxDuration":  {layers(t, s, none, options{retry.Unlimited(), retry.MaxDuration(9 * s)}, false), 9 * s},
		"a timeout that is asked for": {layers(t, s, none, options{}, true), none},
		"with maxDuration":            {layers(t, s, none, options{retry.MaxDuration(9 * s)}, true), 9 * s},
		"saturates":                   {layers(t, math.MaxInt64, s, options{}, false), math.MaxInt64},
		"saturates without a retry":   {layers(t, math.MaxInt64, s, nil, false), math.MaxInt64},
	} {
		got, ok := stack.Bound(tc.l)
		if ok != (tc.want != none) || ok && got != tc.want {
			t.Errorf("%s: %v %v, want %v", name, got, ok, tc.want)
		}
	}
}
