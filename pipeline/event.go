package pipeline

import (
	"time"

	"resilience4cata.dev/go/policy"
)

// LateSuccess is published when work succeeded after its caller had been
// answered: after a deadline, or, for a future, after whatever ended it.
type LateSuccess struct {
	policy.Meta
	Attempt int           // which attempt it was, from 1
	Late    time.Duration // by how much it missed the deadline, or the future's end
}

// LateFailure is published when work failed after its future had ended.
type LateFailure struct {
	policy.Meta
	Attempt int
	Late    time.Duration
	Err     error // what it failed with
}

// LatePanic is published when work panicked after its future had ended. The
// process stays alive.
type LatePanic struct {
	policy.Meta
	Attempt int
	Late    time.Duration
	Value   any    // what it panicked with
	Stack   []byte // where, as from runtime/debug.Stack
}

var _, _, _ policy.Event = LateSuccess{}, LateFailure{}, LatePanic{}
