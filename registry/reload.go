package registry

import (
	"strconv"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry/config"
)

// Reload replaces the configuration of a running registry: all of it, or nothing.
// If anything in it does not fit what was built, the old one stays and all
// mistakes come back, joined, each a [policy.ConfigError]. A nil configuration is
// one; a closed registry returns [ErrClosed].
//
// Handles, states, permits in use and counters survive. Calls in flight keep the
// layers that they started with; calls that wait for a permit are planned anew,
// and those that wait for a slot keep the wait that they queued with. It changes
// values, those of instances whose layers are all off as well, and switches built
// layers on and off by "enabled"; it cannot add or remove a layer of a built
// pipeline, nor move one to another instance. What a
// handle has set (SetLimit, SetRate) stays, unless that key has changed in the
// configuration.
//
// It may be called from any goroutine, also by listeners; of two at once, all
// values of the one that was accepted last stay.
func (r *Registry) Reload(c *config.Config) error {
	if c == nil {
		return &policy.ConfigError{
			Code: codeArgument, Policy: "registry", Path: "Reload",
			Got: "the configuration is nil", Hint: "parse an empty document to have an empty one",
		}
	}
	apply, err := r.reload(c)
	if err != nil {
		return err
	}
	for _, f := range apply {
		f()
	}
	r.version.Add(1) // views made meanwhile have seen old values
	return nil
}

// reload accepts or refuses c. It returns what is left to do without the lock.
func (r *Registry) reload(c *config.Config) (apply []func(), _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scope.Closed() {
		return nil, ErrClosed
	}
	var m mistakes
	draft := r.newDraft(c, true)
	all := make([]*resolved, len(r.order))
	for i, p := range r.order {
		all[i] = resolve(c, &p.spec, &m)
		draft.remember(p.spec.ID, all[i])
	}
	for i, p := range r.order {
		if p.sameShape(all[i], &m) {
			draft.add(p.spec.ID, all[i], p.spec.Place, &m)
		}
	}
	draft.rest()
	if len(m) > 0 {
		return nil, m.join()
	}
	draft.make(r.scope, &m)
	timers := make([]*timer, len(r.order))
	for i, p := range r.order {
		next := pipeline{spec: p.spec, resolved: all[i], timer: p.timer}
		next.keepTime(r.scope, &m)
		timers[i] = next.timer
	}
	if len(m) > 0 {
		return nil, m.join()
	}
	apply = draft.commit(r)
	r.config = c
	for i, p := range r.order {
		if t := p.timer; t != nil && all[i].timeout.on && !sameLimit(t.Config(), all[i].timeout.Config) {
			_ = t.Reconfigure(all[i].timeout.Config) // it was validated
		}
		p.resolved, p.timer = all[i], timers[i]
		p.stack.SetLayers(r.layers(p))
	}
	r.scope.SetShortest(r.shortest())
	r.version.Add(1)
	return apply, nil
}

func sameLimit(a, b timeout.Config) bool { return a.Value == b.Value }

// sameShape reports whether next has the layers that p has, on the same
// instances, and notes it otherwise.
func (p *pipeline) sameShape(next *resolved, m *mistakes) bool {
	type shape struct {
		id    string
		built bool
	}
	now := map[string]shape{}
	p.eachLayer(func(kind, id string, built, _ bool) { now[kind] = shape{id, built} })
	same := true
	next.eachLayer(func(kind, id string, built, _ bool) {
		e := policy.ConfigError{
			Code: codeShape, Policy: kind, ID: p.spec.ID,
			Hint: "a reload changes values and switches layers on and off; build the pipeline anew in a new process",
		}
		switch was := now[kind]; {
		case built && !was.built:
			e.Got = "the pipeline that was built at " + p.spec.Place + " has no such layer"
		case !built && was.built:
			e.Got = "the configuration no longer lists this layer, which the pipeline that was built at " + p.spec.Place + " has"
			e.Hint = "keep it there; enabled: false switches it off"
		case built && id != was.id:
			e.Path, e.Got = "name", "the layer cannot move from the instance "+strconv.Quote(was.id)+" to "+strconv.Quote(id)
		default:
			return
		}
		m.add(e)
		same = false
	})
	return same
}
