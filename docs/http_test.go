package docs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// backend is a server without a network.
type backend func(n int, req *http.Request) (code int, header http.Header)

type served struct {
	backend
	n int
}

func (s *served) RoundTrip(req *http.Request) (*http.Response, error) {
	s.n++
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	code, header := s.backend(s.n, req)
	body := io.NopCloser(strings.NewReader(fmt.Sprintf("answer %d", s.n)))
	return &http.Response{StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Header: header, Body: body, Request: req}, nil
}

func Example_httpClient() {
	reg, clk := manual()
	calls := pipeline.Must(pipeline.New[*http.Response](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2), retry.MaxDelay(5*time.Second)).
		CircuitBreaker(circuitbreaker.FailureRatio(0.5)).
		Timeout(2 * time.Second).
		Bulkhead(bulkhead.MaxConcurrent(10)).
		Build())
	client := &http.Client{Transport: &transport{busyOnce, calls}} // busyOnce: 503 with "Retry-After: 3", then 200

	resp, err := client.Get("http://reports.example/r-1") //nolint:noctx // brief
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is lost
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %q %v after %s\n", resp.Status, body, err, clk.Now().Sub(noon))
	// Output: 200 OK "answer 2" <nil> after 3s
}

var busyOnce = &served{backend: func(n int, _ *http.Request) (int, http.Header) {
	if n == 1 {
		return http.StatusServiceUnavailable, http.Header{"Retry-After": {"3"}}
	}
	return http.StatusOK, nil
}}

// What docs/http.md says of the transport.
func TestTransport(t *testing.T) {
	for name, tc := range map[string]struct {
		method, key string
		body        io.Reader
		backend     backend
		want        string
	}{
		"a bad request is an answer":     {http.MethodGet, "", nil, always(400), "400 after 1"},
		"the last answer of three":       {http.MethodGet, "", nil, always(503), "503 after 3"},
		"a post is not repeated":         {http.MethodPost, "", strings.NewReader("x"), always(503), "503 after 1"},
		"but with a key":                 {http.MethodPost, "k", strings.NewReader("x"), always(503), "503 after 3"},
		"a body that can be read once":   {http.MethodPut, "", io.MultiReader(strings.NewReader("x")), always(503), "503 after 1"},
		"a body that can be read anew":   {http.MethodPut, "", strings.NewReader("x"), always(503), "503 after 3"},
		"too many requests is a failure": {http.MethodGet, "", nil, always(429), "429 after 3"},
	} {
		reg, _ := manual()
		s := &served{backend: tc.backend}
		client := &http.Client{Transport: &transport{s, pipeline.Must(pipeline.New[*http.Response](reg, "x").Retry(retry.MaxAttempts(3)).Build())}}
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://reports.example", tc.body)
		if err != nil {
			t.Fatal(err)
		}
		if tc.key != "" {
			req.Header.Set("Idempotency-Key", tc.key)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || string(body) != fmt.Sprintf("answer %d", s.n) {
			t.Errorf("%s: body %q, %v", name, body, err)
		}
		if got := fmt.Sprintf("%d after %d", resp.StatusCode, s.n); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func always(code int) backend {
	return func(int, *http.Request) (int, http.Header) { return code, nil }
}

func TestTransport_ATimeoutIsAnError(t *testing.T) {
	reg, clk := manual()
	s := &served{backend: func(_ int, req *http.Request) (int, http.Header) {
		_ = clk.Sleep(req.Context(), time.Minute)
		return 200, nil
	}}
	client := &http.Client{Transport: &transport{s, pipeline.Must(pipeline.New[*http.Response](reg, "x").Timeout(time.Second).Build())}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://reports.example", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Do(req); !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("%v, %v", resp, err)
		_ = resp.Body.Close()
	}
}

// The table of docs/http.md.
func TestAnswer(t *testing.T) {
	text := page(t, "http.md")
	for _, tc := range []struct {
		what string
		err  error
		want string
	}{
		{"`ratelimit.ErrLimited`", &ratelimit.Error{Instance: "x", Wait: 1500 * time.Millisecond}, "503, `Retry-After: 2`"},
		{"`circuitbreaker.ErrOpen`", &circuitbreaker.Error{Instance: "x", Wait: time.Second}, "503, `Retry-After: 1`"},
		{"`bulkhead.ErrFull`", &bulkhead.Error{Instance: "x"}, "503"},
		{"`timeout.ErrExceeded`", fmt.Errorf("get: %w", timedOut(t)), "504"},
		{"the client's own cancellation", context.Canceled, "499"},
		{"an error of the backend", errors.New("reset"), "502"},
	} {
		w := httptest.NewRecorder()
		answer(w, tc.err)
		got := strconv.Itoa(w.Code)
		if after := w.Header().Get("Retry-After"); after != "" {
			got += ", `Retry-After: " + after + "`"
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
		if row := "| " + tc.what + " | " + tc.want + " |\n"; !strings.Contains(text, row) {
			t.Errorf("http.md has no row\n%s", row)
		}
	}
}

func timedOut(t *testing.T) error {
	t.Helper()
	reg, clk := manual()
	_, err := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Build()).
		Execute(t.Context(), func(ctx context.Context) (int, error) { return 0, clk.Sleep(ctx, time.Minute) })
	return err
}
