package scope

import (
	"context"
	"errors"
)

// Ended returns the error for a call that ended because ctx did: ctx's own
// error; with a cause of its own, one that matches both. A foreign context that
// has said that it is done, and has no error now, counts as canceled: without an
// error the call would count as a success.
func Ended(ctx context.Context) error {
	err, cause := ended(ctx), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) { // Cause returns err itself when there is no other
		return err
	}
	return &endedError{err, cause}
}

type endedError struct{ err, cause error }

func (e *endedError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.err, e.cause} }
