package config

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// check tells the mistakes that need more than one value to see: references to
// what is not there, values of an instance that no level above can mend, and
// sections that contradict each other.
func (c *Config) check(r *report) {
	for _, name := range c.bases() {
		checkConflicts(r, c.configs[name])
	}
	for _, id := range c.Instances() {
		e := c.instances[id]
		checkConflicts(r, e)
		if s := e.config; s != nil && c.base(s.value.(string)) == nil {
			r.add(s.mistake(codeBase, "unknown config "+quote(s.value.(string)), c.baseHint(s.value.(string))))
		}
		c.checkFinal(r, e)
		c.checkShared(r, id, e)
	}
}

func (c *Config) baseHint(name string) string {
	names := c.bases()
	if len(names) == 0 {
		return "there are no configs"
	}
	return didYouMean(name, names, "known are "+list(names))
}

// list joins the first few names.
func list(names []string) string {
	const most = 8
	text := ""
	for i, n := range names {
		if i == most {
			return text + ", …"
		}
		if i > 0 {
			text += ", "
		}
		text += n
	}
	return text
}

// named returns the config that the instance names, or nil.
func (c *Config) named(e *entity) *entity {
	if e == nil || e.config == nil {
		return nil
	}
	return c.base(e.config.value.(string)) // the binder made it one
}

// checkFinal looks at the values that stand above code: the instance's own and
// those of the config that it names, where the instance has none. Nothing can
// override them, so one that is out of range is a mistake whatever the code says.
// Values of lower levels are judged when they are merged (G-2).
func (c *Config) checkFinal(r *report, e *entity) {
	base := c.named(e)
	for i := range sections {
		own := e.layers[i]
		for _, s := range own.sorted() {
			checkRange(r, s)
		}
		if base == nil {
			continue
		}
		for _, s := range base.layers[i].sorted() {
			if own.get(s.attr) == nil {
				checkRange(r, s)
			}
		}
	}
}

func checkRange(r *report, s *setting) {
	if got, hint := s.attr.outside(s.value); got != "" {
		r.add(s.mistake(s.attr.code, got, hint))
	}
}

// sorted returns the settings in the order of the file, l may be nil.
func (l *layer) sorted() []*setting {
	if l == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(l.settings), func(a, b *setting) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col), cmp.Compare(a.path, b.path))
	})
}

// get returns the setting of a, or nil; l may be nil.
func (l *layer) get(a *attribute) *setting {
	if l == nil {
		return nil
	}
	return l.settings[a]
}

// key returns the setting of the given key of section i, or nil; e may be nil.
func (e *entity) key(i int, key string) *setting {
	if e == nil {
		return nil
	}
	return e.layers[i].get(sections[i].find(key))
}

// checkConflicts tells of a breaker with both kinds of window on one level.
func checkConflicts(r *report, e *entity) {
	i := policyIndex("circuitbreaker")
	count, span := e.key(i, "window"), e.key(i, "timeWindow")
	if count == nil || span == nil || span.value.(time.Duration) == 0 {
		return
	}
	later, other := span, count
	if span.file != envFile && (count.file == envFile || count.line > span.line || count.line == span.line && count.col > span.col) {
		later, other = count, span
	}
	r.add(later.mistake(codeConflict, later.attr.key+" together with "+other.attr.key, "a breaker has one window: remove one of the two"))
}

// checkShared tells of settings that can't apply because the layer shares an
// instance that has a section of its own.
func (c *Config) checkShared(r *report, id string, e *entity) {
	for i := range sections {
		name := e.key(i, nameAttr.key)
		if name == nil || name.value.(string) == id {
			continue
		}
		other := name.value.(string)
		target := c.instance(other)
		if target == nil || target.layers[i] == nil {
			continue
		}
		if second := target.key(i, nameAttr.key); second != nil && second.value.(string) != other {
			r.add(name.mistake(codeMisplaced, quote(other)+" itself shares "+quote(second.value.(string)), "name "+quote(second.value.(string))))
			continue
		}
		for _, s := range e.layers[i].sorted() {
			if !s.attr.layer {
				r.add(s.mistake(codeMisplaced, "the layer uses the shared instance "+quote(other)+", which has a section of its own",
					"move it to "+target.layers[i].path))
			}
		}
	}
}
