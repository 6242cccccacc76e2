package circuitbreaker

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"resilience4cata.dev/go/policy"
)

const kind = "circuitbreaker"

// ErrOpen is what errors.Is finds in every refusal of a breaker: it is open, or
// half-open with all its probes under way.
var ErrOpen = errors.New("circuitbreaker: open")

// Error is a breaker's refusal. The function was not entered.
type Error struct {
	// Instance is the breaker's id.
	Instance string

	// Wait is the time after which the next probe is allowed, counted from the
	// refusal: the rest of the open time, or of the time that probes which are
	// under way may take. 0: nobody can tell, the breaker was opened by hand.
	Wait time.Duration
}

var (
	_ policy.Error        = (*Error)(nil)
	_ policy.RetryAfterer = (*Error)(nil)
	_ slog.LogValuer      = (*Error)(nil)
)

// Error is a text such as
//
//	circuitbreaker "reports": open, next probe in 4.2s
func (e *Error) Error() string {
	text := kind + " " + strconv.Quote(e.Instance) + ": open"
	if e.Wait > 0 {
		text += ", next probe in " + e.Wait.String()
	}
	return text
}

// Policy is "circuitbreaker".
func (e *Error) Policy() string { return kind }

// ID is the breaker's id.
func (e *Error) ID() string { return e.Instance }

// Started is false: a refused call certainly had no effect.
func (e *Error) Started() bool { return false }

// RetryAfter is Wait.
func (e *Error) RetryAfter() time.Duration { return e.Wait }

// Is reports whether target is [ErrOpen].
func (e *Error) Is(target error) bool { return target == ErrOpen }

// LogValue groups the fields for package log/slog.
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("policy", kind),
		slog.String("id", e.Instance),
		slog.Duration("retryAfter", e.Wait),
	)
}
