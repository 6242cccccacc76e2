package docs_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// answer tells the client of a service what became of the call that it needed.
func answer(w http.ResponseWriter, err error) {
	var wait policy.RetryAfterer
	if errors.As(err, &wait) && wait.RetryAfter() > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.RetryAfter().Seconds()))))
	}
	switch {
	case errors.Is(err, context.Canceled):
		w.WriteHeader(499) // the client has gone: for the log
	case policy.NotStarted(err):
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case errors.Is(err, timeout.ErrExceeded), errors.Is(err, retry.ErrOutOfTime):
		http.Error(w, "the backend takes too long", http.StatusGatewayTimeout)
	default:
		http.Error(w, "the backend fails", http.StatusBadGateway)
	}
}
