package retry

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"resilience4cata.dev/go/policy"
)

// Why a call was given up. They are the Reason of an [Error], or in it.
var (
	// ErrExhausted: the last attempt that MaxAttempts allows has failed.
	ErrExhausted = errors.New("retry: attempts exhausted")

	// ErrOutOfTime: MaxDuration is over, or the next delay does not fit in what
	// is left of it or of the caller's deadline, less the reserve. It matches
	// [context.DeadlineExceeded].
	ErrOutOfTime error = outOfTime{}

	// ErrBudget: the instance's budget for retries is empty.
	ErrBudget = errors.New("retry: budget empty")
)

type outOfTime struct{}

func (outOfTime) Error() string        { return "retry: out of time" }
func (outOfTime) Timeout() bool        { return true }
func (outOfTime) Temporary() bool      { return true }
func (outOfTime) Is(target error) bool { return target == context.DeadlineExceeded }

// Error is what a call gets that was retried in vain, or would have been.
// [errors.Is] and [errors.As] find both Reason and Last.
type Error struct {
	Instance string // the id of the retry
	Attempts int    // how many came to an end, those included that a policy refused

	// Elapsed is the time since the first attempt started if there is a
	// MaxDuration, else since it ended; 0 for a call without a second attempt. The
	// text has it only if it is the whole call's.
	Elapsed time.Duration

	// Reason is [ErrExhausted], [ErrOutOfTime], [ErrBudget], the registry's
	// ErrClosed, the error of the caller's context, or the refusal that ended
	// the call; it matches two of them where both are true.
	Reason error

	// Last is the function's last error, without the mark of [Permanent]; nil
	// if it returned none.
	Last error

	notStarted bool // no attempt entered the function
	sinceEnd   bool // Elapsed leaves the first attempt out
}

var _ policy.Error = (*Error)(nil)

// Error says which instance gave up, why, after how much, and the last error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("retry ")
	b.WriteString(strconv.Quote(e.Instance))
	b.WriteString(": ")
	if e.Reason != nil {
		b.WriteString(strings.TrimPrefix(e.Reason.Error(), "retry: "))
	} else {
		b.WriteString("gave up")
	}
	b.WriteString(" after ")
	b.WriteString(strconv.Itoa(e.Attempts))
	if e.Attempts == 1 {
		b.WriteString(" attempt")
	} else {
		b.WriteString(" attempts")
	}
	if e.Elapsed > 0 && !e.sinceEnd {
		b.WriteString(" in ")
		b.WriteString(e.Elapsed.String())
	}
	if e.Last != nil {
		b.WriteString(": ")
		b.WriteString(e.Last.Error())
	}
	return b.String()
}

// Policy is "retry".
func (e *Error) Policy() string { return policyName }

// ID is the id of the instance.
func (e *Error) ID() string { return e.Instance }

// Started reports whether any attempt entered the function.
func (e *Error) Started() bool { return !e.notStarted }

// Unwrap returns Reason and Last, those that are there.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, 2)
	if e.Reason != nil {
		errs = append(errs, e.Reason)
	}
	if e.Last != nil {
		errs = append(errs, e.Last)
	}
	return errs
}

// LogValue makes an Error a group of its fields in structured logs.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("policy", policyName), slog.String("id", e.Instance),
		slog.Int("attempts", e.Attempts), slog.Duration("elapsed", e.Elapsed), slog.Bool("started", e.Started()),
	}
	if e.Reason != nil {
		attrs = append(attrs, slog.String("reason", e.Reason.Error()))
	}
	if e.Last != nil {
		attrs = append(attrs, slog.String("last", e.Last.Error()))
	}
	return slog.GroupValue(attrs...)
}

// both is a reason and what lies behind it.
type both struct{ reason, behind error }

func (b *both) Error() string   { return b.reason.Error() + " (" + b.behind.Error() + ")" }
func (b *both) Unwrap() []error { return []error{b.reason, b.behind} }

// errNotRetried is what Next says of an error that the rules do not retry. No user
// gets it.
var errNotRetried = errors.New("retry: not retryable")
