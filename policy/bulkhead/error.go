package bulkhead

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"resilience4cata.dev/go/policy"
)

// ErrFull matches every refusal of a bulkhead: errors.Is(err, bulkhead.ErrFull).
var ErrFull = errors.New("bulkhead: full")

// Error is a refusal: all slots were in use, and the call could not wait, or
// waited in vain. The protected function was never entered. It matches [ErrFull].
//
// Refusals without a wait share one value for each set of settings; treat it as
// read-only.
type Error struct {
	Instance string        // id of the bulkhead
	Limit    int           // calls that may run at once when it refused
	Queue    int           // calls that may wait; -1: any number
	Waited   time.Duration // how long the call waited in vain; 0: refused at once
}

var _ policy.Error = (*Error)(nil)

// Error formats the refusal:
//
//	bulkhead "reports": full (limit 10, queue 20)
//	bulkhead "reports": full after waiting 100ms (limit 10)
func (e *Error) Error() string {
	text := "bulkhead " + strconv.Quote(e.Instance) + ": full"
	if e.Waited > 0 {
		text += " after waiting " + e.Waited.String()
	}
	text += " (limit " + strconv.Itoa(e.Limit)
	if e.Queue > 0 {
		text += ", queue " + strconv.Itoa(e.Queue)
	}
	return text + ")"
}

// Policy is "bulkhead".
func (e *Error) Policy() string { return kind }

// ID is the id of the bulkhead.
func (e *Error) ID() string { return e.Instance }

// Started is false: a call that is refused never had any effect.
func (e *Error) Started() bool { return false }

// Is reports whether target is [ErrFull].
func (e *Error) Is(target error) bool { return target == ErrFull }

// LogValue makes the error a group of its fields in package log/slog.
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("policy", kind),
		slog.String("id", e.Instance),
		slog.Int("limit", e.Limit),
		slog.Int("queue", e.Queue),
		slog.Duration("waited", e.Waited),
	)
}
