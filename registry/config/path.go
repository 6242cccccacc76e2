package config

import (
	"regexp"
	"strconv"
	"strings"
)

// A path names a value: configs.slow.timeout.value, or
// instances."com.acme.ReportApi#build(java.lang.String)".timeout.value. It is
// what errors and settings show, and what the environment takes. The id of an
// instance is always between quotes when we write it.

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// pathOf is the path of the section of an id in "instances" or "configs".
func pathOf(top, id string) string {
	if top == topConfigs && plainWord.MatchString(id) {
		return top + "." + id
	}
	return top + "." + strconv.Quote(id)
}

// step is one word of a path that was read.
type step struct {
	text   string
	quoted bool
}

// readPath reads a path up to the "=" that must follow it, and returns what
// comes after that. A problem says what is wrong.
func readPath(s string) (steps []step, rest, problem string) {
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		var st step
		if strings.HasPrefix(s, `"`) {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, "", "a quote is not closed, or holds a wrong escape"
			}
			st.text, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
			st.quoted = true
			s = s[len(quoted):]
		} else {
			end := strings.IndexAny(s, `.=;"`+" \t\r\n")
			if end < 0 {
				end = len(s)
			}
			if end == 0 {
				return nil, "", "a word of the path is missing"
			}
			st.text, s = s[:end], s[end:]
		}
		steps = append(steps, st)
		s = strings.TrimLeft(s, " \t\r\n")
		switch {
		case strings.HasPrefix(s, "."):
			s = s[1:]
		case strings.HasPrefix(s, "="):
			return steps, s[1:], ""
		default:
			return nil, "", `there is no "=" after the path`
		}
	}
}

// readValue reads the value of a path up to the ";" that ends it, and returns
// what comes after that.
func readValue(s string) (v step, rest, problem string) {
	s = strings.TrimLeft(s, " \t\r\n")
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return v, "", "a quote is not closed, or holds a wrong escape"
		}
		v.text, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
		v.quoted = true
		s = strings.TrimLeft(s[len(quoted):], " \t\r\n")
		if s != "" && s[0] != ';' {
			return v, "", "something follows the quoted value"
		}
		return v, strings.TrimPrefix(s, ";"), ""
	}
	v.text, rest, _ = strings.Cut(s, ";")
	v.text = strings.TrimSpace(v.text)
	return v, rest, ""
}

// skipEntry returns what follows the next ";" outside quotes: where reading goes
// on after a mistake.
func skipEntry(s string) string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ';':
			return s[i+1:]
		case '"':
			if quoted, err := strconv.QuotedPrefix(s[i:]); err == nil {
				i += len(quoted) - 1
			}
		}
	}
	return ""
}
