package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// runner runs the benchmarks of the module that it is started in.
type runner struct {
	binary    string
	benchtime time.Duration
	out       bytes.Buffer // of all passes
}

func (r *runner) build() error { return r.command("go", "test", "-c", "-o", r.binary, ".").Run() }

// pass runs everything once. Those that call from all processors run with one
// and with two, the others with one: then what the garbage collector does in the
// background is part of what a call costs, on both sides.
func (r *runner) pass(backwards bool) error {
	args := []string{
		"-test.run=^$", "-test.count=1", "-test.benchtime=" + r.benchtime.String(),
		fmt.Sprintf("-backwards=%t", backwards),
	}
	for _, extra := range [][]string{
		{"-test.bench=.", "-test.skip=Parallel$", "-test.cpu=1"},
		{"-test.bench=Parallel$", "-test.cpu=1,2"},
	} {
		cmd := r.command(r.binary, append(extra, args...)...)
		cmd.Stdout = &r.out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w\n%s", err, r.out.Bytes()[max(0, r.out.Len()-2000):])
		}
	}
	return nil
}

func (r *runner) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	cmd.Stdout = os.Stderr
	return cmd
}

// benchstat has a table for each operation, with confidence intervals. Its version
// is in go.mod.
func benchstat(raw []byte) ([]byte, error) {
	f, err := os.CreateTemp("", "samples")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // nothing can be done about it
	if _, err := f.Write(raw); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "tool", "benchstat", "-filter", ".unit:sec/op", "-table", ".name", "-row", "/gomaxprocs", "-col", "/lib", f.Name())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchstat: %w", err)
	}
	return bytes.ReplaceAll(out, []byte(f.Name()), []byte("samples")), nil
}
