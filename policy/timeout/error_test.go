package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"resilience4cata.dev/go/policy/timeout"
)

// T-13: the text names instance and limit once, although clients such as
// net/http return the context's cause, which is this timeout (T-11).
func TestErrorText_T13_ACauseThatIsTheTimeoutIsNotSaidTwice(t *testing.T) {
	own := &timeout.Error{Instance: "reports", Limit: 2 * time.Second}
	const text = `timeout "reports": exceeded 2s`
	for _, tc := range []struct {
		cause error
		want  string
	}{
		{nil, text},
		{own, text},
		{&url.Error{Op: "Get", URL: "http://backend/r-1", Err: own}, text + `: Get "http://backend/r-1"`},
		{fmt.Errorf("load: %w", &url.Error{Op: "Get", URL: "/", Err: own}), text + `: load: Get "/"`},
		{&timeout.Error{Instance: "query", Limit: 2 * time.Second}, text + `: timeout "query": exceeded 2s`},
		{&timeout.Error{Instance: "reports", Limit: time.Second}, text + `: timeout "reports": exceeded 1s`},
		{fmt.Errorf("%w, twice", own), text + ": " + text + ", twice"},
		{context.DeadlineExceeded, text + ": context deadline exceeded"},
	} {
		e := &timeout.Error{Instance: own.Instance, Limit: own.Limit, Cause: tc.cause}
		if got := e.Error(); got != tc.want {
			t.Errorf("%v\ngot  %s\nwant %s", tc.cause, got, tc.want)
		}
		if !errors.Is(e, timeout.ErrExceeded) || tc.cause != nil && !errors.Is(e, tc.cause) { // T-8: the text loses words, the tree nothing
			t.Errorf("%v: not found by errors.Is", tc.cause)
		}
	}
}

func TestErrorText_T13_OfADoWhoseFunctionReturnsTheContextsCause(t *testing.T) {
	p, m := newTimeout(t, 2*time.Second)
	err := p.Do(t.Context(), func(ctx context.Context) error {
		_ = m.Sleep(ctx, 5*time.Second)
		return &url.Error{Op: http.MethodGet, URL: "/", Err: context.Cause(ctx)}
	})
	var client *url.Error
	if want := `timeout "reports": exceeded 2s: GET "/"`; err == nil || err.Error() != want || !errors.As(err, &client) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
