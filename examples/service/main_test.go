package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"resilience4cata.dev/go/examples/internal/pipenet"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry"
)

// pipes are surroundings without sockets and signals, for a bubble: there the
// machine may be as slow as it likes.
func pipes() surroundings {
	hup := make(chan os.Signal, 1)
	return surroundings{
		listen: func() (net.Listener, *http.Transport, error) {
			l := pipenet.Listen()
			return l, l.Transport(), nil
		},
		hup:   hup,
		raise: func() error { hup <- syscall.SIGHUP; return nil },
	}
}

// visited is visit for tests.
func visited(t *testing.T, dir string, in surroundings) (v *visitor, end func()) {
	t.Helper()
	v, stop, err := visit(t.Context(), io.Discard, dir, in)
	if err != nil {
		t.Fatal(err)
	}
	return v, func() {
		t.Helper()
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestDemo_DrivesItselfAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := demo(t.Context(), &out, pipes()); err != nil {
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
	})
}

func TestService_AnswersSayWhoseFaultItIs(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		v, end := visited(t, dir, pipes())
		for id, want := range map[string]int{"r-1": 200, "flaky": 200, "missing": 404, "broken": 502, "slow": 504} {
			if code, body, err := v.get(t.Context(), "/reports/"+id); code != want || err != nil {
				t.Errorf("%s: %d %q %v", id, code, body, err)
			}
		}
		end()
		calls := v.service.reg.Snapshot().Pipelines[0].Calls
		if want := (registry.CallCounts{Started: 5, Succeeded: 2, Failed: 2, TimedOut: 1}); calls != want {
			t.Errorf("%+v", calls)
		}
	})
}

func TestService_AFileWithMistakesChangesNothing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		v, end := visited(t, dir, pipes())
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
		end()
	})
}

// The one test in real surroundings. Nothing in it has a deadline.
func TestService_ASignalReloads(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot send itself SIGHUP here")
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	v, end := visited(t, t.TempDir(), loopback(hup))
	if err := v.reload(t.Context(), strings.Replace(limits, "maxConcurrent: 8", "maxConcurrent: 3", 1)); err != nil {
		t.Error(err)
	}
	if code, body, err := v.get(t.Context(), "/healthz"); code != http.StatusOK || err != nil || !strings.Contains(body, `"limit":3`) {
		t.Errorf("%d %s %v", code, body, err)
	}
	end()
}

// A request that is in flight when the service is told to end gets its answer.
func TestService_TheEndWaitsForWhatIsInFlight(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		v, end := visited(t, dir, pipes())
		type answer struct {
			code int
			err  error
		}
		answered := make(chan answer, 1)
		go func() {
			code, _, err := v.get(t.Context(), "/reports/slow")
			answered <- answer{code, err}
		}()
		synctest.Wait()
		if n := v.service.reg.Snapshot().Bulkheads[0].InUse; n != 1 {
			t.Errorf("%d in flight", n)
		}
		end()
		if a := <-answered; a.code != http.StatusGatewayTimeout || a.err != nil {
			t.Errorf("%+v", a)
		}
		if c := v.service.reg.Snapshot().Pipelines[0].Calls; c.TimedOut != 1 || c.InFlight != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A file with mistakes ends the start, with all of them in the error.
func TestService_DoesNotStartOnABadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resilience.yaml")
	if err := os.WriteFile(path, []byte("instances: {reports: {timeout: {value: 5}, bulkhed: {}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(context.Background(), io.Discard, []string{"-addr", "localhost:0", "-config", path})
	if mistakes := policy.ConfigErrors(err); len(mistakes) != 2 {
		t.Errorf("got %v", err)
	}
}
