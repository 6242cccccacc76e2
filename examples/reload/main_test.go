package main

import (
	"bytes"
	"regexp"
	"testing"
	"testing/synctest"
)

// In a bubble: no call gets a timeout because the machine is slow.
func TestReload_TheLimitChangesUnderLoad(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		if err := run(t.Context(), &out, dir); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	})
	want := regexp.MustCompile(`(?s)^As it started: maxConcurrent: 2
   explained: instances."reports".bulkhead.maxConcurrent = 2, from resilience.yaml:5
   calls at once: 2
The limit rises: maxConcurrent: 6
   explained: instances."reports".bulkhead.maxConcurrent = 6, from resilience.yaml:5
   calls at once: 6
A file with a mistake: maxConcurrent: many
   refused, and nothing has changed:
   resilience.yaml:5:22: [^\n]*many[^\n]*
   explained: instances."reports".bulkhead.maxConcurrent = 6, from resilience.yaml:5
   calls at once: 6
The limit falls: maxConcurrent: 3
   explained: instances."reports".bulkhead.maxConcurrent = 3, from resilience.yaml:5
   calls at once: 3
Of 12 callers, none was refused or failed: rejected 0, failed 0, timed out 0, in flight 0
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("got\n%s", out.String())
	}
}
