package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/health"
)

//go:embed resilience.yaml
var limits string

// surroundings are what a service and its visitor stand in: those of a process, or
// those that a test makes.
type surroundings struct {
	listen func() (net.Listener, *http.Transport, error) // a place, and the way there
	hup    chan os.Signal
	raise  func() error // makes a signal come out of hup
}

// loopback are the surroundings of a process to which signals come in hup.
func loopback(hup chan os.Signal) surroundings {
	return surroundings{
		listen: func() (net.Listener, *http.Transport, error) {
			listener, err := net.Listen("tcp", "localhost:0")
			return listener, &http.Transport{}, err
		},
		hup: hup,
		raise: func() error {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			return self.Signal(syscall.SIGHUP)
		},
	}
}

// visitor drives a running service from the outside.
type visitor struct {
	out      io.Writer
	service  *service
	client   *http.Client
	raise    func() error
	reloaded chan error
}

// visit starts a backend and a service whose configuration is a copy in dir, and
// returns a visitor who may rewrite that. The function ends both.
func visit(ctx context.Context, out io.Writer, dir string, in surroundings) (v *visitor, end func() error, err error) {
	path := filepath.Join(dir, "resilience.yaml")
	if err := os.WriteFile(path, []byte(limits), 0o600); err != nil {
		return nil, nil, err
	}
	behind, toBackend, err := in.listen()
	if err != nil {
		return nil, nil, err
	}
	b := startBackend(behind)
	listener, toService, err := in.listen()
	if err != nil {
		b.close()
		return nil, nil, err
	}
	v = &visitor{out: out, client: &http.Client{Transport: toService}, raise: in.raise, reloaded: make(chan error, 1)}
	v.service, err = newService(options{
		listener: listener, transport: toBackend, config: path, backend: b.url,
		log: slog.New(slog.DiscardHandler), hup: in.hup, reloaded: func(err error) { v.reloaded <- err },
	})
	if err != nil {
		b.close()
		return nil, nil, errors.Join(err, listener.Close())
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- v.service.serve(serving) }()
	return v, func() error {
		defer b.close()
		v.client.CloseIdleConnections()
		stop() // as SIGTERM does
		return <-ended
	}, nil
}

// demo starts a service, visits it, and ends it. Its configuration is a copy, which
// the demo rewrites.
func demo(ctx context.Context, out io.Writer, in surroundings) (err error) {
	dir, err := os.MkdirTemp("", "service")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // not so long, unless something is wrong
	defer cancel()
	v, end, err := visit(ctx, out, dir, in)
	if err != nil {
		return err
	}
	err = v.look(ctx)
	err = errors.Join(err, end())
	v.say("5. After the end: %+v", v.service.reg.Snapshot().Pipelines[0].Calls)
	return err
}

func (v *visitor) say(format string, args ...any) { _, _ = fmt.Fprintf(v.out, format+"\n", args...) }

func (v *visitor) look(ctx context.Context) error {
	v.say("1. Reports")
	for _, id := range []string{"r-1", "flaky", "missing", "broken", "slow"} {
		code, body, err := v.get(ctx, "/reports/"+id)
		if err != nil {
			return err
		}
		v.say("   %-8s %d %s", id, code, body)
	}

	v.say("2. A new file: fewer at once, and less patience")
	text := strings.NewReplacer("maxConcurrent: 8", "maxConcurrent: 4", "value: 250ms", "value: 100ms").Replace(limits)
	if err := v.reload(ctx, text); err != nil {
		return err
	}
	for _, s := range v.service.reg.Explain("reports") {
		if strings.HasSuffix(s.Path, ".maxConcurrent") || strings.HasSuffix(s.Path, "timeout.value") {
			v.say("   %s = %s, from %s", s.Path, s.Value, filepath.Base(s.Origin))
		}
	}
	code, body, err := v.get(ctx, "/reports/slow")
	if err != nil {
		return err
	}
	v.say("   slow     %d %s", code, body)

	v.say("3. A file with mistakes changes nothing, and all of them are reported")
	text = strings.NewReplacer("maxConcurrent", "maxConcurent", "value: 250ms", "value: 250", "failureRatio: 0.5", "failureRatio: 5").Replace(limits)
	for _, mistake := range policy.ConfigErrors(v.reload(ctx, text)) {
		v.say("   %s", strings.ReplaceAll(mistake.Error(), filepath.Dir(v.service.config)+string(filepath.Separator), ""))
	}

	v.say("4. Health")
	code, body, err = v.get(ctx, "/healthz?id=reports")
	if err != nil {
		return err
	}
	var report health.Report
	if err := json.Unmarshal([]byte(body), &report); err != nil {
		return err
	}
	v.say("   %d %s; limit %d, in use %d; breaker %s",
		code, report.Status, report.Bulkheads[0].Limit, report.Bulkheads[0].InUse, report.CircuitBreakers[0].State)
	return nil
}

// reload replaces the file in one step, raises the signal, and returns what became
// of it.
func (v *visitor) reload(ctx context.Context, text string) error {
	path := v.service.config
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	if err := v.raise(); err != nil {
		return err
	}
	select {
	case err := <-v.reloaded:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *visitor) get(ctx context.Context, path string) (code int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.service.url()+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := v.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(text)), err
}
