// Command compare runs the benchmarks of bench/peers, ours beside the others',
// and prints one row for each target: both sides, the ratio, and whether it was
// reached.
//
// It builds the benchmarks once and runs them in passes. In each pass the sides
// of an operation follow each other within seconds, and every other pass runs
// them in the opposite order; the ratio is taken inside each pass, and the table
// has the median over all passes. So a machine that is slow for a minute makes
// the figures noisier, and not one side of them better. benchstat's own view of
// the same samples is printed above the table.
//
//	go run ./cmd/compare                    ten passes, some minutes
//	go run ./cmd/compare -quick             six short ones, under a minute
//	go run ./cmd/compare -out FILE          the same, as Markdown
//	go run ./cmd/compare -read FILE         the table of samples that were kept with -raw
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"resilience4cata.dev/go/bench"
)

type options struct {
	passes    int
	benchtime time.Duration
	quick     bool
	out       string
	raw       string
	read      string
	reasons   string
}

func main() {
	var o options
	flag.IntVar(&o.passes, "passes", 10, "how often each benchmark runs")
	flag.DurationVar(&o.benchtime, "benchtime", 300*time.Millisecond, "how long each benchmark runs in a pass")
	flag.BoolVar(&o.quick, "quick", false, "6 passes of 15 ms")
	flag.StringVar(&o.out, "out", "", "write the results to this file as Markdown")
	flag.StringVar(&o.raw, "raw", "", "keep all samples in this file, in the format of go test -bench")
	flag.StringVar(&o.read, "read", "", "run nothing, and take the samples from this file")
	flag.StringVar(&o.reasons, "reasons", "../reasons.txt", "why rows miss their target")
	flag.Parse()
	if o.quick {
		o.passes, o.benchtime = 6, 15*time.Millisecond
	}
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(o options, w io.Writer) error {
	reasons, err := bench.ReadReasons(o.reasons)
	if err != nil {
		return err
	}
	raw, err := samples(o)
	if err != nil {
		return err
	}
	if o.raw != "" {
		if err := os.WriteFile(o.raw, raw, 0o600); err != nil {
			return err
		}
	}
	s, err := parse(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	results, err := evaluate(rows, s)
	if err != nil {
		return err
	}
	stat, err := benchstat(raw)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s\n", stat); err != nil {
		return err
	}
	if err := printTable(w, results); err != nil || o.out == "" {
		return err
	}
	var md bytes.Buffer
	if err := writeMarkdown(&md, o, s, results, reasons, stat); err != nil {
		return err
	}
	return os.WriteFile(o.out, md.Bytes(), 0o644) //nolint:gosec // a document of the repository
}

func samples(o options) ([]byte, error) {
	if o.read != "" {
		return os.ReadFile(o.read)
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing can be done about it
	r := runner{binary: filepath.Join(dir, "peers.test"), benchtime: o.benchtime}
	if err := r.build(); err != nil {
		return nil, err
	}
	for pass := range o.passes {
		fmt.Fprintf(os.Stderr, "pass %d of %d\n", pass+1, o.passes)
		if err := r.pass(pass%2 == 1); err != nil {
			return nil, err
		}
	}
	return r.out.Bytes(), nil
}
