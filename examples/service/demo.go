package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// visitor drives a running service over loopback, from the outside.
type visitor struct {
	out      io.Writer
	service  *service
	client   *http.Client
	reloaded chan error
}

// demo starts a service, visits it, and ends it. Its configuration is a copy, which
// the demo rewrites.
func demo(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "service")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "resilience.yaml")
	if err := os.WriteFile(path, []byte(limits), 0o600); err != nil {
		return err
	}
	b, err := startBackend()
	if err != nil {
		return err
	}
	defer b.close()

	v := &visitor{out: out, client: &http.Client{Transport: &http.Transport{}}, reloaded: make(chan error, 1)}
	defer v.client.CloseIdleConnections()
	v.service, err = newService(options{
		addr: "localhost:0", config: path, backend: b.url,
		log: slog.New(slog.DiscardHandler), reloaded: func(err error) { v.reloaded <- err },
	})
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- v.service.serve(serving) }()

	err = v.visit(ctx)
	end() // as SIGTERM does
	err = errors.Join(err, <-ended)
	v.say("5. After the end: %+v", v.service.reg.Snapshot().Pipelines[0].Calls)
	return err
}

func (v *visitor) say(format string, args ...any) { _, _ = fmt.Fprintf(v.out, format+"\n", args...) }

func (v *visitor) visit(ctx context.Context) error {
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

// reload replaces the file in one step, sends this process the signal, and returns
// what became of it.
func (v *visitor) reload(ctx context.Context, text string) error {
	path := v.service.config
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
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
