package policy

import (
	"strconv"
	"strings"
)

// ConfigError is one mistake in a setting, whether it came from code, from a
// configuration file or from the environment. Empty fields do not apply.
type ConfigError struct {
	Code   string // stable code, listed in docs/errors.md: "R4C-ATR-002"
	Policy string // "timeout", "retry", …; "pipeline" for the builder's own
	ID     string // the instance or pipeline
	Path   string // the setting: `instances."reports".timeout.value`, or "value" in code
	Got    string // what was given and what is wrong with it
	Hint   string // the way out
	File   string // configuration file, or the variable of the environment
	Line   int    // 1-based; 0: unknown
	Col    int    // 1-based, in characters; 0: unknown
}

// Error formats the mistake as
//
//	resilience.yaml:8:5: instances."reports": unknown policy "tiemout" (did you mean "timeout"?) [R4C-REG-002]
//
// and, where there is no file, with the policy and the id in its place.
func (e *ConfigError) Error() string {
	var b strings.Builder
	switch {
	case e.File != "":
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
			if e.Col > 0 {
				b.WriteString(":" + strconv.Itoa(e.Col))
			}
		}
		b.WriteString(": ")
	case e.Policy != "" || e.ID != "":
		b.WriteString(e.Policy)
		if e.ID != "" {
			if e.Policy != "" {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.Quote(e.ID))
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Got)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	if e.Code != "" {
		b.WriteString(" [" + e.Code + "]")
	}
	return b.String()
}

// ConfigErrors returns every [ConfigError] in the tree of err, in the order in
// which they were joined. It returns nil when there is none.
func ConfigErrors(err error) []*ConfigError {
	var found []*ConfigError
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // this is the walk itself
		case *ConfigError:
			found = append(found, e)
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, child := range e.Unwrap() {
				walk(child)
			}
		}
	}
	walk(err)
	return found
}
