package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"resilience4cata.dev/go/bench"
)

const sampled = `goos: linux
goarch: amd64
cpu: Some CPU
BenchmarkX/lib=ours  	100	 10.0 ns/op	 64 B/op	 1 allocs/op
BenchmarkX/lib=peer  	100	 60.0 ns/op	 272 B/op	 4 allocs/op
BenchmarkX/lib=ours  	100	 40.0 ns/op	 64 B/op	 1 allocs/op
BenchmarkX/lib=peer  	100	 200.0 ns/op	 272 B/op	 4 allocs/op
BenchmarkX/lib=ours  	100	 20.0 ns/op	 64 B/op	 1 allocs/op
BenchmarkX/lib=peer  	100	 140.0 ns/op	 272 B/op	 4 allocs/op
BenchmarkX/lib=ours-2  	100	 5.0 ns/op	 64 B/op	 1 allocs/op
`

func measure(t *testing.T, text string) measured {
	t.Helper()
	m, err := parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func one(t *testing.T, r row) result {
	t.Helper()
	list, err := evaluate([]row{r}, measure(t, sampled))
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// near allows for the rounding of seconds to nanoseconds.
func near(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

func TestRatioIsTheMedianOfThePassesRatios(t *testing.T) {
	r := one(t, against("x", "X", "peer", faster(6)))
	if !near(r.medianRatio, 6) { // of 6, 5 and 7; the ratio of the medians would be 7
		t.Errorf("ratio %v, want 6", r.medianRatio)
	}
	if !near(r.oursNs, 20) || !near(r.theirsNs, 140) {
		t.Errorf("%v and %v ns, want 20 and 140", r.oursNs, r.theirsNs)
	}
	if !near(r.low, 5.5) || !near(r.high, 6.5) {
		t.Errorf("quartiles %v and %v, want 5.5 and 6.5", r.low, r.high)
	}
}

func TestVerdictNamesWhatWasMissed(t *testing.T) {
	for _, tt := range []struct {
		name string
		goal target
		want string
	}{
		{"exactly reached", faster(5.999).gate(1, 64), "reached"},
		{"too slow", faster(6.1).gate(1, 64), "missed: time"},
		{"an allocation", faster(5.999).gate(0, 64), "missed: allocations"},
		{"a byte of the runtime's", faster(5.999).gate(1, 63), "reached"},
		{"a word", faster(5.999).gate(1, 56), "missed: bytes"},
		{"all", faster(7).gate(0, 0), "missed: time, allocations, bytes"},
		{"for information", target{}, ""},
		{"no more time than theirs", target{extra: 1}, "reached"},
	} {
		if got := one(t, against("x", "X", "peer", tt.goal)).verdict(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMissingSamplesAreAnError(t *testing.T) {
	for _, r := range []row{
		against("x", "X", "nobody", faster(1)), // no such side
		scaling("x", "X", faster(1)),           // one sample against three
	} {
		if _, err := evaluate([]row{r}, measure(t, sampled)); err == nil {
			t.Errorf("%v: no error", r)
		}
	}
}

func TestRowsHaveTheirOwnNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name] {
			t.Errorf("two rows are called %q", r.name)
		}
		seen[r.name] = true
	}
}

func TestMarkdownHasEveryRowAndTheReasons(t *testing.T) {
	m := measure(t, sampled)
	list, err := evaluate([]row{against("good", "X", "peer", faster(5)), against("bad", "X", "peer", faster(9))}, m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	o := options{passes: 3, benchtime: time.Second}
	if err := writeMarkdown(&b, o, m, list, bench.Reasons{"bad": "because"}, []byte("stat\n")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| good |", "| bad |", "**bad**: because", "Some CPU", "1 of 2 targets reached", "stat"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
