package policy

import (
	"context"
	"time"
)

// Event is something worth telling about a call or a policy. Events are struct
// values that embed [Meta]; tell them apart with a type switch:
//
//	switch e := e.(type) {
//	case timeout.Exceeded:
//	case circuitbreaker.StateChanged:
//	}
type Event interface {
	Policy() string // the kind of policy: "timeout", …, "fallback", "pipeline"
	ID() string     // the instance
	At() time.Time  // when it happened, by the registry's clock
}

// Meta is what every event carries. The zero value belongs to no instance.
type Meta struct {
	policy, id string
	at         time.Time
}

// NewMeta returns the Meta of an event of the given policy and instance.
func NewMeta(policy, id string, at time.Time) Meta { return Meta{policy, id, at} }

// Policy is the kind of policy.
func (m Meta) Policy() string { return m.policy }

// ID is the instance's id.
func (m Meta) ID() string { return m.id }

// At is when the event happened, by the registry's clock.
func (m Meta) At() time.Time { return m.at }

// Listener receives events. It is called with the context of the call that
// caused the event ([context.Background] where there is none), on the goroutine
// on which the event happened, with no lock held: it may call back into the
// library, but it should return soon. It must be safe for concurrent use. A
// panic is contained and reported once as [CallbackPanic].
type Listener func(ctx context.Context, e Event)

// CallbackPanic is published when a callback that the user gave to the library
// (a listener, a predicate, a hook) panicked. The call that it belonged to goes
// on as if the callback had given no answer.
type CallbackPanic struct {
	Meta
	Value any    // what it panicked with
	Stack []byte // where, as from runtime/debug.Stack
}

var _ Event = CallbackPanic{}
