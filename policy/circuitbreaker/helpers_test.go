package circuitbreaker_test

import (
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

var (
	epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	errE  = errors.New("the service is down")
)

func with(opts ...circuitbreaker.Option) circuitbreaker.Config {
	c := circuitbreaker.Default()
	c.Apply(opts...)
	return c
}

// must returns a breaker "reports" that stands alone.
func must(tb testing.TB, clk clock.Clock, opts ...circuitbreaker.Option) *circuitbreaker.Policy {
	tb.Helper()
	p, err := circuitbreaker.New("reports", with(opts...), clk)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// changes lists the states of the StateChanged events, "closed>open" each.
func changes(l *testkit.Journal) (all []string) {
	for _, e := range l.Events() {
		if e, ok := e.(circuitbreaker.StateChanged); ok {
			all = append(all, string(e.From)+">"+string(e.To))
		}
	}
	return all
}

// heard returns a breaker whose events go to listener.
func heard(tb testing.TB, clk clock.Clock, listener policy.Listener, opts ...circuitbreaker.Option) *circuitbreaker.Policy {
	tb.Helper()
	p, err := circuitbreaker.NewIn(scope.New(clk, listener), "reports", with(opts...))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// allow asks for a permit that must be given.
func allow(tb testing.TB, p *circuitbreaker.Policy) circuitbreaker.Permit {
	tb.Helper()
	permit, err := p.Allow()
	if err != nil {
		tb.Fatalf("Allow: %v, want a permit", err)
	}
	return permit
}

// record makes calls with these outcomes, one after the other.
func record(tb testing.TB, p *circuitbreaker.Policy, outcomes ...error) {
	tb.Helper()
	for _, err := range outcomes {
		allow(tb, p).Record(err)
	}
}

// refusal asks for a permit that must be refused.
func refusal(tb testing.TB, p *circuitbreaker.Policy) *circuitbreaker.Error {
	tb.Helper()
	_, err := p.Allow()
	var e *circuitbreaker.Error
	if !errors.As(err, &e) || !errors.Is(err, circuitbreaker.ErrOpen) {
		tb.Fatalf("Allow: %v, want a refusal", err)
	}
	return e
}

func refused(tb testing.TB, p *circuitbreaker.Policy) {
	tb.Helper()
	_ = refusal(tb, p)
}

func wantState(tb testing.TB, p *circuitbreaker.Policy, want circuitbreaker.State) {
	tb.Helper()
	if got := p.State(); got != want {
		tb.Fatalf("state %q, want %q", got, want)
	}
}
