package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// errNoReport is the backend's answer for a report that does not exist.
var errNoReport = errors.New("no such report")

// report answers GET /reports/{id}. The request's own context goes in, so that a
// client that leaves ends its call, its wait and its retries.
func (s *service) report(w http.ResponseWriter, r *http.Request) {
	text, err := s.reports.Execute(r.Context(), func(ctx context.Context) (string, error) {
		return s.fetch(ctx, r.PathValue("id"))
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	_, _ = io.WriteString(w, text)
}

// fetch asks the backend once. It uses the context that the pipeline gave it, and
// so ends at the attempt's deadline.
func (s *service) fetch(ctx context.Context, id string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.backend+"/"+id, http.NoBody)
	if err != nil {
		return "", retry.Permanent(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusNotFound:
		return "", errNoReport
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("backend: %s", resp.Status)
	}
	return string(body), nil
}

// refuse turns an error into an answer: whose fault it is, and when it is worth
// another try.
func (s *service) refuse(w http.ResponseWriter, err error) {
	var later policy.RetryAfterer
	if errors.As(err, &later) && later.RetryAfter() > 0 {
		seconds := int(math.Ceil(later.RetryAfter().Seconds()))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	http.Error(w, err.Error(), status(err))
}

// status is the code of HTTP for an error of the pipeline. A retry's error also
// matches the last one of its attempts, so refusals come first.
func status(err error) int {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errNoReport):
		return http.StatusNotFound
	case errors.Is(err, context.Canceled):
		return 499 // the client has left; nobody reads this
	case errors.Is(err, ratelimit.ErrLimited):
		return http.StatusTooManyRequests
	case errors.Is(err, bulkhead.ErrFull), errors.Is(err, circuitbreaker.ErrOpen), errors.Is(err, registry.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return http.StatusGatewayTimeout
	default:
		return http.StatusBadGateway
	}
}
