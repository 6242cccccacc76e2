package config

import (
	"maps"
	"slices"
)

// The top-level keys of a file.
const (
	topConfigs   = "configs"
	topInstances = "instances"
)

// defaultConfig is the name of the section that every instance builds on.
const defaultConfig = "default"

// Config is a checked configuration. It never changes: [Config.WithEnv] returns
// another one. It is safe for concurrent use, and a nil Config is an empty one.
type Config struct {
	configs   map[string]*entity
	instances map[string]*entity
}

// entity is one section of "configs" or "instances".
type entity struct {
	origin
	path     string
	layers   [len(sections)]*layer // nil: not named here
	config   *setting              // of an instance: the config it names
	critical *setting              // of an instance
}

// layer is one policy's section in an entity.
type layer struct {
	origin
	path     string
	settings map[*attribute]*setting
}

// Instances returns the ids of all instances, sorted.
func (c *Config) Instances() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.instances))
}

// Has reports whether the configuration has a section for the instance.
func (c *Config) Has(id string) bool { return c.instance(id) != nil }

// Base reports whether there is a section configs.<name>.
func (c *Config) Base(name string) bool { return c.base(name) != nil }

// Critical reports whether the instance is marked critical: then, and only
// then, its impairment makes the health answer fail.
func (c *Config) Critical(id string) bool {
	e := c.instance(id)
	if e == nil || e.critical == nil {
		return false
	}
	critical, _ := e.critical.value.(bool) // the binder made it one
	return critical
}

// Position returns where the section of the instance begins: for the file
// [EnvVariable], without a line, if the environment made it, and nothing if there
// is none. Line and column begin at 1.
func (c *Config) Position(id string) (file string, line, col int) {
	e := c.instance(id)
	if e == nil {
		return "", 0, 0
	}
	return e.source(), e.line, e.col
}

// Section is the part of an instance that is about one policy.
type Section struct {
	Policy string // as in a snapshot: "circuitbreaker"
	Path   string // as in a mistake: instances."reports".circuitBreaker
	File   string // where it begins; [EnvVariable], without a line, if the environment made it
	Line   int    // from 1
	Col    int    // from 1
}

// Sections returns the policies that the instance has a section of its own for, in
// the order of the layers. What configs.default or the named config say is not
// among them, nor is a section that "enabled: false" takes out, be it there or at
// another level of the file.
func (c *Config) Sections(id string) []Section {
	e := c.instance(id)
	if e == nil {
		return nil
	}
	var all []Section
	for i, l := range e.layers {
		if l == nil || c.takesOut(id, i) {
			continue
		}
		all = append(all, Section{sections[i].policy, l.path, l.source(), l.line, l.col})
	}
	return all
}

// Nearest returns the id of the instance that id was most likely meant to be, or
// "" if none is near; see the function [Nearest].
func (c *Config) Nearest(id string) string { return Nearest(id, c.Instances()) }

func (c *Config) instance(id string) *entity {
	if c == nil {
		return nil
	}
	return c.instances[id]
}

func (c *Config) base(name string) *entity {
	if c == nil {
		return nil
	}
	return c.configs[name]
}

// bases returns the names of all configs, sorted.
func (c *Config) bases() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.configs))
}

// clone returns a copy whose sections may be written to.
func (c *Config) clone() *Config {
	if c == nil {
		return &Config{}
	}
	return &Config{cloneEntities(c.configs), cloneEntities(c.instances)}
}

func cloneEntities(from map[string]*entity) map[string]*entity {
	to := make(map[string]*entity, len(from))
	for id, e := range from {
		copied := *e
		for i, l := range e.layers {
			if l != nil {
				copied.layers[i] = &layer{l.origin, l.path, maps.Clone(l.settings)}
			}
		}
		to[id] = &copied
	}
	return to
}

// entity returns the section of id in top, which it makes if there is none.
func (c *Config) entity(top, id string, o origin) *entity {
	all := &c.instances
	if top == topConfigs {
		all = &c.configs
	}
	if *all == nil {
		*all = map[string]*entity{}
	}
	e := (*all)[id]
	if e == nil {
		e = &entity{origin: o, path: pathOf(top, id)}
		(*all)[id] = e
	}
	return e
}

// layer returns the section of the policy, which it makes if there is none.
func (e *entity) layer(i int, o origin) *layer {
	if e.layers[i] == nil {
		e.layers[i] = &layer{origin: o, path: e.path + "." + sections[i].key, settings: map[*attribute]*setting{}}
	}
	return e.layers[i]
}
