package registry

import (
	"maps"
	"slices"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry/config"
)

// draft is the instances that pipelines need, before anything is registered: a
// build adds one pipeline to what is there, and a reload plays all builds again,
// in their order, against the new configuration.
type draft struct {
	config    *config.Config
	retries   drafts[retry.Config, *retry.Policy]
	breakers  drafts[circuitbreaker.Config, *circuitbreaker.Policy]
	limiters  drafts[ratelimit.Config, *ratelimit.Policy]
	bulkheads drafts[bulkhead.Config, *bulkhead.Policy]
}

// drafts are those of one kind.
type drafts[C any, P shared[C]] struct {
	kind   *kind[C, P]
	old    instances[C, P]
	again  bool                       // a reload: old ones are wanted anew
	makers map[string]*layer[C]       // of those in wanted, and in a reload of old ones
	wanted map[string]*instance[C, P] // new, or with new settings
}

// newDraft begins a draft; r.mu is held until it is committed or forgotten.
func (r *Registry) newDraft(c *config.Config, again bool) *draft {
	return &draft{
		config:    c,
		retries:   drafts[retry.Config, *retry.Policy]{kind: &retries, old: r.retries, again: again},
		breakers:  drafts[circuitbreaker.Config, *circuitbreaker.Policy]{kind: &breakers, old: r.breakers, again: again},
		limiters:  drafts[ratelimit.Config, *ratelimit.Policy]{kind: &limiters, old: r.limiters, again: again},
		bulkheads: drafts[bulkhead.Config, *bulkhead.Policy]{kind: &bulkheads, old: r.bulkheads, again: again},
	}
}

// remember notes, before a reload adds anything, which instances the pipeline id
// has made.
func (d *draft) remember(id string, p *resolved) {
	d.retries.remember(id, &p.retry)
	d.breakers.remember(id, &p.breaker)
	d.limiters.remember(id, &p.limiter)
	d.bulkheads.remember(id, &p.bulkhead)
}

func (d *drafts[C, P]) remember(id string, l *layer[C]) {
	if old := d.old[l.id]; !l.built || old == nil || old.maker != id {
		return
	}
	d.made(l)
}

func (d *drafts[C, P]) made(l *layer[C]) {
	if d.makers == nil {
		d.makers = map[string]*layer[C]{}
	}
	d.makers[l.id] = l
}

// add adds what the pipeline id needs that is built at place.
func (d *draft) add(id string, p *resolved, place string, m *mistakes) {
	d.retries.add(d.config, id, &p.retry, place, m)
	d.breakers.add(d.config, id, &p.breaker, place, m)
	d.limiters.add(d.config, id, &p.limiter, place, m)
	m.take(p.timeout.err)
	d.bulkheads.add(d.config, id, &p.bulkhead, place, m)
}

func (d *drafts[C, P]) add(c *config.Config, id string, l *layer[C], place string, m *mistakes) {
	if !l.built {
		return
	}
	if !l.on { // it is not validated either, but for its place in the file
		m.take(l.err)
		return
	}
	in := d.wanted[l.id]
	if in == nil && !d.again {
		in = d.old[l.id]
		if in != nil && in.stale != nil {
			d.made(in.stale)
			in = nil
		}
	}
	if in == nil {
		in = d.want(c, id, l, place, m)
	}
	if d.makers[l.id] != l {
		d.kind.join(c, l, place, in, m)
		d.agree(l, in)
	}
}

// agree lets a layer and the instance that it joins settle what they leave open.
// The instance may be in use, so it is a copy that changes, until commit.
func (d *drafts[C, P]) agree(l *layer[C], in *instance[C, P]) {
	if d.kind.agree == nil {
		return
	}
	next := *in
	next.settings = slices.Clone(in.settings)
	if d.kind.agree(l, &next) {
		d.needs(&next)
	}
}

func (d *drafts[C, P]) needs(in *instance[C, P]) {
	if d.wanted == nil {
		d.wanted = map[string]*instance[C, P]{}
	}
	d.wanted[in.id] = in
}

// want adds the instance that the layer l of the pipeline id uses. What there is
// already is what its maker says, which may have been built later, as its layer
// was switched on later. If that is switched off now, it still speaks for those
// that only name the instance.
func (d *drafts[C, P]) want(c *config.Config, id string, l *layer[C], place string, m *mistakes) *instance[C, P] {
	old := d.old[l.id]
	if maker := d.makers[l.id]; maker != nil && (maker.on || !d.kind.says(c, l)) {
		l = maker
	} else if old != nil && !d.again { // it has no settings, but it may have functions
		d.kind.refuseFunctions(l, place, old, m)
	}
	if l.on {
		m.take(l.err)
	} else {
		m.take(setting.Named(d.kind.validate(l.Config), l.id))
	}
	in := &instance[C, P]{kind: d.kind, id: l.id, maker: id, place: place, settings: l.Settings, config: l.Config}
	if old != nil {
		in.maker, in.place = old.maker, old.place
		d.kind.keep(&in.config, old.config)
	}
	d.needs(in)
	d.made(l)
	return in
}

// rest gives those instances of a reload that no layer uses now what their makers
// say, for the layers that are built later and for those who hold a handle. An
// instance whose maker says nothing that holds keeps what it has until a layer
// needs it: only then is it a mistake.
func (d *draft) rest() {
	d.retries.rest()
	d.breakers.rest()
	d.limiters.rest()
	d.bulkheads.rest()
}

func (d *drafts[C, P]) rest() {
	for id, old := range d.old {
		maker := d.makers[id]
		if d.wanted[id] != nil || maker == nil { // without its maker the reload is refused
			continue
		}
		next := *old
		if d.kind.validate(maker.Config) != nil {
			next.stale = maker
		} else {
			next.stale, next.settings, next.config = nil, maker.Settings, maker.Config
			d.kind.keep(&next.config, old.config)
		}
		d.needs(&next)
	}
}

// make makes the policies that are not there yet, which nobody sees until commit.
func (d *draft) make(s *scope.Scope, m *mistakes) {
	d.retries.make(s, m)
	d.breakers.make(s, m)
	d.limiters.make(s, m)
	d.bulkheads.make(s, m)
}

func (d *drafts[C, P]) make(s *scope.Scope, m *mistakes) {
	for _, id := range slices.Sorted(maps.Keys(d.wanted)) {
		if in := d.wanted[id]; d.old[id] == nil {
			p, err := d.kind.make(s, id, in.config)
			m.take(err)
			in.policy = p
		}
	}
}

// commit registers all, and returns what puts the new settings of living
// policies in force: to be called without r.mu.
func (d *draft) commit(r *Registry) (apply []func()) {
	apply = d.retries.commit(r, apply)
	apply = d.breakers.commit(r, apply)
	apply = d.limiters.commit(r, apply)
	return d.bulkheads.commit(r, apply)
}

func (d *drafts[C, P]) commit(r *Registry, apply []func()) []func() {
	for _, id := range slices.Sorted(maps.Keys(d.wanted)) {
		in, old := d.wanted[id], d.old[id]
		if old == nil {
			d.old[id] = in
			continue
		}
		changed := !sameValues(old.settings, in.settings)
		old.settings, old.config, old.stale = in.settings, in.config, in.stale
		if changed {
			old.changes++
			apply = append(apply, func() { old.apply(r) })
		}
	}
	return apply
}

// apply puts the wanted settings in force. That may let waiting calls go on,
// and so call users' functions: no lock is held, and two builds or reloads may
// overtake each other. Whoever finds that the settings were changed meanwhile does it
// again, so that the last ones stay.
func (in *instance[C, P]) apply(r *Registry) {
	for {
		r.mu.Lock()
		c, changes := in.config, in.changes
		r.mu.Unlock()
		// The settings were validated: there is no error.
		_ = in.policy.Reconfigure(c)
		r.mu.Lock()
		done := changes == in.changes
		if done {
			in.applied = changes
		}
		r.mu.Unlock()
		if done {
			return
		}
	}
}

func sameValues(a, b []config.Setting) bool {
	return slices.EqualFunc(a, b, func(x, y config.Setting) bool { return x.Path == y.Path && x.Value == y.Value })
}
