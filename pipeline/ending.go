package pipeline

import (
	"context"
	"errors"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
)

// ending is how an attempt, and in the end the call, came to its result. It is
// decided where it happens and never guessed from an error.
type ending uint8

const (
	returned    ending = iota // the function returned; the error is its own
	timedOut                  // the timeout's deadline won
	outOfTime                 // MaxDuration won, or leaves no room for another attempt
	refused                   // the breaker, the limiter or the bulkhead said no
	callerEnded               // the caller's context ended, or its deadline leaves no room
	closed                    // the registry was closed
	panicked                  // async: the function panicked or called Goexit
)

// outcome is what a call that ended so counts as.
func (h ending) outcome(err error) stack.Outcome {
	if err == nil {
		return stack.Succeeded
	}
	switch h {
	case timedOut, outOfTime:
		return stack.TimedOut
	case callerEnded:
		return stack.Cancelled
	case refused, closed:
		return stack.Rejected
	case panicked:
		return stack.Panicked
	case returned:
	}
	return stack.Failed
}

// kind is what a retry needs to know of it.
func (h ending) kind() retry.Kind {
	switch h {
	case timedOut:
		return retry.TimedOut
	case outOfTime:
		return retry.OutOfTime
	case refused:
		return retry.Refused
	case returned, callerEnded, closed, panicked:
	}
	return retry.Returned
}

// refusal says what it means that a policy did not let an attempt in: err is
// the policy's own error, ErrClosed, or a context's. Where the context that
// ended was the attempt's own, the attempt's deadline will tell.
func refusal(ctx context.Context, err error) (ending, error) {
	switch err.(type) { //nolint:errorlint // a refusal comes as it is; errors.As would allocate
	case *bulkhead.Error, *ratelimit.Error:
		return refused, err
	}
	switch {
	case errors.Is(err, scope.ErrClosed):
		return closed, err
	case ctx.Err() != nil:
		return callerEnded, scope.Ended(ctx)
	default:
		return callerEnded, err
	}
}
