package config

import (
	"reflect"
	"strings"
	"time"

	"resilience4cata.dev/go/policy"
)

// resolved is the value that an attribute has after merging, and why.
type resolved struct {
	value   any
	rank    int      // of the level that gave it; 0: the built-in default
	setting *setting // in a file or the environment; else nil
	origin  string
}

// rankCode is the rank of the code's own settings.
const rankCode = 3

// merged is one policy of one instance while its levels are put together.
type merged struct {
	section  *section
	index    int // of section
	id       string
	name     string // the shared instance, "" for none
	byCode   bool   // the name stands in code
	values   map[*attribute]resolved
	layers   []*layer // the sections that name the layer for id, low to high
	mistakes report
}

// levels are the sections of the file that count for one policy of one id, low
// to high; each may be nil.
type levels struct {
	everybody, base    *layer // configs.default, and what code names: below code
	named, own         *layer // what the instance names, and its own: above code
	sharedNamed, share *layer // the same of the shared instance
}

// merge puts the levels together: the defaults, what code gave, and the file.
func merge[C any](c *Config, id, policyName string, code Code[C], defaults C) *merged {
	m, l := c.levels(id, policyIndex(policyName), code.Base, code.Name)
	m.fill(l, reflect.ValueOf(defaults), reflect.ValueOf(code.Config), code.Keys)
	m.derive()
	return m
}

// takesOut reports whether the file, at whichever level, switches the layer of the
// section i off.
func (c *Config) takesOut(id string, i int) bool {
	m, l := c.levels(id, i, "", "")
	a := m.section.find(enabledAttr.key)
	m.takeBelow(a, l)
	m.takeAbove(a, l)
	return m.values[a].value == false
}

// levels finds the sections that count for one policy of the instance id, whose
// code names a config and a shared instance, or not.
func (c *Config) levels(id string, i int, base, name string) (*merged, levels) {
	m := &merged{section: &sections[i], index: i, id: id, values: map[*attribute]resolved{}}
	var l levels
	at := func(e *entity) *layer {
		if e == nil {
			return nil
		}
		if e.layers[i] != nil {
			m.layers = append(m.layers, e.layers[i])
		}
		return e.layers[i]
	}
	l.everybody = at(c.base(defaultConfig))
	if base != "" {
		e := c.base(base)
		if e == nil {
			m.mistakes.add(Error{
				Code: codeBase, Policy: m.section.policy, ID: id, Path: "config",
				Got: "unknown config " + quote(base), Hint: c.baseHint(base),
			})
		}
		l.base = at(e)
	}
	l.named, l.own = at(c.named(c.instance(id))), at(c.instance(id))
	m.resolveName(l, name)
	if m.name != "" {
		if shared := c.instance(m.name); shared != nil {
			l.share = shared.layers[i]
			if base := c.named(shared); base != nil {
				l.sharedNamed = base.layers[i]
			}
		}
	}
	return m, l
}

// resolveName finds the shared instance that the layer uses.
func (m *merged) resolveName(l levels, inCode string) {
	a := m.section.find(nameAttr.key)
	if a == nil {
		return
	}
	m.name, m.byCode = inCode, inCode != ""
	for _, from := range []struct {
		*layer
		above bool
	}{{l.everybody, false}, {l.base, false}, {l.named, true}, {l.own, true}} {
		if s := from.get(a); s != nil && (from.above || inCode == "") {
			m.name, m.byCode = s.value.(string), false
			m.values[a] = resolved{s.value, 0, s, s.String()}
		}
	}
	if m.byCode {
		m.values[a] = resolved{value: inCode, rank: rankCode, origin: originCode}
	}
	if m.name == m.id {
		m.name, m.byCode = "", false
	}
	if m.name == "" {
		delete(m.values, a)
	}
	if m.byCode && l.own != nil {
		m.mistakes.add(Error{
			Code: codeMisplaced, Policy: m.section.policy, ID: m.id, Path: l.own.path, File: l.own.file, Line: l.own.line, Col: l.own.col,
			Got: "the layer is named " + quote(m.name) + " in code, so this section cannot apply", Hint: "move it to " + pathOf(topInstances, m.name) + "." + m.section.key,
		})
	}
}

// fill resolves every attribute but the name.
func (m *merged) fill(l levels, defaults, code reflect.Value, keys []string) {
	inCode := map[string]bool{}
	for _, k := range keys {
		inCode[k] = true
	}
	for k := range m.section.attrs {
		a := &m.section.attrs[k]
		if a.key == nameAttr.key {
			continue
		}
		if a.inFile {
			m.values[a] = resolved{value: true, origin: originDefault} // enabled
		} else {
			if v, ok := field(defaults, a.key); ok {
				m.values[a] = resolved{value: v, origin: originDefault}
			}
		}
		m.takeBelow(a, l)
		top, _, _ := strings.Cut(a.key, ".")
		if !a.inFile && (inCode[a.key] || inCode[top]) {
			if v, ok := field(code, a.key); ok {
				m.values[a] = resolved{value: v, rank: rankCode, origin: originCode}
			}
		}
		m.takeAbove(a, l)
	}
}

// takeBelow overrides a by what the levels below code say of it.
func (m *merged) takeBelow(a *attribute, l levels) {
	m.take(a, 1, l.everybody)
	m.take(a, 2, l.base)
}

// takeAbove overrides a by what the levels above code say of it.
func (m *merged) takeAbove(a *attribute, l levels) {
	upper := [...]*layer{l.named, l.own, l.sharedNamed, l.share}
	if a.layer {
		upper = [...]*layer{l.sharedNamed, l.share, l.named, l.own}
	}
	for n, from := range upper {
		m.take(a, rankCode+1+n, from)
	}
}

// take overrides a by what the level says of it.
func (m *merged) take(a *attribute, rank int, from *layer) {
	if s := from.get(a); s != nil {
		m.values[a] = resolved{s.value, rank, s, s.String()}
	}
}

// value returns what is resolved for a key.
func (m *merged) value(key string) (*attribute, resolved) {
	a := m.section.find(key)
	return a, m.values[a]
}

// derive applies the rules by which one setting follows from another.
func (m *merged) derive() {
	switch m.section.policy {
	case "retry": // half a budget has a whole: the other half is zero
		ratio, r := m.value("budget.ratio")
		floor, f := m.value("budget.minPerSecond")
		switch {
		case r.rank > 0 && f.rank == 0:
			m.values[floor] = resolved{value: 0.0, origin: originDefault}
		case f.rank > 0 && r.rank == 0:
			m.values[ratio] = resolved{value: 0.0, origin: originDefault}
		}
	case "bulkhead": // B-2: of queue and maxWait, what is not said bounds nothing if the other is
		queue, q := m.value("queue")
		wait, w := m.value("maxWait")
		switch {
		case q.rank > 0 && w.rank == 0:
			m.values[wait] = resolved{value: time.Duration(-1), origin: originDefault}
		case w.rank > 0 && q.rank == 0:
			m.values[queue] = resolved{value: -1, origin: originDefault}
		}
	case "ratelimit": // L-1: the burst is the limit
		burst, b := m.value("burst")
		if _, limit := m.value("limit"); b.rank == 0 {
			m.values[burst] = resolved{value: limit.value, origin: originDefault}
		}
	case "circuitbreaker": // one window: the one that was said last, going up
		count, n := m.value("window")
		span, d := m.value("timeWindow")
		switch {
		case d.value.(time.Duration) == 0:
		case n.rank > d.rank:
			m.values[span] = resolved{value: time.Duration(0), origin: n.origin}
		default:
			m.values[count] = resolved{value: 0, origin: d.origin}
		}
	}
}

// enabled reports whether the layer is to be there.
func (m *merged) enabled() bool {
	_, v := m.value(enabledAttr.key)
	enabled, _ := v.value.(bool)
	return enabled
}

// into writes the values into the fields of to, a policy's Config.
func (m *merged) into(to reflect.Value) {
	for i := range m.section.attrs {
		if a := &m.section.attrs[i]; !a.inFile {
			if v, ok := m.values[a]; ok {
				setField(to, a.key, v.value)
			}
		}
	}
}

// owner is the id whose section the attribute belongs to.
func (m *merged) owner(a *attribute) string {
	if m.name != "" && (!a.layer || m.byCode) && a.key != nameAttr.key {
		return m.name
	}
	return m.id
}

// settings lists the values in the order of the table.
func (m *merged) settings() []Setting {
	list := make([]Setting, 0, len(m.values))
	for i := range m.section.attrs {
		a := &m.section.attrs[i]
		v, ok := m.values[a]
		if !ok || a.key == "window" && v.value == 0 && v.setting == nil {
			continue // no budget; no window of calls beside one of time
		}
		path := pathOf(topInstances, m.owner(a)) + "." + m.section.key + "." + a.key
		list = append(list, Setting{Path: path, Value: format(a, v.value), Origin: v.origin})
	}
	return list
}

// locate says of each mistake that the policy found in the merged values where
// the value came from.
func (m *merged) locate(err error) {
	for _, e := range policy.ConfigErrors(err) {
		found := *e
		found.ID = m.id
		if a := m.section.find(e.Path); a != nil {
			found.ID = m.owner(a)
			v := m.values[a]
			if v.rank == 0 && a.example != "" { // its zero is nobody's value
				found.Got, found.Hint = "must be set", m.exampleHint(a)
			}
			switch {
			case v.setting != nil:
				s := v.setting
				found.File, found.Line, found.Col, found.Path = s.file, s.line, s.col, s.path
				if got, hint := a.outside(v.value); got != "" && e.Code == a.code {
					found.Got, found.Hint = got, hint // in the words of the file
				}
			case v.rank == 0 && len(m.layers) > 0:
				l := m.layers[len(m.layers)-1]
				found.File, found.Line, found.Col, found.Path = l.file, l.line, l.col, l.path+"."+e.Path
			}
		}
		m.mistakes.add(found)
	}
}

// exampleHint shows how a value is given that nobody has given.
func (m *merged) exampleHint(a *attribute) string {
	example := m.section.key + ": {" + a.key + ": " + a.example + "}"
	if len(m.layers) == 0 {
		return "give it in code, or in the configuration as " + example
	}
	return "write " + example + ", or give it in code"
}
