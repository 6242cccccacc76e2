package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/retry"
)

// transport sends the requests of a client through a pipeline.
type transport struct {
	next  http.RoundTripper
	calls *pipeline.Pipeline[*http.Response]
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
	}
	resp, err := t.calls.Execute(req.Context(), func(ctx context.Context) (*http.Response, error) {
		resp, err := t.attempt(ctx, req)
		if err != nil && !repeatable(req) {
			err = retry.Permanent(err)
		}
		return resp, err
	})
	var answered *statusError
	if errors.As(err, &answered) { // the last answer is one, if not a good one
		return answered.resp, nil
	}
	return resp, err
}

// attempt sends the request once, and reads the whole answer: ctx, and with it the
// connection, ends with the attempt.
func (t *transport) attempt(ctx context.Context, req *http.Request) (*http.Response, error) {
	again := req.Clone(ctx)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	resp, err := t.next.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return nil, &statusError{resp}
	}
	return resp, nil
}

// repeatable reports whether the request may be sent twice: see RFC 9110, 9.2.2.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
	default:
		if req.Header.Get("Idempotency-Key") == "" {
			return false
		}
	}
	return req.Body == nil || req.GetBody != nil
}

// statusError is an answer that counts as a failure.
type statusError struct{ resp *http.Response }

func (e *statusError) Error() string { return fmt.Sprintf("%s: %s", e.resp.Request.URL, e.resp.Status) }

// RetryAfter is what the server asks for: the retry waits so long at least.
func (e *statusError) RetryAfter() time.Duration {
	seconds, err := strconv.Atoi(e.resp.Header.Get("Retry-After"))
	if err != nil {
		return 0 // not given, or a date
	}
	return time.Duration(seconds) * time.Second
}
