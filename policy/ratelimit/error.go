package ratelimit

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"resilience4cata.dev/go/policy"
)

// ErrLimited matches every refusal of a rate limiter:
// errors.Is(err, ratelimit.ErrLimited).
var ErrLimited = errors.New("ratelimit: limited")

// Error is a refusal: no permit was in store, and the call could not wait for
// one, or not as long as it would have taken. The protected function was never
// entered, and no permit was spent. It matches [ErrLimited].
type Error struct {
	Instance string        // id of the limiter
	Wait     time.Duration // when a permit would have been there for this call; above 0
}

var (
	_ policy.Error        = (*Error)(nil)
	_ policy.RetryAfterer = (*Error)(nil)
)

// Error formats the refusal:
//
//	ratelimit "backend": limited (retry after 20ms)
func (e *Error) Error() string {
	return "ratelimit " + strconv.Quote(e.Instance) + ": limited (retry after " + e.Wait.String() + ")"
}

// Policy is "ratelimit".
func (e *Error) Policy() string { return kind }

// ID is the id of the limiter.
func (e *Error) ID() string { return e.Instance }

// Started is false: a call that is refused never had any effect.
func (e *Error) Started() bool { return false }

// RetryAfter is Wait: the time, from when the error was made, after which a
// permit would be there for the call, behind those who wait already, if nobody
// else came.
func (e *Error) RetryAfter() time.Duration { return e.Wait }

// Is reports whether target is [ErrLimited].
func (e *Error) Is(target error) bool { return target == ErrLimited }

// LogValue makes the error a group of its fields in package log/slog.
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("policy", kind),
		slog.String("id", e.Instance),
		slog.Duration("wait", e.Wait),
	)
}

// Limited is published, with the call's context, when a call is refused. A
// refusal by [Policy.TryAcquire] has no context and is counted only.
type Limited struct{ policy.Meta }

var _ policy.Event = Limited{}

// LogValue makes the event a group of its fields in package log/slog.
func (e Limited) LogValue() slog.Value {
	return slog.GroupValue(slog.String("policy", e.Policy()), slog.String("id", e.ID()))
}
