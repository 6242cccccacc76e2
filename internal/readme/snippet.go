package readme

import (
	"fmt"
	"regexp"
	"strings"
)

// Snippet is a fenced block of Go code in a Markdown text.
type Snippet struct {
	File     string // the Markdown file, relative to the root of the repository
	Line     int    // of the opening fence, from 1
	Path     string // of the origin, relative to the root of the repository
	Function string // of the origin; "" stands for the whole file
	Code     string // without the fences
}

// String names the snippet in a failure text.
func (s Snippet) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s:%d from %s %s", s.File, s.Line, s.Path, s.Function))
}

var origin = regexp.MustCompile(`^<!-- from: (\S+\.go)(?: (\w+))? -->$`)

// Snippets returns the Go blocks of a Markdown text, in their order; file is its name. A Go block without an origin, an
// origin without a Go block and a fence that is never closed are errors.
func Snippets(file, markdown string) ([]Snippet, error) {
	var (
		snippets []Snippet
		from     []string // the marker on the line above
		fence    int      // line of the open fence; 0 outside of blocks
		block    *Snippet // the open block, if it is Go
		code     strings.Builder
	)
	for i, line := range strings.Split(markdown, "\n") {
		switch {
		case fence > 0 && line == "```":
			if block != nil {
				block.Code = code.String()
				snippets = append(snippets, *block)
			}
			fence, block = 0, nil
			code.Reset()
		case fence > 0:
			code.WriteString(line + "\n")
		case line == "```go":
			if from == nil {
				return nil, fmt.Errorf("%s:%d: Go block without <!-- from: FILE FUNCTION --> on the line above", file, i+1)
			}
			fence, block = i+1, &Snippet{File: file, Line: i + 1, Path: from[1], Function: from[2]}
			from = nil
		case from != nil:
			return nil, fmt.Errorf("%s:%d: origin of a snippet without a Go block on the next line", file, i)
		case strings.HasPrefix(line, "```"):
			fence = i + 1
		case strings.HasPrefix(line, "<!-- from:"):
			if from = origin.FindStringSubmatch(line); from == nil {
				return nil, fmt.Errorf("%s:%d: want <!-- from: FILE.go FUNCTION --> or <!-- from: FILE.go -->, got %s", file, i+1, line)
			}
		}
	}
	if fence > 0 {
		return nil, fmt.Errorf("%s:%d: block is never closed", file, fence)
	}
	return snippets, nil
}
