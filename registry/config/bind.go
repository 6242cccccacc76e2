package config

import (
	"strconv"
	"strings"
)

// binder reads a tree into a Config by the table. It goes on after a mistake, so
// that all of them come out at once.
type binder struct {
	*report
	config *Config
	spent  int // nodes looked at: aliases let a short file ask for many
}

// spend reports whether the binder may look at another n nodes.
func (b *binder) spend(n *node, count int) bool {
	if b.full || b.spent > maxValues {
		return false
	}
	if b.spent += count; b.spent > maxValues {
		b.fault("", fault{n.place, codeLimit, "its aliases expand to more than " + strconv.Itoa(maxValues) + " values", "write less of the file through anchors"})
		return false
	}
	return true
}

func (b *binder) fault(path string, f fault) {
	b.add(Error{Code: f.code, Path: path, Got: f.got, Hint: f.hint, Line: f.line, Col: f.col})
}

// section reports whether n is a map whose entries can be read, and tells what is
// wrong with it.
func (b *binder) section(n *node, path, empty, wrong string) bool {
	if !b.spend(n, 1+len(n.entries)) {
		return false
	}
	for _, f := range n.faults {
		b.fault(path, f)
	}
	switch n.shape {
	case shapeMap:
		return true
	case shapeNull:
		b.fault(path, fault{n.place, codeNull, "the section is null", empty})
	case shapeList:
		b.fault(path, fault{n.place, codeType, "a list where a section is needed", wrong})
	default:
		b.fault(path, fault{n.place, codeType, quote(n.text) + " where a section is needed", wrong})
	}
	return false
}

func (b *binder) document(root *node) {
	if !b.section(root, "", "write {} for an empty configuration", "a configuration has the sections configs and instances") {
		return
	}
	for _, e := range root.entries {
		switch e.key {
		case topConfigs, topInstances:
			b.entities(e.key, e.value)
		default:
			b.fault("", fault{e.place, codeUnknown, "unknown key " + quote(e.key), topHint(e.key)})
		}
	}
}

func topHint(key string) string {
	if near := Nearest(key, []string{topConfigs, topInstances, "config", "instance"}); near != "" {
		return `did you mean "` + strings.TrimSuffix(near, "s") + `s"?`
	}
	if sectionIndex(key) >= 0 {
		return `policies stand under "configs.default" or under an instance`
	}
	return "known are configs and instances; a key of your own begins with x-"
}

func (b *binder) entities(top string, n *node) {
	if !b.section(n, top, "write "+top+": {} or leave it out", "give each a section of its own, by name") {
		return
	}
	for _, e := range n.entries {
		path := pathOf(top, e.key)
		if got := checkID(e.key); got != "" {
			b.fault(top, fault{e.place, codeID, got, hintID})
			continue
		}
		entity := b.config.entity(top, e.key, origin{b.file, e.place})
		b.entity(top, entity, e.value, path)
	}
}

// policyKeys are the keys of the policies; an instance has config and critical
// besides.
func policyKeys(top string) []string {
	keys := make([]string, 0, len(sections)+2)
	for i := range sections {
		keys = append(keys, sections[i].key)
	}
	if top == topInstances {
		keys = append(keys, configAttr.key, criticalAttr.key)
	}
	return keys
}

func (b *binder) entity(top string, to *entity, n *node, path string) {
	if !b.section(n, path, "write {} for no settings, or leave it out", "name its policies, such as timeout: {value: 2s}") {
		return
	}
	for _, e := range n.entries {
		if b.full {
			return
		}
		if i := sectionIndex(e.key); i >= 0 {
			b.layer(to.layer(i, origin{b.file, e.place}), &sections[i], e.value)
			continue
		}
		switch {
		case top == topInstances && e.key == configAttr.key:
			to.config = b.value(&configAttr, e.value, path+"."+e.key)
		case top == topInstances && e.key == criticalAttr.key:
			to.critical = b.value(&criticalAttr, e.value, path+"."+e.key)
		default:
			b.fault(path, fault{e.place, codeUnknown, unknownPolicy(e.key), policyHint(top, e.key)})
		}
	}
}

func unknownPolicy(key string) string { return "unknown policy " + quote(key) }

func policyHint(top, key string) string {
	if top == topConfigs && (key == configAttr.key || key == criticalAttr.key) {
		return "that is a key of instances; configs do not build on one another"
	}
	return hintSection(key, policyKeys(top))
}

func (b *binder) layer(to *layer, s *section, n *node) {
	if !b.section(n, to.path, "write "+s.key+": {} for its defaults, or leave it out", sectionHint(s, n)) {
		return
	}
	for _, e := range n.entries {
		if b.full { // no more work, above all none for hints
			return
		}
		if s.isGroup(e.key) {
			b.group(to, s, e)
			continue
		}
		a := s.find(e.key)
		if a == nil || strings.Contains(e.key, ".") {
			b.fault(to.path, fault{e.place, codeUnknown, unknownKey(e.key), hintKey(s, e.key)})
			continue
		}
		if v := b.value(a, e.value, to.path+"."+e.key); v != nil {
			to.settings[a] = v
		}
	}
}

func unknownKey(key string) string { return "unknown key " + quote(key) }

// sectionHint shows how a lone value that stands where a section should would be
// written.
func sectionHint(s *section, n *node) string {
	if a := s.attrs[0]; n.shape < shapeMap {
		if n.shape == shapeBool {
			a = enabledAttr
		}
		if _, f := a.read(n); f == nil {
			return "write " + s.key + ": {" + a.key + ": " + clip(n.text) + "}"
		}
	}
	return "write its keys and values"
}

// isGroup reports whether key is a section inside s, such as budget.
func (s *section) isGroup(key string) bool {
	return len(s.groupKeys(key)) > 0
}

// groupKeys returns the keys of the section group inside s.
func (s *section) groupKeys(group string) []string {
	var keys []string
	for _, a := range s.attrs {
		if key, ok := strings.CutPrefix(a.key, group+"."); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func groupHint(s *section, group, key string) string {
	known := s.groupKeys(group)
	return didYouMean(key, known, "known are "+strings.Join(known, ", "))
}

// group reads a section inside a policy's. An empty one is a mistake: it says
// that something is wanted, and not what.
func (b *binder) group(to *layer, s *section, in entry) {
	path := to.path + "." + in.key
	give := "give " + strings.Join(s.groupKeys(in.key), " or ")
	if !b.section(in.value, path, give, give) {
		return
	}
	if len(in.value.entries) == 0 && len(in.value.faults) == 0 {
		b.fault(path, fault{in.value.place, codeNull, "the section is empty", give})
	}
	for _, e := range in.value.entries {
		a := s.find(in.key + "." + e.key)
		if a == nil {
			b.fault(path, fault{e.place, codeUnknown, unknownKey(e.key), groupHint(s, in.key, e.key)})
			continue
		}
		if v := b.value(a, e.value, path+"."+e.key); v != nil {
			to.settings[a] = v
		}
	}
}

// value reads a scalar; nil if there is something wrong with it.
func (b *binder) value(a *attribute, n *node, path string) *setting {
	if !b.spend(n, 1) {
		return nil
	}
	for _, f := range n.faults {
		b.fault(path, f)
	}
	v, f := a.read(n)
	if f != nil {
		b.fault(path, *f)
	}
	if f != nil || len(n.faults) > 0 {
		return nil
	}
	return &setting{a, v, path, origin{b.file, n.place}}
}
