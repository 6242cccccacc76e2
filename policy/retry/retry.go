package retry

import (
	"errors"
	"sync"
	"sync/atomic"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/setting"
)

// Policy is a retry: its settings, its budget and its counters. It is safe for
// concurrent use. Use it alone through [Policy.Do], or give its options to a
// pipeline, which drives it through [Policy.Begin], [Policy.Next],
// [Policy.Pause] and [Policy.Fail]. Make it with [New].
type Policy struct {
	*instance
	rules *rules // this handle's own; nil: those of the settings
}

// instance is what all handles of one id share.
type instance struct {
	id       string
	scope    *scope.Scope
	plan     *callctx.Plan // of the attempts' contexts
	settings atomic.Pointer[settings]
	mu       sync.Mutex // held by Reconfigure

	retries, exhausted, outOfTime, budgetDenied atomic.Uint64
}

// settings are one generation of them, immutable. A call keeps the generation
// that it began with.
type settings struct {
	config Config
	rules  *rules
	budget *budget // nil: none; outlives the generation
	timed  bool    // a call must read the clock when it starts
}

// New returns a retry that stands alone, on the given clock. It returns every
// mistake in its arguments, joined, each a [*policy.ConfigError].
func New(id string, c Config, clk clock.Clock) (*Policy, error) {
	if err := setting.Clock(policyName, id, clk); err != nil {
		return nil, errors.Join(setting.ID(policyName, id, "id"), err, setting.Named(c.Validate(), id))
	}
	return NewIn(scope.New(clk, nil), id, c)
}

// NewIn is [New] for package registry, whose scope brings the clock, the
// listener and the news of its end.
func NewIn(s *scope.Scope, id string, c Config) (*Policy, error) {
	in := &instance{id: id, scope: s, plan: s.NewPlan(0, ErrOutOfTime, true)}
	if err := errors.Join(setting.ID(policyName, id, "id"), in.reconfigure(c)); err != nil {
		return nil, err
	}
	return &Policy{instance: in}, nil
}

// ID is the id of the instance.
func (p *Policy) ID() string { return p.id }

// Config returns a copy of the settings in force.
func (p *Policy) Config() Config { return p.settings.Load().config.clone() }

// WithRules returns a handle of the same instance, with the same settings,
// budget and counters, whose calls are judged by On, If, AbortOn and AbortIf of
// c instead of the instance's. It is for package pipeline: layers that share an
// instance by name have rules of their own. The handle keeps its rules when the
// instance is reconfigured.
func (p *Policy) WithRules(c Config) *Policy { return &Policy{p.instance, rulesOf(&c)} }

// Reconfigure changes the settings, or returns every mistake in c and changes
// nothing. Calls in flight keep the settings that they began with. The budget
// keeps what it has counted. It is for package registry.
func (p *Policy) Reconfigure(c Config) error { return p.reconfigure(c) }

func (in *instance) reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return setting.Named(err, in.id)
	}
	c = c.clone()
	if c.Backoff == "" {
		c.Backoff = BackoffConstant
	}
	g := &settings{config: c, rules: rulesOf(&c), timed: c.MaxDuration > 0 || c.Budget != nil}

	in.mu.Lock()
	defer in.mu.Unlock()
	if c.Budget != nil {
		if old := in.settings.Load(); old != nil && old.budget != nil {
			g.budget = old.budget
		} else {
			g.budget = newBudget(*c.Budget, in.scope.Now())
		}
	}
	in.settings.Store(g)
	return nil
}
