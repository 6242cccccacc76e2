package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"resilience4cata.dev/go/examples/internal/pipenet"
	"resilience4cata.dev/go/registry"
)

// In a bubble and over pipes: the machine may be as slow as it likes, and each
// figure of the output is the one of the settings.
func TestQuickstart_SaysWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		network := pipenet.Listen()
		if err := run(t.Context(), &out, network, network.Transport()); err != nil {
			t.Fatal(err)
		}
		check(t, out.String())
	})
}

func check(t *testing.T, text string) {
	t.Helper()
	for _, want := range []string{
		`"fast report" after 0s`,
		`error after 300ms: timeout "reports": exceeded 300ms`,
		"it is a timeout: true; a context.DeadlineExceeded: true; the function had started: true",
		"the work is done: false; asked to stop: true; abandoned now: 1",
		`"acknowledged" after 0s`,
		"a late Complete returns false, and Work still tells: \"too late\"",
		`"third time lucky" after 60ms`,
		"attempts made: 3",
		"3 served, 2 refused before they started; the next permit in 300ms",
		"6 served, 4 refused",
		"error after 500ms: ",
		"attempts made: 2; the longest that whole: retry(3 in 500ms) > timeout(300ms) can take: 500ms",
		`8 calls, 4 reached the endpoint; the breaker is open; every caller got "yesterday's report"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	var s struct{ Pipelines []registry.PipelineSnapshot }
	if err := json.Unmarshal([]byte(jsonOf(t, text)), &s); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Pipelines {
		if p.ID == "reports" && (p.Abandoned.LateSuccess != 2 || p.Abandoned.Running != 0) {
			t.Errorf("reports: %+v", p.Abandoned)
		}
		if p.Calls.InFlight != 0 {
			t.Errorf("%s: in flight %d", p.ID, p.Calls.InFlight)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// jsonOf is the snapshot at the end of the output.
func jsonOf(t *testing.T, text string) string {
	t.Helper()
	_, snapshot, found := strings.Cut(text, "\n{")
	if !found {
		t.Fatal("no snapshot in the output")
	}
	return "{" + snapshot
}
