package config

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// EnvVariable is the variable of the environment that [Config.WithEnv] reads.
const EnvVariable = "RESILIENCE4CATA_SET"

// envFile stands for the environment where others have the name of a file. A
// mistake names the variable instead.
const envFile = "env"

// WithEnv returns the configuration with the values that the environment sets,
// given as by [os.Environ]. There is one variable, with a value for each path:
//
//	RESILIENCE4CATA_SET='instances."reports".timeout.value=5s; configs.slow.timeout.value=10s'
//
// Paths are those of errors and of [Setting]; an id that is no plain word is
// written between double quotes with the escapes of Go, and so may a value be
// that holds a semicolon. A value takes the place of what the file says at that
// path, or is added there, and keeps the rank of the path: the environment is no
// level of its own. All mistakes are returned at once, as by [Parse], with
// [EnvVariable] for the file. Of several variables of that name the last one counts.
//
// The receiver is not changed; it may be nil. Without the variable WithEnv
// returns it as it is, or an empty Config for nil.
func (c *Config) WithEnv(environ []string) (*Config, error) {
	r := &report{file: envFile}
	text, found := "", false
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == EnvVariable:
			text, found = value, true
		case strings.HasPrefix(name, "RESILIENCE4CATA") && Nearest(name, []string{EnvVariable}) != "" && distance([]rune(name), []rune(EnvVariable), 3) < 3:
			r.add(Error{Code: codeUnknown, File: "environment", Got: "unknown variable " + quote(name), Hint: `did you mean "` + EnvVariable + `"?`})
		}
	}
	if !found && len(r.errs) == 0 {
		if c == nil {
			return &Config{}, nil
		}
		return c, nil
	}
	b := &envBinder{binder{report: r, config: c.clone()}, text, map[string]bool{}}
	b.read()
	b.config.check(r)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return b.config, nil
}

// envBinder binds the entries of the variable.
type envBinder struct {
	binder
	text string
	seen map[string]bool
}

// placeOf is where the rest of the text begins. The line is unknown, as there is
// only one, so that texts show the path alone.
func (b *envBinder) placeOf(rest string) place {
	return place{0, 1 + utf8.RuneCountInString(b.text[:len(b.text)-len(rest)])}
}

func (b *envBinder) read() {
	if len(b.text) > maxBytes {
		b.fault("", fault{code: codeLimit, got: "the variable is larger than " + strconv.Itoa(maxBytes) + " bytes", hint: "use a file"})
		return
	}
	for rest := b.text; ; {
		rest = strings.TrimLeft(rest, "; \t\r\n")
		if rest == "" {
			return
		}
		here := b.placeOf(rest)
		steps, after, problem := readPath(rest)
		if problem == "" {
			var value step
			var end string
			if value, end, problem = readValue(after); problem == "" {
				b.set(here, steps, value)
				rest = end
				continue
			}
		}
		next := skipEntry(rest)
		bad := strings.TrimSpace(strings.TrimSuffix(rest[:len(rest)-len(next)], ";"))
		b.fault("", fault{here, codeSyntax, quote(bad) + ": " + problem, `write path=value; path=value`})
		rest = next
	}
}

// set binds one entry.
func (b *envBinder) set(here place, steps []step, value step) {
	path := pathOfSteps(steps)
	if b.seen[path] {
		b.fault(path, fault{here, codeDuplicate, "duplicate path", "it is set twice in " + EnvVariable})
		return
	}
	b.seen[path] = true
	top := steps[0].text
	switch {
	case top != topConfigs && top != topInstances:
		b.fault("", fault{here, codeUnknown, "unknown key " + quote(top), topHint(top)})
		return
	case len(steps) < 3:
		b.fault(path, fault{here, codeType, "the path ends at a section", "go on to a key, such as .timeout.value"})
		return
	}
	id, key := steps[1].text, steps[2].text
	if got := checkID(id); got != "" {
		b.fault(path, fault{here, codeID, got, hintID})
		return
	}
	n := &node{place: here, shape: shapeOf(value), text: value.text}
	o := origin{envFile, here}
	at := pathOf(top, id)
	i := sectionIndex(key)
	switch {
	case i >= 0 && len(steps) == 3:
		b.fault(path, fault{here, codeType, "the path ends at a section", "go on to a key, such as ." + sections[i].attrs[0].key})
	case i >= 0:
		b.setAttribute(here, top, id, &sections[i], steps[3:], n)
	case top == topInstances && len(steps) == 3 && key == configAttr.key:
		n.asText(value)
		if v := b.value(&configAttr, n, path); v != nil {
			b.config.entity(top, id, o).config = v
		}
	case top == topInstances && len(steps) == 3 && key == criticalAttr.key:
		if v := b.value(&criticalAttr, n, path); v != nil {
			b.config.entity(top, id, o).critical = v
		}
	case key == configAttr.key || key == criticalAttr.key:
		if top == topInstances {
			b.fault(path, fault{here, codeUnknown, "the path goes on after " + quote(key), "end it there"})
			break
		}
		b.fault(at, fault{here, codeUnknown, unknownPolicy(key), policyHint(top, key)})
	default:
		b.fault(at, fault{here, codeUnknown, unknownPolicy(key), policyHint(top, key)})
	}
}

// setAttribute binds the value of a policy's key.
func (b *envBinder) setAttribute(here place, top, id string, s *section, rest []step, n *node) {
	words := make([]string, len(rest))
	for i, st := range rest {
		words[i] = st.text
	}
	path := pathOf(top, id) + "." + s.key
	a := s.find(strings.Join(words, "."))
	if a == nil {
		key := words[0]
		switch {
		case s.isGroup(key) && len(words) == 1:
			b.fault(path+"."+key, fault{here, codeType, "the path ends at a section", "go on to a key"})
		case s.isGroup(key):
			b.fault(path+"."+key, fault{here, codeUnknown, unknownKey(strings.Join(words[1:], ".")), groupHint(s, key, words[1])})
		case s.find(key) != nil:
			b.fault(path+"."+key, fault{here, codeUnknown, "the path goes on after " + quote(key), "end it there"})
		default:
			b.fault(path, fault{here, codeUnknown, unknownKey(key), hintKey(s, key)})
		}
		return
	}
	if a.kind == kindID || a.kind == kindWord {
		n.asText(step{text: n.text})
	}
	if v := b.value(a, n, path+"."+a.key); v != nil {
		o := origin{envFile, here}
		b.config.entity(top, id, o).layer(sectionIndex(s.key), o).settings[a] = v
	}
}

// pathOfSteps is the path as we write it.
func pathOfSteps(steps []step) string {
	var words []string
	if len(steps) >= 2 {
		words, steps = append(words, pathOf(steps[0].text, steps[1].text)), steps[2:]
	}
	for _, st := range steps {
		if plainWord.MatchString(st.text) {
			words = append(words, st.text)
		} else {
			words = append(words, strconv.Quote(st.text))
		}
	}
	return strings.Join(words, ".")
}

// shapeOf is what YAML would take the value for.
func shapeOf(v step) shape {
	switch {
	case v.quoted:
		return shapeString
	case v.text == "" || v.text == "~" || strings.EqualFold(v.text, "null"):
		return shapeNull
	case strings.EqualFold(v.text, "true") || strings.EqualFold(v.text, "false"):
		return shapeBool
	case decimalInt.MatchString(v.text):
		return shapeInt
	case decimalFloat.MatchString(v.text):
		return shapeFloat
	}
	return shapeString
}

// asText makes of the node what a quoted value is: in the environment a name
// needs no quotes.
func (n *node) asText(v step) {
	if n.shape != shapeNull || v.quoted {
		n.shape = shapeString
	}
}
