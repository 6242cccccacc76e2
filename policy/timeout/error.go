package timeout

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"resilience4cata.dev/go/policy"
)

// ErrExceeded is matched by every [Error].
var ErrExceeded = errors.New("timeout: exceeded")

// Error says that an attempt passed its limit. It matches [ErrExceeded] and
// [context.DeadlineExceeded], and [context.Canceled] only if the function's own
// error does. It is immutable.
type Error struct {
	Instance string        // the pipeline's id
	Limit    time.Duration // the limit that was passed
	Cause    error         // what the function returned after the deadline; nil: a value, or nothing yet

	waiting bool // it passed in the bulkhead's queue: the function was never entered
}

var _ policy.Error = (*Error)(nil)

// Error formats: timeout "reports": exceeded 2s: cause. A cause that ends with
// the same words, as one does that wraps [context.Cause], is not made to say them
// again.
func (e *Error) Error() string {
	text := "timeout " + strconv.Quote(e.Instance) + ": exceeded " + e.Limit.String()
	if e.Cause == nil {
		return text
	}
	cause := e.Cause.Error()
	if cause == text {
		return text
	}
	return text + ": " + strings.TrimSuffix(cause, ": "+text)
}

// Policy is "timeout".
func (e *Error) Policy() string { return kind }

// ID is the pipeline's id.
func (e *Error) ID() string { return e.Instance }

// Started reports whether the function was entered. It is false only when the
// limit passed in the queue of a bulkhead. True proves nothing about the work:
// it may have had its effect, and it may be running still.
func (e *Error) Started() bool { return !e.waiting }

// Timeout is true: with Temporary it makes the error a net.Error, which many
// error mappers know.
func (e *Error) Timeout() bool { return true }

// Temporary is true.
func (e *Error) Temporary() bool { return true }

// Is matches [ErrExceeded] and [context.DeadlineExceeded].
func (e *Error) Is(target error) bool {
	return target == ErrExceeded || target == context.DeadlineExceeded
}

// Unwrap returns the function's own error, if it returned one.
func (e *Error) Unwrap() error { return e.Cause }

// LogValue groups the fields.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("policy", kind), slog.String("id", e.Instance),
		slog.Duration("limit", e.Limit), slog.Bool("started", e.Started()),
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.String("cause", e.Cause.Error()))
	}
	return slog.GroupValue(attrs...)
}

// Exceeded is published when the caller gets its timeout error: for a sync call
// after the function has returned (WorkDone is true), for an async one at the
// deadline (WorkDone is false).
type Exceeded struct {
	policy.Meta
	Limit    time.Duration
	WorkDone bool
}

var _ policy.Event = Exceeded{}

// LogValue groups the fields.
func (e Exceeded) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("policy", e.Policy()), slog.String("id", e.ID()),
		slog.Duration("limit", e.Limit), slog.Bool("workDone", e.WorkDone),
	)
}
