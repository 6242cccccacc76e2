package registry

import (
	"slices"
	"strconv"

	"resilience4cata.dev/go/registry/config"
)

// Setting is one effective value and where it came from.
type Setting struct {
	// Path is where a configuration would set it:
	// instances."reports".timeout.value.
	Path string `json:"path"`
	// Value is what holds, as a configuration would have it: "2s", "3",
	// "unlimited".
	Value string `json:"value"`
	// Origin is "default", "code", "env", "runtime" for what a handle has set, or
	// the file and the line.
	Origin string `json:"origin"`
}

// String is the setting as a line for people.
func (s Setting) String() string { return s.Path + " = " + s.Value + " (" + s.Origin + ")" }

// Explain returns the effective settings of a pipeline, layer by layer from the
// outside in, or those of the instances of the given id that pipelines share,
// and says for each where it came from. Settings of a shared instance carry its
// id in their path. For an id that nobody has built it returns nil.
func (r *Registry) Explain(id string) []Setting {
	r.mu.Lock()
	defer r.mu.Unlock()
	var p resolved
	if known := r.pipelines[id]; known != nil {
		p = *known.resolved
	}
	var all []Setting
	all = explain(all, r.retries, &p.retry, id, nil)
	all = explain(all, r.breakers, &p.breaker, id, nil)
	all = explain(all, r.limiters, &p.limiter, id, r.setRates)
	all = plain(all, p.timeout.Settings)
	return explain(all, r.bulkheads, &p.bulkhead, id, r.setLimits)
}

// explain adds the settings of a layer, or of an instance that others share.
// set are those that a handle has set, by their keys.
func explain[C any, P shared[C]](all []Setting, have instances[C, P], l *layer[C], id string, set func(id string) map[string]string) []Setting {
	used := id
	if l.built {
		used = l.id
	}
	in := have[used]
	if in == nil {
		return plain(all, l.Settings) // switched off since it was built, or not there
	}
	settings := in.settings
	if l.built {
		settings = slices.Clone(l.Settings)
		for i, s := range settings {
			if l.on && in.kind.belongs(in.kind.key(s)) {
				settings[i] = in.setting(s)
			}
		}
	}
	var runtime map[string]string
	// While a reload puts other values in force, those are not a handle's that are
	// still, or already, there.
	if set != nil && in.applied == in.changes {
		runtime = set(used)
	}
	for _, s := range settings {
		if value, changed := runtime[in.kind.key(s)]; changed {
			s.Value, s.Origin = value, originRuntime
		}
		all = append(all, Setting(s))
	}
	return all
}

// setting returns the instance's own setting for that of a layer.
func (in *instance[C, P]) setting(s config.Setting) config.Setting {
	key := in.kind.key(s)
	for _, own := range in.settings {
		if in.kind.key(own) == key {
			return own
		}
	}
	return s
}

// setRates are the values that a handle of the limiter has set.
func (r *Registry) setRates(id string) map[string]string {
	in := r.limiters[id]
	now, set := in.policy.Config(), map[string]string{}
	if now.Limit != in.config.Limit {
		set["limit"] = strconv.Itoa(now.Limit)
	}
	if now.Period != in.config.Period {
		set["period"] = now.Period.String()
	}
	if now.Burst != in.config.Burst {
		set["burst"] = strconv.Itoa(now.Burst)
	}
	return set
}

// setLimits are the values that a handle of the bulkhead has set.
func (r *Registry) setLimits(id string) map[string]string {
	in := r.bulkheads[id]
	if limit := in.policy.Snapshot().Limit; limit != in.config.MaxConcurrent {
		return map[string]string{"maxConcurrent": strconv.Itoa(limit)}
	}
	return nil
}

func plain(all []Setting, settings []config.Setting) []Setting {
	for _, s := range settings {
		all = append(all, Setting(s))
	}
	return all
}
