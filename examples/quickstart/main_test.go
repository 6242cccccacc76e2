package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"resilience4cata.dev/go/registry"
)

func TestQuickstartSaysWhatHappened(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		`"fast report"`,
		`timeout "reports": exceeded 300ms`,
		"it is a timeout: true; a context.DeadlineExceeded: true; the function had started: true",
		"the work is done: false; asked to stop: true; abandoned now: 1",
		`"acknowledged" after`,
		"a late Complete returns false, and Work still tells: \"too late\"",
		`"third time lucky"`,
		"attempts made: 3",
		"3 served, 2 refused before they started",
		"6 served, 4 refused",
		"the longest that whole: retry(3 in 500ms) > timeout(300ms) can take: 500ms",
		`8 calls, 4 reached the endpoint; the breaker is open; every caller got "yesterday's report"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	// On a crowded machine the first attempt may be told late, and leave no time.
	if !regexp.MustCompile(`attempts made: [12]; the longest`).MatchString(text) {
		t.Error("section 6 made another number of attempts than one or two")
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
