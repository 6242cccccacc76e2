package policy

import "time"

// Error is implemented by every error that a policy makes on its own. Find it with
// [errors.As]. A failed fallback's error is none: it holds two errors, its own and
// the one that it was asked for, and whichever of them is an Error is found in it.
type Error interface {
	error

	// Policy is the kind of policy: "timeout", "retry", "bulkhead",
	// "ratelimit" or "circuitbreaker".
	Policy() string

	// ID is the id of the instance that made the error.
	ID() string

	// Started reports whether the protected function was entered in this call.
	// False means that the call certainly had no effect; true means that its
	// effect is unknown.
	Started() bool
}

// NotStarted reports whether err proves that the protected function was never
// entered, so that the call can be made elsewhere without being made twice. It
// walks the whole tree of err: the answer is true only if an [Error] in it says
// so and none says otherwise. It is false for nil and for foreign errors.
func NotStarted(err error) bool {
	said, denied := started(err)
	return said && !denied
}

// started reports whether an Error in the tree says "not started" and whether
// one says "started".
func started(err error) (said, denied bool) {
	if err == nil {
		return false, false
	}
	if e, ok := err.(Error); ok { //nolint:errorlint // every node of the tree is visited below
		if e.Started() {
			return false, true
		}
		said = true
	}
	switch u := err.(type) { //nolint:errorlint // this is the walk itself
	case interface{ Unwrap() error }:
		s, d := started(u.Unwrap())
		return said || s, d
	case interface{ Unwrap() []error }:
		for _, child := range u.Unwrap() {
			s, d := started(child)
			said, denied = said || s, denied || d
		}
	}
	return said, denied
}

// Started reports whether any [Error] in the tree of err says that the
// function was entered.
func Started(err error) bool {
	_, denied := started(err)
	return denied
}

// RetryAfterer is an error that knows how long to wait before the next try is
// worth it: the limiter's and the breaker's refusals are, and package retry
// honors the method on the function's own errors as well.
type RetryAfterer interface {
	// RetryAfter is the time to wait, measured from when the error was made.
	// Zero or less says nothing.
	RetryAfter() time.Duration
}
