package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestSoak_BreaksNothing(t *testing.T) {
	var out bytes.Buffer
	p := plan{length: 3 * time.Second, callers: 150, reload: 150 * time.Millisecond, seed: uint64(time.Now().UnixNano())}
	if err := run(t.Context(), &out, p); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "round "); n != rounds {
		t.Errorf("%d rounds", n)
	}
	if strings.Contains(out.String(), " 0 calls") || strings.Contains(out.String(), " 0 snapshots") {
		t.Errorf("a round did nothing:\n%s", out.String())
	}
	t.Log(out.String())
}

// A soak that cannot fail proves nothing: what is broken comes out.
func TestLedger_TellsLostAndDoubleValues(t *testing.T) {
	b := new(broken)
	l := &ledger{broken: b}
	l.produce() // lost
	twice := l.produce()
	l.end(twice, delivered)
	l.end(twice, discarded)
	l.check()
	if n := b.count(); n != 2 {
		t.Errorf("%d reports: %q", n, b.texts())
	}
}
