package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"resilience4cata.dev/go/bench"
)

var columns = []string{"row", "against", "ours", "theirs", "ratio", "quartiles", "target", "allocs", "bytes", ""}

func (r result) cells() []string {
	ratio := fmt.Sprintf("%.1fx", r.medianRatio)
	if r.extra != 0 {
		ratio = fmt.Sprintf("%+.1f ns", r.medianExtra)
	}
	return []string{
		r.name, r.against, nanos(r.oursNs), nanos(r.theirsNs), ratio, fmt.Sprintf("%.1f to %.1f", r.low, r.high),
		r.goal(), fmt.Sprintf("%.0f / %.0f", r.oursAllocs, r.theirsAllocs), fmt.Sprintf("%.0f / %.0f", r.oursBytes, r.theirsBytes),
		r.verdict(),
	}
}

func nanos(ns float64) string {
	if ns < 100 {
		return fmt.Sprintf("%.1f ns", ns)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

func printTable(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	p := printer{w: t}
	p.f("%s\n", strings.Join(columns, "\t"))
	for _, r := range results {
		p.f("%s\n", strings.Join(r.cells(), "\t"))
	}
	return errors.Join(p.err, t.Flush())
}

const explanation = `Written by ` + "`make bench`" + `. **Ratios, allocations and bytes count; nanoseconds alone do not**: machines drift by a
factor of two within minutes. Both sides ran in turn, %d passes of %v each, every other one in the opposite order.
Times and ratios are medians over the passes; a ratio is that of two figures of one pass. Allocations and bytes are
ours / theirs a call; a few bytes over the size of an allocation is what the runtime spends meanwhile.

`

func writeMarkdown(w io.Writer, o options, m measured, results []result, reasons bench.Reasons, stat []byte) error {
	p := printer{w: w}
	p.f("# Results\n\n")
	p.f(explanation, o.passes, o.benchtime)
	p.f("| | |\n|---|---|\n")
	p.f("| date | %s |\n", time.Now().UTC().Format("2006-01-02 15:04 MST"))
	p.f("| commit | %s |\n", commit())
	p.f("| CPU | %s, %d logical |\n", m.about["cpu"], runtime.NumCPU())
	p.f("| Go | %s %s/%s |\n", runtime.Version(), m.about["goos"], m.about["goarch"])
	for _, v := range versions() {
		p.f("| peer | %s |\n", v)
	}
	p.f("| command | `make bench` |\n\n")

	p.f("## Cost of a call\n\n")
	p.f("| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	var missed []string
	for _, r := range results {
		p.f("| %s |\n", strings.Join(r.cells(), " | "))
		if r.missed() {
			missed = append(missed, r.name)
		}
	}
	p.f("\n%d of %d targets reached.\n", reached(results), targets(results))
	if len(missed) > 0 {
		p.f("\nThose that were missed:\n\n%s", reasons.Missed(missed))
	}
	p.f("\n<details><summary>benchstat</summary>\n\n```\n%s```\n\n</details>\n", stat)
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

func reached(results []result) (n int) {
	for _, r := range results {
		if r.verdict() == "reached" {
			n++
		}
	}
	return n
}

func targets(results []result) (n int) {
	for _, r := range results {
		if r.target != (target{}) {
			n++
		}
	}
	return n
}

// commit is what was measured.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":/*.go", ":/go.mod").Output()
	if err != nil || len(changed) > 0 {
		return strings.TrimSpace(string(head)) + ", with changes"
	}
	return strings.TrimSpace(string(head))
}

// versions are the peers that this module requires. The benchmarks are its
// tests, so their modules are asked of the go command and not of this program.
func versions() []string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}} {{.Version}}{{end}}", "all").Output()
	if err != nil {
		return nil
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "resilience4cata.dev/") {
			list = append(list, line)
		}
	}
	return list
}
