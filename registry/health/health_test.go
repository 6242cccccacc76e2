package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
	"resilience4cata.dev/go/registry/health"
)

// newRegistry makes a registry from the text of a configuration, and pipelines
// for ids with all layers.
func newRegistry(t *testing.T, text string, ids ...string) (*registry.Registry, map[string]*pipeline.Pipeline[int]) {
	t.Helper()
	c, err := config.Parse("resilience.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.New(registry.WithConfig(c))
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]*pipeline.Pipeline[int]{}
	for _, id := range ids {
		built[id], err = pipeline.New[int](r, id).Retry(retry.MaxAttempts(1)).CircuitBreaker().
			RateLimit(ratelimit.PerSecond(1000)).Timeout(time.Hour).Bulkhead(bulkhead.MaxConcurrent(2)).Build()
		if err != nil {
			t.Fatal(err)
		}
	}
	return r, built
}

// server serves the handler on loopback, and returns how to ask it.
func server(t *testing.T, r *registry.Registry) func(method, query string) (*http.Response, string) {
	t.Helper()
	s := httptest.NewServer(health.Handler(r))
	client := s.Client()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return func(method, query string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/healthz"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
}

// body is what the tests look at in a report.
type body struct {
	Status    health.Status
	Reasons   []health.Reason
	At        time.Time
	Pipelines []registry.PipelineSnapshot
}

// read returns the report in a text.
func read(t *testing.T, text string) (b body) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return b
}

func TestHandler_S4_Status(t *testing.T) {
	r, pipelines := newRegistry(t, `instances: {b: {critical: true}, a: {}}`, "a", "b")
	ask := server(t, r)
	expect := func(code int, status health.Status, reasons ...health.Reason) {
		t.Helper()
		res, body := ask(http.MethodGet, "")
		got := read(t, body)
		if res.StatusCode != code || got.Status != status {
			t.Errorf("%d %s, want %d %s", res.StatusCode, got.Status, code, status)
		}
		if diff := cmp.Diff(append([]health.Reason{}, reasons...), got.Reasons); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	expect(200, health.Pass)

	breaker, _ := r.CircuitBreaker("a")
	breaker.ForceOpen()
	open := health.Reason{Policy: "circuitbreaker", ID: "a", Status: health.Warn, Text: "open: by hand, until Reset or ForceClosed"}
	expect(200, health.Warn, open)

	slots, _ := r.Bulkhead("a")
	slots.TryAcquire()
	expect(200, health.Warn, open)
	slots.TryAcquire()
	full := health.Reason{Policy: "bulkhead", ID: "a", Status: health.Warn, Text: "full: 2 of 2 in use, 0 waiting"}
	expect(200, health.Warn, full, open)

	critical, _ := r.CircuitBreaker("b")
	critical.ForceOpen()
	failing := health.Reason{Policy: "circuitbreaker", ID: "b", Status: health.Fail, Text: "open: by hand, until Reset or ForceClosed"}
	expect(503, health.Fail, full, open, failing)
	if res, _ := ask(http.MethodGet, "?id=a"); res.StatusCode != 200 {
		t.Errorf("?id=a is %d: the status is of what is asked for", res.StatusCode)
	}

	critical.Reset()
	breaker.Reset()
	slots.Release()
	slots.Release()
	release := make(chan struct{})
	f := pipelines["a"].ExecuteAsync(t.Context(), func(context.Context) (int, error) { <-release; return 0, nil })
	f.Cancel()
	expect(200, health.Warn, health.Reason{Policy: "pipeline", ID: "a", Status: health.Warn, Text: "abandoned work is running: 1"})
	close(release)
	<-f.Work().Done()
	expect(200, health.Pass)
}

// A breaker that its samples have opened says when it will try again.
func TestHandler_S4_AnOpenBreakerSaysWhenTheNextProbeIs(t *testing.T) {
	clk := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	r, err := registry.New(registry.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.New[int](r, "a").CircuitBreaker(circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(1), circuitbreaker.OpenFor(2*time.Second)).Build()
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Run(t.Context(), func(context.Context) error { return errors.New("down") })
	clk.Advance(2*time.Second - time.Microsecond)
	ask := server(t, r)
	_, body := ask(http.MethodGet, "")
	want := []health.Reason{{Policy: "circuitbreaker", ID: "a", Status: health.Warn, Text: "open: next probe in 1 ms"}}
	if diff := cmp.Diff(want, read(t, body).Reasons); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	clk.Advance(time.Microsecond)
	if _, body = ask(http.MethodGet, ""); read(t, body).Status != health.Pass {
		t.Errorf("half-open: %s", body)
	}
}

func TestHandler_S3_TheBodyIsTheSnapshot(t *testing.T) {
	r, _ := newRegistry(t, ``, "a")
	_, body := server(t, r)(http.MethodGet, "")
	snapshot := r.Snapshot()
	snapshot.At = read(t, body).At
	want, err := json.Marshal(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if got := `{"status":"pass","reasons":[],` + string(want[1:]) + "\n"; got != body {
		t.Errorf("(-want +got)\n%s", cmp.Diff(got, body))
	}
}

func TestHandler_S4_NoAnswerIsStored(t *testing.T) {
	r, _ := newRegistry(t, ``, "a")
	ask := server(t, r)
	for _, q := range []struct{ method, query string }{{"GET", ""}, {"HEAD", ""}, {"GET", "?id=x"}, {"GET", "?policy=x"}, {"POST", ""}} {
		res, _ := ask(q.method, q.query)
		if got := res.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%v: Cache-Control %q", q, got)
		}
		if got := res.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%v: Content-Type %q", q, got)
		}
	}
}

func TestHandler_S4_Methods(t *testing.T) {
	r, _ := newRegistry(t, ``, "a")
	ask := server(t, r)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		res, _ := ask(method, "")
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
	get, body := ask("GET", "")
	head, none := ask("HEAD", "")
	if head.StatusCode != 200 || none != "" || head.ContentLength == 0 || get.ContentLength != int64(len(body)) {
		t.Errorf("HEAD: %d, %q, length %d", head.StatusCode, none, head.ContentLength)
	}
}

func TestHandler_S4_UnknownID(t *testing.T) {
	r, _ := newRegistry(t, ``, "reports", "orders")
	ask := server(t, r)
	res, body := ask("GET", "?id=reprots")
	if want := `{"error":"unknown id \"reprots\"","nearest":"reports"}` + "\n"; res.StatusCode != 404 || body != want {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	res, body = ask("GET", "?id=")
	if want := `{"error":"unknown id \"\""}` + "\n"; res.StatusCode != 404 || body != want {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	res, body = ask("GET", "?policy=bulkheads")
	if res.StatusCode != 400 || !strings.Contains(body, "known are pipeline, timeout, retry, rateLimiter, bulkhead, circuitBreaker") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestHandler_S4_Filters(t *testing.T) {
	r, _ := newRegistry(t, `instances: {unused: {timeout: {value: 1s}}}`, "a", "b")
	if _, err := pipeline.New[int](r, "c").CircuitBreaker(circuitbreaker.Name("shared")).Build(); err != nil {
		t.Fatal(err)
	}
	ask := server(t, r)
	// rows counts the rows of each list of the body.
	rows := func(query string) map[string]int {
		t.Helper()
		res, body := ask("GET", query)
		if res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", query, res.StatusCode, body)
		}
		var lists map[string]any
		if err := json.Unmarshal([]byte(body), &lists); err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for key, list := range lists {
			if list, ok := list.([]any); ok && len(list) > 0 {
				n[key] = len(list)
			} else if list == nil && key != "reasons" && strings.HasSuffix(key, "s") && strings.Contains(body, `"`+key+`":null`) {
				t.Errorf("%s: %s is null", query, key)
			}
		}
		return n
	}
	for query, want := range map[string]map[string]int{
		"":                           {"pipelines": 3, "timeouts": 2, "retries": 2, "rateLimiters": 2, "bulkheads": 2, "circuitBreakers": 3, "findings": 1},
		"?id=a":                      {"pipelines": 1, "timeouts": 1, "retries": 1, "rateLimiters": 1, "bulkheads": 1, "circuitBreakers": 1},
		"?id=shared":                 {"circuitBreakers": 1},
		"?policy=bulkhead":           {"bulkheads": 2, "findings": 1},
		"?policy=timeout&id=b":       {"timeouts": 1},
		"?policy=retry&id=b":         {"retries": 1},
		"?policy=ratelimit&id=b":     {"rateLimiters": 1},
		"?policy=rateLimiter&id=b":   {"rateLimiters": 1},
		"?policy=RATELIMIT&id=b":     {"rateLimiters": 1},
		"?policy=circuitBreaker":     {"circuitBreakers": 3, "findings": 1},
		"?policy=circuitbreaker":     {"circuitBreakers": 3, "findings": 1},
		"?policy=Pipeline":           {"pipelines": 3, "findings": 1},
		"?policy=pipeline":           {"pipelines": 3, "findings": 1},
		"?policy=bulkhead&id=shared": {},
	} {
		if diff := cmp.Diff(want, rows(query)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", query, diff)
		}
	}
}

func TestHandler_S1_TenThousandInstances(t *testing.T) {
	r, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		if _, err := pipeline.New[int](r, "instance-"+strconv.Itoa(i)).Bulkhead(bulkhead.MaxConcurrent(3)).Build(); err != nil {
			t.Fatal(err)
		}
	}
	ask := server(t, r)
	res, body := ask("GET", "")
	if got := read(t, body); res.StatusCode != 200 || len(got.Pipelines) != 10_000 {
		t.Errorf("%d, %d pipelines", res.StatusCode, len(got.Pipelines))
	}
	if _, body = ask("GET", "?id=instance-4711"); len(read(t, body).Pipelines) != 1 || len(body) > 2000 {
		t.Errorf("%d bytes for one", len(body))
	}
}

func TestHandler_ANilRegistryPanicsAndNamesIt(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "reg is nil") {
			t.Errorf("panicked with %q", text)
		}
	}()
	health.Handler(nil)
}
