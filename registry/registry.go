package registry

import (
	"sync"
	"sync/atomic"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry/config"
)

// ErrClosed is what calls get from a registry that was closed or is being
// drained. They are counted as rejected, and took no permit.
var ErrClosed = scope.ErrClosed

// Registry holds the pipelines of a program and the policies that they share,
// by id. It is safe for concurrent use. Make it with [New]; the zero value is not
// usable. Most programs have one, for as long as they run.
//
// Ids live as long as the registry: never make one per user, tenant or request.
type Registry struct {
	scope *scope.Scope
	gate  *stack.Gate

	// version counts the changes of what mu guards, so that a view that was made
	// of it can be seen to be old.
	version atomic.Uint64
	view    atomic.Pointer[view]

	// mu is never held while a user's function runs.
	mu        sync.Mutex
	config    *config.Config
	pipelines map[string]*pipeline
	order     []*pipeline // as they were built
	retries   instances[retry.Config, *retry.Policy]
	breakers  instances[circuitbreaker.Config, *circuitbreaker.Policy]
	limiters  instances[ratelimit.Config, *ratelimit.Policy]
	bulkheads instances[bulkhead.Config, *bulkhead.Policy]
}

// New makes a registry. It returns all mistakes in its options, joined, each a
// [policy.ConfigError]. It starts nothing: no goroutine, no timer.
//
// What the configuration says of an instance is put together with what code says
// of it, and then checked, when its pipeline is built.
func New(opts ...Option) (*Registry, error) {
	var o options
	for i, opt := range opts {
		if opt == nil {
			o.missing("option", i+1)
			continue
		}
		opt.apply(&o)
	}
	if err := o.mistakes.join(); err != nil {
		return nil, err
	}
	s := scope.New(o.clock, together(o.listeners))
	s.Share()
	return &Registry{
		scope: s, gate: stack.NewGate(), config: o.config,
		pipelines: map[string]*pipeline{},
		retries:   instances[retry.Config, *retry.Policy]{},
		breakers:  instances[circuitbreaker.Config, *circuitbreaker.Policy]{},
		limiters:  instances[ratelimit.Config, *ratelimit.Policy]{},
		bulkheads: instances[bulkhead.Config, *bulkhead.Policy]{},
	}, nil
}

// Retry returns the retry of the given id, whose Do uses it without a pipeline.
// It looks up and never creates: ok is false if no pipeline has built it.
func (r *Registry) Retry(id string) (p *retry.Policy, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.retries.policy(id)
}

// CircuitBreaker returns the breaker of the given id, as a handle to ask and to
// command. It looks up and never creates: ok is false if no pipeline has built
// it.
func (r *Registry) CircuitBreaker(id string) (p *circuitbreaker.Policy, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.breakers.policy(id)
}

// RateLimiter returns the limiter of the given id, as a handle to take permits
// from and to change. It looks up and never creates: ok is false if no pipeline
// has built it.
func (r *Registry) RateLimiter(id string) (p *ratelimit.Policy, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limiters.policy(id)
}

// Bulkhead returns the bulkhead of the given id, as a handle to take slots from
// and to change. It looks up and never creates: ok is false if no pipeline has
// built it.
func (r *Registry) Bulkhead(id string) (p *bulkhead.Policy, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bulkheads.policy(id)
}

// Critical reports whether the configuration marks the instance as critical:
// package health fails for an impaired instance only then.
func (r *Registry) Critical(id string) bool { return r.configuration().Critical(id) }

// Nearest returns the id of a pipeline or an instance of this registry that id
// was most likely meant to be, or "" if none is near.
func (r *Registry) Nearest(id string) string { return config.Nearest(id, r.look().ids) }

func (r *Registry) configuration() *config.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config
}

// pipeline is one pipeline id. Its fields are guarded by Registry.mu.
type pipeline struct {
	spec  stack.Spec
	stack *stack.Stack
	*resolved
	timer *timer // nil until the timeout is switched on
}

// mistakes collects errors.
type mistakes []error

func (m *mistakes) add(e policy.ConfigError) { *m = append(*m, &e) }

func (m *mistakes) take(err error) {
	if err != nil {
		*m = append(*m, err)
	}
}
