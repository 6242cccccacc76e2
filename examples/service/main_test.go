package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry"
)

func skipWithoutSignals(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot send itself SIGHUP here")
	}
}

func TestDemo_DrivesItselfAndEnds(t *testing.T) {
	skipWithoutSignals(t)
	var out bytes.Buffer
	if err := run(t.Context(), &out, []string{"-demo"}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"r-1      200 report r-1",
		"flaky    200 third time lucky",
		"missing  404 no such report",
		"broken   502 ",
		"slow     504 ",
		`instances."reports".bulkhead.maxConcurrent = 4, from resilience.yaml:`,
		"failureRatio: 5 is out of range",
		"did you mean 250ms or 250s?",
		`did you mean "maxConcurrent"?`,
		"limit 4, in use 0",
		"Started:6 Succeeded:2",
		"InFlight:0",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// startService returns a visitor of a service that runs, and what ends it.
func startService(t *testing.T) (v *visitor, end func() error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "resilience.yaml")
	if err := os.WriteFile(path, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := startBackend()
	if err != nil {
		t.Fatal(err)
	}
	v = &visitor{out: io.Discard, client: &http.Client{Transport: &http.Transport{}}, reloaded: make(chan error, 1)}
	v.service, err = newService(options{
		addr: "localhost:0", config: path, backend: b.url,
		log: slog.New(slog.DiscardHandler), reloaded: func(err error) { v.reloaded <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.service.serve(ctx) }()
	return v, func() error {
		v.client.CloseIdleConnections()
		cancel()
		defer b.close()
		return <-ended
	}
}

func TestService_AnswersSayWhoseFaultItIs(t *testing.T) {
	v, end := startService(t)
	for id, want := range map[string]int{"r-1": 200, "flaky": 200, "missing": 404, "broken": 502} {
		if code, body, err := v.get(t.Context(), "/reports/"+id); code != want || err != nil {
			t.Errorf("%s: %d %q %v", id, code, body, err)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	calls := v.service.reg.Snapshot().Pipelines[0].Calls
	if want := (registry.CallCounts{Started: 4, Succeeded: 2, Failed: 2}); calls != want {
		t.Errorf("%+v", calls)
	}
}

func TestService_ASignalReloads(t *testing.T) {
	skipWithoutSignals(t)
	v, end := startService(t)
	limit := func() int { return v.service.reg.Snapshot().Bulkheads[0].Limit }

	if err := v.reload(t.Context(), strings.Replace(limits, "maxConcurrent: 8", "maxConcurrent: 3", 1)); err != nil {
		t.Error(err)
	}
	if n := limit(); n != 3 {
		t.Errorf("after a good file the limit is %d", n)
	}
	bad := strings.NewReplacer("maxConcurrent: 8", "maxConcurrent: 0", "maxAttempts: 3", "maxAttempts: three").Replace(limits)
	if mistakes := policy.ConfigErrors(v.reload(t.Context(), bad)); len(mistakes) != 2 {
		t.Errorf("mistakes: %v", mistakes)
	}
	if n := limit(); n != 3 {
		t.Errorf("after a bad file the limit is %d", n)
	}
	if code, _, err := v.get(t.Context(), "/reports/r-1"); code != http.StatusOK || err != nil {
		t.Errorf("after a bad file: %d %v", code, err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A request that is in flight when the service is told to end gets its answer.
func TestService_TheEndWaitsForWhatIsInFlight(t *testing.T) {
	v, end := startService(t)
	type answer struct {
		code int
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		code, _, err := v.get(t.Context(), "/reports/slow")
		answered <- answer{code, err}
	}()
	// Only this request is there: once the bulkhead is in use it is in flight.
	for v.service.reg.Snapshot().Bulkheads[0].InUse == 0 {
		runtime.Gosched()
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if a := <-answered; a.code != http.StatusGatewayTimeout || a.err != nil {
		t.Errorf("%+v", a)
	}
	if c := v.service.reg.Snapshot().Pipelines[0].Calls; c.TimedOut != 1 || c.InFlight != 0 {
		t.Errorf("%+v", c)
	}
}

// A file with mistakes ends the start, with all of them in the error.
func TestService_DoesNotStartOnABadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resilience.yaml")
	if err := os.WriteFile(path, []byte("instances: {reports: {timeout: {value: 5}, bulkhed: {}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), io.Discard, []string{"-addr", "localhost:0", "-config", path})
	if mistakes := policy.ConfigErrors(err); len(mistakes) != 2 {
		t.Errorf("got %v", err)
	}
}
