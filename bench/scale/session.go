package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"resilience4cata.dev/go/bench"
)

// session is a run: what it found so far.
type session struct {
	size
	plots string
	out   io.Writer

	current string
	details bytes.Buffer
	rows    []verdict
	drawn   []string // file names of plots
	err     error    // the first; no part stops for one of writing a plot
}

// verdict is a row of the table.
type verdict struct {
	what, figure, target string
	reached              bool
}

func (s *session) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.details.WriteString(text)
	io.WriteString(s.out, text) //nolint:errcheck // the terminal
}

// row notes a figure that has a target.
func (s *session) row(what, figure, target string, reached bool) {
	s.rows = append(s.rows, verdict{what, figure, target, reached})
}

func (s *session) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("%s: %w", s.current, err)
	}
}

func (v verdict) cells() []string {
	word := "reached"
	if !v.reached {
		word = "missed"
	}
	return []string{v.what, v.figure, v.target, word}
}

var columns = []string{"what", "figure", "target", ""}

func (s *session) table() {
	lines := []string{"\n" + strings.Join(columns, "\t")}
	for _, v := range s.rows {
		lines = append(lines, strings.Join(v.cells(), "\t"))
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	io.WriteString(t, strings.Join(lines, "\n")+"\n") //nolint:errcheck // Flush tells
	s.fail(t.Flush())
}

func (s *session) markdown(w io.Writer, reasons bench.Reasons) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Scale and cost of waiting\n\n| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	var missed []string
	for _, v := range s.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(v.cells(), " | "))
		if !v.reached {
			missed = append(missed, v.what)
		}
	}
	fmt.Fprintf(&b, "\n%d of %d targets reached.\n", len(s.rows)-len(missed), len(s.rows))
	if len(missed) > 0 {
		fmt.Fprintf(&b, "\nThose that were missed:\n\n%s", reasons.Missed(missed))
	}
	for _, p := range s.drawn {
		fmt.Fprintf(&b, "\n![%s](plots/%s)\n", strings.TrimSuffix(p, ".svg"), p)
	}
	fmt.Fprintf(&b, "\n<details><summary>details</summary>\n\n```\n%s```\n\n</details>\n", s.details.String())
	_, err := io.WriteString(w, b.String())
	return err
}
