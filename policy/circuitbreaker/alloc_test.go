package circuitbreaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

func wantAllocs(t *testing.T, what string, want float64, f func()) {
	t.Helper()
	if got := testing.AllocsPerRun(200, f); got != want {
		t.Errorf("%s: %v allocations, want %v", what, got, want)
	}
}

func TestClosedPathDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations differ under the race detector")
	}
	ctx := t.Context()
	other := errors.New("another one")
	for _, tc := range []struct {
		name string
		opts []circuitbreaker.Option
	}{
		{"count window", nil},
		{"time window", []circuitbreaker.Option{circuitbreaker.TimeWindow(time.Hour)}},
		{"slow calls", []circuitbreaker.Option{circuitbreaker.SlowCall(time.Second, .5)}},
		{"own judgment", []circuitbreaker.Option{
			circuitbreaker.FailIf(func(err error) bool { return errors.Is(err, other) }), circuitbreaker.Ignore(other),
		}},
	} {
		p := heard(t, clock.NewManual(epoch), func(context.Context, policy.Event) {},
			append(tc.opts, circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(10))...)
		if tc.name == "time window" {
			p = heard(t, clock.NewManual(epoch), nil, tc.opts...)
		}
		p.ForceClosed()
		for what, outcome := range map[string]error{"success": nil, "failure": errE, "ignored": other} {
			wantAllocs(t, tc.name+", "+what, 0, func() {
				permit, err := p.Enter(ctx)
				if err != nil {
					t.Fatal(err)
				}
				permit.Record(outcome)
			})
		}
	}
}

func TestRefusalAllocatesItsErrorAlone(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations differ under the race detector")
	}
	p := must(t, clock.NewManual(epoch))
	p.ForceOpen()
	wantAllocs(t, "refused by hand", 1, func() { _, _ = p.Allow() })
	p = must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(1))
	record(t, p, errE)
	wantAllocs(t, "open", 1, func() { _, _ = p.Allow() })
}
