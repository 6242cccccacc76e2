package stack_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

var clk = clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))

func must[P any](t *testing.T, p P, err error) P {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func retries(t *testing.T, opts ...retry.Option) *retry.Policy {
	t.Helper()
	c := retry.Default()
	c.Apply(opts...)
	p, err := retry.New("x", c, clk)
	return must(t, p, err)
}

func limiter(t *testing.T, n int, per time.Duration) *ratelimit.Policy {
	t.Helper()
	p, err := ratelimit.New("x", ratelimit.Config{Limit: n, Period: per, Burst: n}, clk)
	return must(t, p, err)
}

func timer(t *testing.T, d time.Duration, opts ...timeout.Option) *timeout.Policy {
	t.Helper()
	c := timeout.Config{Value: d}
	c.Apply(opts...)
	p, err := timeout.New("x", c, clk)
	return must(t, p, err)
}

func TestOrderAndDescribeGoFromTheOutsideIn(t *testing.T) { // O-1
	breaker, err := circuitbreaker.New("x", circuitbreaker.Default(), clk)
	must(t, breaker, err)
	slots, err := bulkhead.New("x", bulkhead.Config{MaxConcurrent: 10}, clk)
	must(t, slots, err)
	for name, tc := range map[string]struct {
		fallback bool
		layers   *stack.Layers // nil: as New made it
		order    []string
		text     []string
	}{
		"none": {order: []string{}},
		"all": {
			fallback: true,
			layers: &stack.Layers{
				Bulkhead: slots, Timeout: timer(t, 2*time.Second), Limiter: limiter(t, 50, time.Second),
				Breaker: breaker, Retry: retries(t, retry.MaxDuration(90*time.Second)),
			},
			order: []string{"fallback", "retry", "circuitbreaker", "ratelimit", "timeout", "bulkhead"},
			text:  []string{"fallback", "retry(3 in 1m30s)", "circuitbreaker(0.5)", "ratelimit(50/1s)", "timeout(2s)", "bulkhead(10)"},
		},
		"some": {
			layers: &stack.Layers{Retry: retries(t, retry.Unlimited()), Limiter: limiter(t, 5, 24*time.Hour), Timeout: timer(t, 10*time.Minute)},
			order:  []string{"retry", "ratelimit", "timeout"},
			text:   []string{"retry(unlimited)", "ratelimit(5/24h)", "timeout(10m)"},
		},
		"long": {
			layers: &stack.Layers{Retry: retries(t), Timeout: timer(t, 20*time.Minute+10*time.Second)},
			order:  []string{"retry", "timeout"},
			text:   []string{"retry(3)", "timeout(20m10s)"},
		},
	} {
		s := stack.New("x", scope.New(clk, nil), stack.NewGate())
		s.Fallback = tc.fallback
		if tc.layers != nil {
			s.SetLayers(tc.layers)
		}
		if diff := cmp.Diff(tc.order, s.AppendOrder([]string{})); diff != "" {
			t.Errorf("%s: order (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.text, s.Describe()); diff != "" {
			t.Errorf("%s: description (-want +got)\n%s", name, diff)
		}
	}
}

func TestSetLayersLeavesCallsInFlightTheirs(t *testing.T) { // G-7
	s := stack.New("x", nil, stack.NewGate())
	before := s.Layers()
	s.SetLayers(&stack.Layers{LimiterWait: time.Second})
	if before.LimiterWait != 0 || s.Layers().LimiterWait != time.Second {
		t.Error("the old layers were changed, or the new ones are not in force")
	}
}
