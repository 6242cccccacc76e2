package registry

import (
	"slices"
	"strings"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// kind is what the registry must know of one kind of policy. For timeouts, which
// are not shared, make is nil.
type kind[C any, P shared[C]] struct {
	name     string   // as errors name it: "ratelimit"
	section  string   // as files name it: "rateLimiter"
	layer    []string // the settings that belong to the layer; all others to the instance
	required []string // the settings that have no default

	merge func(c *config.Config, id string, code config.Code[C]) (config.Effective[C], error)
	make  func(s *scope.Scope, id string, c C) (P, error)

	validate func(c C) error

	// functions are the names of the functions and lists of errors in c that
	// belong to the instance; rules of those in c that belong to the layer and
	// are not known to be the same as first's.
	functions func(c C) []string
	rules     func(c, first C) []string

	// keep puts the instance's functions in from into c if c has none.
	keep func(c *C, from C)

	// open are the settings that agree may still settle as long as nobody gives
	// them; agree does so for a layer and the instance that it joins, and reports
	// whether it has changed the instance. nil: there are none.
	open  []string
	agree func(l *layer[C], in *instance[C, P]) bool
}

// shared is what the policies of all kinds have in common. Reconfigure keeps a
// value that a handle has set, unless c has another one than was given before.
type shared[C any] interface {
	Config() C
	Reconfigure(c C) error
}

// instance is one policy that pipelines share by its id. It is guarded by
// Registry.mu.
type instance[C any, P shared[C]] struct {
	kind     *kind[C, P]
	id       string
	maker    string // the pipeline that made it
	place    string // where it was made
	policy   P
	settings []config.Setting // of config, with their origins
	config   C                // the wanted settings, without what handles changed
	stale    *layer[C]        // what its maker says since a reload, which is not valid; nil: config is that
	changes  uint64           // of config
	applied  uint64           // those changes that are in force
}

// instances are those of one kind, by id.
type instances[C any, P shared[C]] map[string]*instance[C, P]

func (all instances[C, P]) policy(id string) (p P, ok bool) {
	if in := all[id]; in != nil {
		return in.policy, true
	}
	return p, false
}

// unapplied adds to apply what puts the settings of the instance in force, if
// they are not yet: to be called without r.mu.
func (all instances[C, P]) unapplied(r *Registry, id string, apply []func()) []func() {
	if in := all[id]; in != nil && in.applied != in.changes {
		apply = append(apply, func() { in.apply(r) })
	}
	return apply
}

// key is the name of a setting in its section.
func (k *kind[C, P]) key(s config.Setting) string {
	if i := strings.LastIndex(s.Path, `".`+k.section+"."); i >= 0 {
		return s.Path[i+len(k.section)+3:]
	}
	return s.Path
}

// belongs reports whether a setting belongs to the instance.
func (k *kind[C, P]) belongs(key string) bool {
	return key != "enabled" && key != "name" && !slices.Contains(k.layer, key)
}

// missing reports whether nobody gives a setting that has no default.
func (k *kind[C, P]) missing(s config.Setting) bool {
	return s.Origin == originDefault && s.Value == "0" && slices.Contains(k.required, k.key(s))
}

// says reports whether the layer says anything of the instance that it uses:
// code, or a section that does not hold for the instance anyway. Otherwise it
// only names it.
func (k *kind[C, P]) says(c *config.Config, l *layer[C]) bool {
	alone, _ := k.merge(c, l.id, config.Code[C]{})
	known := make(map[string]config.Setting, len(alone.Settings))
	for _, s := range alone.Settings {
		known[k.key(s)] = s
	}
	for _, s := range l.Settings {
		key := k.key(s)
		if !k.belongs(key) || s.Origin == originDefault {
			continue
		}
		if a := known[key]; a.Origin != s.Origin || a.Value != s.Value {
			return true
		}
	}
	return false
}

// join notes all reasons why the layer l of the pipeline that is built at place
// cannot use the instance in, which exists.
func (k *kind[C, P]) join(c *config.Config, l *layer[C], place string, in *instance[C, P], m *mistakes) {
	k.refuseFunctions(l, place, in, m)
	says := k.says(c, l)
	m.take(k.ofLayer(l, says))
	if says {
		k.compare(in.id, l.Settings, place, in.settings, in.place, m, func(s config.Setting) bool {
			return k.belongs(k.key(s)) && !k.missing(s)
		})
	}
}

// refuseFunctions notes the functions that the layer l, built at place, brings to
// the instance in, which exists.
func (k *kind[C, P]) refuseFunctions(l *layer[C], place string, in *instance[C, P], m *mistakes) {
	for _, f := range k.functions(l.Config) {
		m.add(policy.ConfigError{
			Code: codeFunctions, Policy: k.name, ID: in.id, Path: f,
			Got:  "given at " + place + " to the instance that exists since " + in.place + "; functions and lists of errors cannot be compared",
			Hint: "give it where the instance is made first, or give the layer another Name",
		})
	}
}

// ofLayer returns the mistakes in the settings of a layer that uses an instance
// which exists, without those about settings which that one has instead.
func (k *kind[C, P]) ofLayer(l *layer[C], says bool) error {
	var m mistakes
	for _, e := range policy.ConfigErrors(l.err) {
		about := false
		for _, s := range l.Settings {
			key := k.key(s)
			if e.Path != key && !strings.HasSuffix(e.Path, "."+k.section+"."+key) {
				continue
			}
			about = k.belongs(key) && (!says || k.missing(s))
		}
		if !about {
			m.take(e)
		}
	}
	return m.join()
}

// compare notes every setting that has another value here, at place, than there.
// An open one that is given in neither place has none to differ in.
func (k *kind[C, P]) compare(id string, here []config.Setting, place string, there []config.Setting, otherPlace string, m *mistakes, counts func(config.Setting) bool) {
	values := make(map[string]config.Setting, len(there))
	for _, s := range there {
		values[k.key(s)] = s
	}
	note := func(key, value, other string) {
		m.add(policy.ConfigError{
			Code: codeSettings, Policy: k.name, ID: id, Path: key,
			Got:  value + " at " + place + ", but " + other + " at " + otherPlace,
			Hint: "one id has one set of settings: make them equal, or give another id",
		})
	}
	for _, s := range here {
		key := k.key(s)
		other, has := values[key]
		delete(values, key)
		switch {
		case !counts(s) || has && other.Value == s.Value:
		case s.Origin == originDefault && other.Origin == originDefault && slices.Contains(k.open, key):
		case has:
			note(key, s.Value, other.Value)
		default:
			note(key, s.Value, "none")
		}
	}
	for _, s := range there {
		if key := k.key(s); counts(s) {
			if other, has := values[key]; has {
				note(key, "none", other.Value)
			}
		}
	}
}

func always(config.Setting) bool { return true }

// The origins that need to be told apart; see config.Setting.
const (
	originDefault = "default"
	originRuntime = "runtime"
)
