package callctx

import (
	"context"
	"time"
)

// Plan is what the contexts of one pipeline have in common. It is immutable
// once the first context was made with it; a changed setting makes a new plan.
type Plan struct {
	// Limit is how long an attempt may take; 0: as long as it likes.
	Limit time.Duration

	// Retrying says that the contexts are attempts of a retry: only those
	// answer Attempt and Key.
	Retrying bool

	// Deadline answers for a context that has one of its own. It may be nil.
	Deadline func(*Context) (time.Time, bool)

	// Watch is called before the first done channel of a context is made. For a
	// caller in a synctest bubble other than the wheel's it moves the deadline to
	// a timer of that bubble, and returns how to stop that, and how to find out
	// whether one is in the bubble; for others nil. A deadline that is to come is
	// not moved (no Stop): whoever begins it does. It may be nil.
	Watch func(*Context) *Aside

	// Passed reports whether a deadline that somebody was told has passed, although
	// the wheel may not have come round yet. It may be nil.
	Passed func(*Context) bool

	// Overdue is how long ago the deadline of a context has passed; negative: it has
	// none, or it is to come. It may be nil.
	Overdue func(*Context) time.Duration

	// Hear waits a moment for a context to hear that one above it has ended. It
	// may be nil if Overdue is.
	Hear func(context.Context)

	expired *watch // for contexts at which nobody had looked when they expired
}

// NewPlan returns a plan whose contexts end with [context.DeadlineExceeded] and
// the given cause when they expire.
func NewPlan(limit time.Duration, cause error) *Plan {
	return &Plan{Limit: limit, expired: settled(NewEnd(context.DeadlineExceeded, cause))}
}

// End is how a context ended. The zero value and nil are not ends.
type End struct {
	err    error
	tomb   context.Context // cancelled with the cause; [context.Cause] finds it
	parent bool            // the parent ended: ask it
	own    bool            // our deadline won
}

// NewEnd returns an end with the given error and cause.
//
// Cause finds the nearest standard cancel context through Value, and has no
// other way to learn a cause; hence the cancelled standard context.
func NewEnd(err, cause error) *End {
	tomb, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return &End{err: err, tomb: tomb, own: err == context.DeadlineExceeded} //nolint:errorlint // it is that very value
}

var (
	// Canceled is the end of an attempt that was cancelled without a cause.
	Canceled = NewEnd(context.Canceled, nil)

	// finishedEnd is the end of an attempt that has returned.
	finishedEnd = NewEnd(context.Canceled, nil)

	// ParentEnded is the end of an attempt whose caller's context ended.
	ParentEnded = &End{parent: true}

	// What contexts at which nobody had looked share when they end.
	finishedWatch = settled(finishedEnd)
	parentWatch   = settled(ParentEnded)
)

// Verdict is how an attempt's context ended.
type Verdict uint8

const (
	// InTime says that the attempt returned before its deadline won and before it was
	// cancelled.
	InTime Verdict = iota
	// Expired says that our deadline won.
	Expired
	// Void says that our deadline fired, but the caller's context had ended
	// before.
	Void
	// Cancelled says that it was cancelled from our side.
	Cancelled
)

func (e *End) verdict() Verdict {
	switch {
	case e.own:
		return Expired
	case e.parent:
		return Void
	case e == finishedEnd: // whoever looked after it has said so
		return InTime
	default:
		return Cancelled
	}
}

// Owner is who hears of a context's end before the attempt has returned, and
// who knows which attempt it is.
type Owner interface {
	// Attempt is the number of the attempt, from 1.
	Attempt() int

	// Key is the idempotency key of the call.
	Key() *Key

	// Ended is called once, on a goroutine that belongs to nobody, when the
	// context expired or its deadline fired in vain (Void). What it returns, if
	// anything, is called after all contexts that were due with this one have
	// ended.
	Ended(c *Context, v Verdict) (after func())
}

// Replanner is an Owner whose context may expire by another plan than the one
// that it was made with: what bounds a stage is known once there is one.
type Replanner interface {
	Owner

	// Replanned is that plan, or nil. The answer is fixed before the deadline is
	// set.
	Replanned() *Plan
}

// Info links a context to its owner. Embed it in the owner to save an
// allocation. It is immutable once a context has it.
type Info struct{ Owner Owner }
