package bench

import (
	"fmt"
	"os"
	"strings"
)

// Reasons say why a row of the tables misses its target, by the row's name. They
// are written by hand into a file, so that a new measurement keeps them.
type Reasons map[string]string

// ReadReasons reads a file with one reason a line:
//
//	name of the row | reason
//
// Empty lines and those that begin with # are skipped.
func ReadReasons(path string) (Reasons, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := Reasons{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, "|")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want \"name of the row | reason\"", path, n)
		}
		r[strings.TrimSpace(name)] = strings.TrimSpace(reason)
	}
	return r, nil
}

// Missed lists the rows that missed their target, each with its reason, as
// Markdown.
func (r Reasons) Missed(rows []string) string {
	var b strings.Builder
	for _, row := range rows {
		reason := r[row]
		if reason == "" {
			reason = "no reason is given in bench/reasons.txt yet"
		}
		fmt.Fprintf(&b, "- **%s**: %s\n", row, reason)
	}
	return b.String()
}
