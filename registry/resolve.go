package registry

import (
	"strconv"

	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry/config"
)

// layer is what one layer of a pipeline comes to, once code and configuration
// are put together.
type layer[C any] struct {
	config.Effective[C]
	built bool   // the pipeline has it, if perhaps switched off
	on    bool   // it is switched on
	id    string // of the instance that it uses
	err   error  // what is wrong with Config; the instance may make it right
}

// resolved is what a pipeline comes to. It is immutable once it is registered.
type resolved struct {
	retry    layer[retry.Config]
	breaker  layer[circuitbreaker.Config]
	limiter  layer[ratelimit.Config]
	timeout  layer[timeout.Config]
	bulkhead layer[bulkhead.Config]
}

// resolve puts together what code, in spec, and the configuration say.
func resolve(c *config.Config, spec *stack.Spec, m *mistakes) *resolved {
	base := spec.Base
	if base != "" && !c.Base(base) {
		_, err := config.Timeout(c, spec.ID, config.Code[timeout.Config]{Base: base})
		for _, e := range policy.ConfigErrors(err) {
			if e.Code == codeBase { // it knows what was meant
				e.Policy = "pipeline"
				m.take(e)
			}
		}
		base = ""
	}
	if spec.Configured && !c.Has(spec.ID) {
		e := policy.ConfigError{
			Code: codeListed, Policy: "pipeline", ID: spec.ID, Path: `instances.` + strconv.Quote(spec.ID),
			Got: "the configuration has no such instance", Hint: "add it there, or build the pipeline with pipeline.New",
		}
		if near := c.Nearest(spec.ID); near != "" {
			e.Hint = "did you mean " + strconv.Quote(near) + "?"
		}
		m.add(e)
	}
	return &resolved{
		retry:    resolveLayer(&retries, c, spec, base, spec.Retry, m),
		breaker:  resolveLayer(&breakers, c, spec, base, spec.Breaker, m),
		limiter:  resolveLayer(&limiters, c, spec, base, spec.Limiter, m),
		timeout:  resolveLayer(&timeouts, c, spec, base, spec.Timeout, m),
		bulkhead: resolveLayer(&bulkheads, c, spec, base, spec.Bulkhead, m),
	}
}

func resolveLayer[C any, P shared[C]](k *kind[C, P], c *config.Config, spec *stack.Spec, base string, asked *stack.Layer[C], m *mistakes) (l layer[C]) {
	code := config.Code[C]{Base: base}
	if asked != nil {
		code.Config, code.Keys, code.Name = asked.Config, asked.Keys, asked.Name
		if asked.Name != "" {
			m.checkID(k.name, asked.Name, "name")
		}
	}
	e, err := k.merge(c, spec.ID, code)
	switch {
	case asked == nil && !(spec.Configured && e.Present):
		return l
	case spec.Configured && !e.Present:
		if c.Has(spec.ID) { // else that is the mistake
			m.add(policy.ConfigError{
				Code: codeListed, Policy: k.name, ID: spec.ID, Path: `instances.` + strconv.Quote(spec.ID) + "." + k.section,
				Got:  "code asks for a layer that the configuration does not list",
				Hint: "list it there, if only as " + k.section + ": {}, or build the pipeline with pipeline.New",
			})
		}
		return l
	}
	l = layer[C]{Effective: e, built: true, on: e.Enabled, id: spec.ID, err: err}
	if e.Name != "" {
		l.id = e.Name
	}
	return l
}

// any reports whether the pipeline has a layer.
func (r *resolved) any() bool {
	return r.retry.built || r.breaker.built || r.limiter.built || r.timeout.built || r.bulkhead.built
}

// eachLayer is how the layers are gone through whose Config does not matter.
func (r *resolved) eachLayer(visit func(kind, id string, built, on bool)) {
	visit(retries.name, r.retry.id, r.retry.built, r.retry.on)
	visit(breakers.name, r.breaker.id, r.breaker.built, r.breaker.on)
	visit(limiters.name, r.limiter.id, r.limiter.built, r.limiter.on)
	visit(timeouts.name, r.timeout.id, r.timeout.built, r.timeout.on)
	visit(bulkheads.name, r.bulkhead.id, r.bulkhead.built, r.bulkhead.on)
}
