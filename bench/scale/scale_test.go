package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"resilience4cata.dev/go/bench"
)

// tiny is for seeing that the parts work, not what they find.
var tiny = size{calls: 1000, ids: 50, many: 500, span: 20 * time.Millisecond, settle: 20 * time.Millisecond, rate: 50 * time.Millisecond, samples: 20, repeats: 1}

// timeless are rows that hold at every size and on a machine that does a lot else.
var timeless = []string{"early", "goroutines"}

// disturbable are parts whose timeless row is a look that the machine may disturb:
// a goroutine of an earlier part ends meanwhile, or who wants to look before a
// deadline wakes up behind it. What is wrong there is so each time.
var disturbable = []string{"expiry", "rest"}

// firstMissed returns the first timeless row that was missed.
func firstMissed(rows []verdict) (v verdict, missed bool) {
	for _, v := range rows {
		if !v.reached && slices.ContainsFunc(timeless, func(word string) bool { return strings.Contains(v.what, word) }) {
			return v, true
		}
	}
	return v, false
}

func TestEveryPartRunsAndDraws(t *testing.T) {
	plots := t.TempDir()
	s := &session{size: tiny, plots: plots, out: io.Discard}
	for _, p := range parts {
		for try := 1; ; try++ {
			before := len(s.rows)
			s.part(p)
			if len(s.rows) == before && p.name != "cores" { // that one needs two
				t.Errorf("part %s has no row", p.name)
			}
			v, missed := firstMissed(s.rows[before:])
			if !missed {
				break
			}
			if try == 5 || !slices.Contains(disturbable, p.name) {
				t.Errorf("%s: %s, want %s", v.what, v.figure, v.target)
				break
			}
			t.Logf("try %d: %s: %s, want %s", try, v.what, v.figure, v.target)
		}
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	if len(s.drawn) == 0 {
		t.Error("no plots")
	}
	for _, name := range s.drawn {
		data, err := os.ReadFile(filepath.Join(plots, name))
		if err != nil || !strings.Contains(string(data), "<svg") {
			t.Errorf("%s is no SVG: %v", name, err)
		}
	}
}

func TestMarkdownMarksWhatWasMissed(t *testing.T) {
	s := &session{out: io.Discard, drawn: []string{"tick.svg"}}
	s.row("good", "1", "≤ 1", true)
	s.row("bad", "2", "≤ 1", false)
	s.printf("how it went\n")
	var b strings.Builder
	if err := s.markdown(&b, bench.Reasons{"bad": "because"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| good | 1 | ≤ 1 | reached |", "| bad | 2 | ≤ 1 | missed |", "1 of 2 targets", "**bad**: because", "plots/tick.svg", "how it went",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestRecorderSortsAndCountsWhatIsEarly(t *testing.T) {
	r := newRecorder(4)
	for _, d := range []time.Duration{3, -1, 2, 1, 100} { // one more than it has room for
		r.add(d * time.Millisecond)
	}
	d := r.sorted()
	if len(d) != 4 || d.early() != 1 || d.max() != 3*time.Millisecond || d.quantile(.5) != 2*time.Millisecond {
		t.Errorf("got %v", d)
	}
}

func TestHistogramCountsEverySampleOnce(t *testing.T) {
	a := durations{-time.Millisecond, 0, 249 * time.Microsecond, 250 * time.Microsecond, time.Second}
	got := histogram([2]string{"a", "b"}, [2]durations{a, nil})
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"late by a b", "early 1 0", "< 250µs 2 0", "< 500µs 1 0", "< 1.024s 1 0"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
