package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"resilience4cata.dev/go/policy"
)

// checkID notes what is wrong with an id, which is compared exactly: any text
// that can be printed is legal, as long as no space begins or ends it.
func (m *mistakes) checkID(kind, id, path string) {
	var got string
	switch {
	case id == "":
		got = "the id is empty"
	case strings.TrimSpace(id) != id:
		got = "the id begins or ends with a space"
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsGraphic(r) }):
		got = "the id holds characters that cannot be printed"
	default:
		return
	}
	m.add(policy.ConfigError{Code: codeID, Policy: kind, ID: id, Path: path, Got: got, Hint: "give a name that can be printed, without space around it"})
}
