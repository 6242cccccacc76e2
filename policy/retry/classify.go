package retry

import (
	"context"
	"errors"
	"slices"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
)

// verdict is what the rules say about an error.
type verdict uint8

const (
	never     verdict = iota // not to be retried
	retryable                // to be retried
	ifDelayed                // to be retried if there is a delay before
)

// classify judges the error of an attempt.
//
// The exceptions come first, whoever decides: what was marked as permanent; a
// closed registry; an inner retry's empty budget, which would be asked again;
// and, unless On names it, what the attempt's own breaker or bulkhead refused.
// A predicate does not ask for those two: "all but not-found" means errors of
// the work. A refusal in a nested pipeline is the function's error like any
// other. Panics never get here.
func (p *Policy) classify(ctx context.Context, g *settings, kind Kind, err error, d Decision) verdict {
	if err != nil && (marked(err) || errors.Is(err, scope.ErrClosed) || errors.Is(err, ErrBudget)) {
		return never
	}
	rules := g.rules
	if p.rules != nil {
		rules = p.rules
	}
	yes := retryable
	if kind == Refused && (d != ByRules || !matches(rules.on, err)) {
		switch refuser(err) {
		case "circuitbreaker":
			return never
		case "bulkhead":
			yes = ifDelayed
		}
	}
	switch {
	case d == Yes:
		return yes
	case d == No || !p.allows(ctx, rules, err):
		return never
	default:
		return yes
	}
}

// rules are the four settings that a layer may have of its own.
type rules struct {
	on, abortOn   []error
	when, abortIf func(error) bool
}

// Asks reports whether the user's functions have a say in what follows an
// attempt. It is for package pipeline.
func (p *Policy) Asks() bool {
	g := p.settings.Load()
	r := g.rules
	if p.rules != nil {
		r = p.rules
	}
	return r.when != nil || r.abortIf != nil || g.config.DelayFunc != nil || g.config.Rand != nil
}

func rulesOf(c *Config) *rules {
	return &rules{slices.Clone(c.On), slices.Clone(c.AbortOn), c.If, c.AbortIf}
}

// allows asks the user's four rules.
func (p *Policy) allows(ctx context.Context, r *rules, err error) bool {
	if matches(r.abortOn, err) || p.ask(ctx, r.abortIf, err) {
		return false
	}
	if r.on == nil && r.when == nil {
		return true
	}
	return matches(r.on, err) || p.ask(ctx, r.when, err)
}

// ask calls a predicate of the user. One that panics has not matched.
func (p *Policy) ask(ctx context.Context, f func(error) bool, err error) bool {
	if f == nil {
		return false
	}
	var yes bool
	return p.scope.Guard(ctx, policyName, p.id, func() { yes = f(err) }) && yes
}

func matches(list []error, err error) bool {
	for _, target := range list {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// refuser is the policy that refused the attempt before it started. Policies do
// not import each other: their errors say which they are.
func refuser(err error) string {
	var e policy.Error
	if errors.As(err, &e) && !e.Started() {
		return e.Policy()
	}
	return ""
}
