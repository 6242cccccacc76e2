package registry

import (
	"cmp"
	"maps"
	"slices"

	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry/config"
)

// view is all that there is, sorted, as of one version. It is immutable, and
// made once for each version, so that those who look often neither sort nor hold
// the lock.
type view struct {
	version   uint64
	pipelines []viewed
	retries   []*retry.Policy
	breakers  []*circuitbreaker.Policy
	limiters  []*ratelimit.Policy
	bulkheads []*bulkhead.Policy
	timers    []*timer
	ids       []string // of pipelines and instances, sorted, each once
	findings  []Finding
}

// viewed is a pipeline in a view.
type viewed struct {
	id    string
	stack *stack.Stack
	*resolved
	bound string // "" if there is none

	// The settings of the instances that the layers use, if they are on.
	attempts retry.Config
	slots    bulkhead.Config
}

// look returns the view of the current version.
func (r *Registry) look() *view {
	if v := r.view.Load(); v != nil && v.version == r.version.Load() {
		return v
	}
	v, c := r.copy()
	for i := range v.pipelines {
		p := &v.pipelines[i]
		if d, ok := stack.Bound(p.stack.Layers()); ok {
			p.bound = d.String()
		}
	}
	slices.SortFunc(v.pipelines, func(a, b viewed) int { return cmp.Compare(a.id, b.id) })
	sortByID(v.retries)
	sortByID(v.breakers)
	sortByID(v.limiters)
	sortByID(v.bulkheads)
	sortByID(v.timers)
	slices.Sort(v.ids)
	v.ids = slices.Compact(v.ids)
	v.findings = v.check(c)
	r.view.Store(v)
	return v
}

// copy copies the pointers, which is all for which the lock is held.
func (r *Registry) copy() (*view, *config.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &view{
		version:   r.version.Load(), // written under the lock, but for the end of a reload
		pipelines: make([]viewed, 0, len(r.order)),
		retries:   r.retries.all(),
		breakers:  r.breakers.all(),
		limiters:  r.limiters.all(),
		bulkheads: r.bulkheads.all(),
	}
	for _, p := range r.order {
		row := viewed{id: p.spec.ID, stack: p.stack, resolved: p.resolved}
		if p.retry.on {
			row.attempts = r.retries[p.retry.id].config
		}
		if p.bulkhead.on {
			row.slots = r.bulkheads[p.bulkhead.id].config
		}
		v.pipelines = append(v.pipelines, row)
		if p.timer != nil {
			v.timers = append(v.timers, p.timer)
		}
	}
	v.ids = slices.Concat(
		slices.Collect(maps.Keys(r.pipelines)), slices.Collect(maps.Keys(r.retries)), slices.Collect(maps.Keys(r.breakers)),
		slices.Collect(maps.Keys(r.limiters)), slices.Collect(maps.Keys(r.bulkheads)),
	)
	return v, r.config
}

func (all instances[C, P]) all() []P {
	list := make([]P, 0, len(all))
	for _, in := range all {
		list = append(list, in.policy)
	}
	return list
}

func sortByID[P interface{ ID() string }](list []P) {
	slices.SortFunc(list, func(a, b P) int { return cmp.Compare(a.ID(), b.ID()) })
}
