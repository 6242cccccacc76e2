package testkit

import (
	"context"
	"slices"
	"sync"

	"resilience4cata.dev/go/policy"
)

// Journal keeps the events that it hears: its Listen is a [policy.Listener]. The
// zero value is empty. It is safe for concurrent use.
type Journal struct {
	mu     sync.Mutex
	events []policy.Event
	ctxs   []context.Context
}

// Listen keeps e, and the context with which it came.
func (j *Journal) Listen(ctx context.Context, e policy.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events, j.ctxs = append(j.events, e), append(j.ctxs, ctx)
}

// Len is how many events it holds.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.events)
}

// Events are those that it holds, in the order in which they came.
func (j *Journal) Events() []policy.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// Contexts are those with which the Events came.
func (j *Journal) Contexts() []context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.ctxs)
}

// Take returns the Events and leaves it empty.
func (j *Journal) Take() []policy.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	events := j.events
	j.events, j.ctxs = nil, nil
	return events
}
