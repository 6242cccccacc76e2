package registry

import (
	"errors"
	"time"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// timer is a pipeline's own timeout.
type timer = timeout.Policy

// Build registers the pipeline that spec asks for, with all policies that it
// needs and that are not there yet, or returns all mistakes, joined, and
// registers nothing. It is for package pipeline, whose builders call it; programs
// call pipeline.New.
//
// An id that was built before gives the same stack if all settings are equal.
// check is asked, before anything is registered, whether the layers are enough;
// what it returns is a mistake like others, but for [stack.ErrBuilder], which
// only prevents the registration. A closed registry returns [ErrClosed].
func (r *Registry) Build(spec stack.Spec, check stack.Check) (*stack.Stack, error) {
	s, apply, err := r.build(spec, check)
	if err != nil {
		return nil, err
	}
	for _, f := range apply {
		f()
	}
	if len(apply) > 0 {
		r.version.Add(1) // views made meanwhile have seen old values
	}
	return s, nil
}

// build is Build but for what is left to do without the lock: to put the settings
// of the instances in force that the pipeline uses, if they are not yet. This
// pipeline may have changed them, or one that is being built at the same time.
func (r *Registry) build(spec stack.Spec, check stack.Check) (_ *stack.Stack, apply []func(), _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scope.Closed() {
		return nil, nil, ErrClosed
	}
	var m mistakes
	m.checkID("pipeline", spec.ID, "id")
	p := &pipeline{spec: spec, resolved: resolve(r.config, &spec, &m)}
	draft := r.newDraft(r.config, false)
	known := r.pipelines[spec.ID]
	if known != nil {
		p.compare(known, &m)
	} else {
		draft.add(spec.ID, p.resolved, spec.Place, &m)
	}
	refused := false
	if check != nil {
		switch err := check(p.retry.built, p.breaker.built); {
		case errors.Is(err, stack.ErrBuilder):
			refused = true
		default:
			m.take(err)
		}
	}
	if len(m) > 0 || refused {
		return nil, nil, m.join()
	}
	if known != nil {
		return known.stack, r.unapplied(known), nil
	}
	draft.make(r.scope, &m)
	p.keepTime(r.scope, &m)
	if len(m) > 0 {
		return nil, nil, m.join()
	}
	draft.commit(r)
	p.stack = stack.New(spec.ID, r.scope, r.gate)
	p.stack.Fallback = spec.Fallback
	p.stack.Plain = !spec.Fallback && !p.any()
	p.stack.SetLayers(r.layers(p))
	r.pipelines[spec.ID] = p
	r.order = append(r.order, p)
	r.version.Add(1)
	return p.stack, r.unapplied(p), nil
}

// unapplied is what puts the settings of p's instances in force.
func (r *Registry) unapplied(p *pipeline) (apply []func()) {
	apply = r.retries.unapplied(r, p.retry.id, apply)
	apply = r.breakers.unapplied(r, p.breaker.id, apply)
	apply = r.limiters.unapplied(r, p.limiter.id, apply)
	return r.bulkheads.unapplied(r, p.bulkhead.id, apply)
}

// compare notes why p, which is built anew, is not the same as old.
func (p *pipeline) compare(old *pipeline, m *mistakes) {
	differs := func(path, here, there, hint string) {
		m.add(policy.ConfigError{
			Code: codeSettings, Policy: "pipeline", ID: p.spec.ID, Path: path,
			Got: here + " at " + p.spec.Place + ", but " + there + " at " + old.spec.Place, Hint: hint,
		})
	}
	if old.spec.Fallback != p.spec.Fallback {
		differs("fallback", has(p.spec.Fallback), has(old.spec.Fallback), "one id has one set of layers: make them equal, or give another id")
	}
	compareLayer(&retries, &old.retry, &p.retry, &old.spec, &p.spec, m)
	compareLayer(&breakers, &old.breaker, &p.breaker, &old.spec, &p.spec, m)
	compareLayer(&limiters, &old.limiter, &p.limiter, &old.spec, &p.spec, m)
	compareLayer(&timeouts, &old.timeout, &p.timeout, &old.spec, &p.spec, m)
	compareLayer(&bulkheads, &old.bulkhead, &p.bulkhead, &old.spec, &p.spec, m)
}

func compareLayer[C any, P shared[C]](k *kind[C, P], old, l *layer[C], first, spec *stack.Spec, m *mistakes) {
	e := policy.ConfigError{Code: codeSettings, Policy: k.name, ID: spec.ID, Hint: "one id has one set of layers: make them equal, or give another id"}
	switch {
	case old.built != l.built:
		e.Got = has(l.built) + " at " + spec.Place + ", but " + has(old.built) + " at " + first.Place
		m.add(e)
		return
	case !l.built:
		return
	case old.id != l.id:
		e.Path, e.Got = "name", l.id+" at "+spec.Place+", but "+old.id+" at "+first.Place
		m.add(e)
		return
	}
	if k.make == nil {
		m.take(l.err)
	} else {
		m.take(k.ofLayer(l, false))
	}
	k.compare(spec.ID, l.Settings, spec.Place, old.Settings, first.Place, m, always)
	for _, f := range append(k.functions(l.Config), k.rules(l.Config, old.Config)...) {
		m.add(policy.ConfigError{
			Code: codeFunctions, Policy: k.name, ID: spec.ID, Path: f,
			Got:  "given at " + spec.Place + " to the pipeline that exists since " + first.Place + "; functions and lists of errors cannot be compared",
			Hint: "share the pipeline itself, with pipeline.As if the result type is another, or give another id",
		})
	}
}

func has(layer bool) string {
	if layer {
		return "a layer"
	}
	return "no layer"
}

// keepTime makes the pipeline's timeout if it is on and not there.
func (p *pipeline) keepTime(s *scope.Scope, m *mistakes) {
	if !p.timeout.on || p.timer != nil {
		return
	}
	t, err := timeout.NewIn(s, p.spec.ID, p.timeout.Config, p.retry.built)
	m.take(err)
	p.timer = t
}

// layers makes what the pipeline's calls go through from now on, of policies
// that are registered. r.mu is held.
func (r *Registry) layers(p *pipeline) *stack.Layers {
	l := &stack.Layers{}
	retrying := p.retry.on
	if retrying {
		in := r.retries[p.retry.id]
		l.Retry = in.policy.WithRules(p.retry.Config)
		if in.config.MaxDuration > 0 {
			l.Cut.Level = r.scope.Level(in.config.MaxDuration)
		}
	}
	if p.breaker.on {
		l.Breaker = r.breakers[p.breaker.id].policy
		l.CountRejections = r.breakers[p.breaker.id].config.CountRejections
	}
	if p.limiter.on {
		l.Limiter, l.LimiterWait = r.limiters[p.limiter.id].policy, p.limiter.Config.MaxWait
	}
	if p.timeout.on {
		l.Timeout = p.timer
	}
	if p.bulkhead.on {
		l.Bulkhead, l.BulkheadWait = r.bulkheads[p.bulkhead.id].policy, p.bulkhead.Config.MaxWait
		l.FreeOnTimeout = p.bulkhead.Config.FreeOnTimeout
	}
	l.Attempts = r.scope.NewPlan(0, retry.ErrOutOfTime, retrying)
	l.Cut.Plan = r.scope.NewPlan(0, retry.ErrOutOfTime, true)
	return l
}

// shortest is the shortest limit in use, or 0. r.mu is held.
func (r *Registry) shortest() (d time.Duration) {
	take := func(limit time.Duration) {
		if limit > 0 && (d == 0 || limit < d) {
			d = limit
		}
	}
	for _, p := range r.order {
		if p.timeout.on {
			take(p.timeout.Config.Value)
		}
		if p.retry.on {
			take(r.retries[p.retry.id].config.MaxDuration)
		}
	}
	return d
}
