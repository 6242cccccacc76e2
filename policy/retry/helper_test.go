package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

var (
	errBoom  = errors.New("boom")
	errOther = errors.New("other")
	start    = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
)

func config(opts ...retry.Option) retry.Config {
	c := retry.Default()
	c.Apply(opts...)
	return c
}

// on returns a retry on clk.
func on(tb testing.TB, clk clock.Clock, opts ...retry.Option) *retry.Policy {
	tb.Helper()
	p, err := retry.New("reports", config(opts...), clk)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// heard returns a retry in a scope of its own, and what it publishes.
func heard(tb testing.TB, clk clock.Clock, opts ...retry.Option) (*retry.Policy, *scope.Scope, *testkit.Journal) {
	tb.Helper()
	j := &testkit.Journal{}
	s := scope.New(clk, j.Listen)
	p, err := retry.NewIn(s, "reports", config(opts...))
	if err != nil {
		tb.Fatal(err)
	}
	return p, s, j
}

// script is a function that ends its calls as told and notes when they began.
type script struct {
	clk   clock.Clock
	ends  []error       // of the first calls; the last one is repeated
	takes time.Duration // how long a call takes, whatever its context says
	at    []time.Duration
	tries []int
}

func (s *script) call(ctx context.Context) error {
	s.at = append(s.at, s.clk.Now().Sub(start))
	s.tries = append(s.tries, retry.Attempt(ctx))
	if m, ok := s.clk.(*clock.Manual); ok && s.takes > 0 {
		m.Advance(s.takes)
	}
	return s.ends[min(len(s.at), len(s.ends))-1]
}

// refusal is what a policy below the retry answers.
type refusal struct {
	kind     string
	sentinel error
	wait     time.Duration
}

var (
	errOpen    = errors.New("open")
	errFull    = errors.New("full")
	errLimited = errors.New("limited")
)

func open(wait time.Duration) error    { return &refusal{"circuitbreaker", errOpen, wait} }
func full() error                      { return &refusal{"bulkhead", errFull, 0} }
func limited(wait time.Duration) error { return &refusal{"ratelimit", errLimited, wait} }

func (r *refusal) Error() string             { return r.sentinel.Error() }
func (r *refusal) Policy() string            { return r.kind }
func (r *refusal) ID() string                { return "backend" }
func (r *refusal) Started() bool             { return false }
func (r *refusal) Unwrap() error             { return r.sentinel }
func (r *refusal) RetryAfter() time.Duration { return r.wait }

var _ policy.RetryAfterer = (*refusal)(nil)

// hinted is a function's error with a hint of the server.
type hinted time.Duration

func (h hinted) Error() string             { return "come back later" }
func (h hinted) RetryAfter() time.Duration { return time.Duration(h) }

// asError returns the *retry.Error in err.
func asError(tb testing.TB, err error) *retry.Error {
	tb.Helper()
	var e *retry.Error
	if !errors.As(err, &e) {
		tb.Fatalf("got %v (%T), want a *retry.Error", err, err)
	}
	return e
}

// wantIs wants err to match all of targets.
func wantIs(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("error %q does not match %q", err, target)
		}
	}
}

// deadlineContext ends at a time of a manual clock, as the context of an outer
// pipeline does.
type deadlineContext struct {
	context.Context
	end time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.end, true }
