package scope

import (
	"context"
	"runtime/debug"

	"resilience4cata.dev/go/policy"
)

// noCall is the context of events that no call has caused.
var noCall = context.Background()

// Listening reports whether anybody hears events. Ask it before making an
// event, so that events cost nothing when nobody does.
func (s *Scope) Listening() bool { return s.listener != nil }

// Meta returns the Meta of an event that happens now.
func (s *Scope) Meta(kind, id string) policy.Meta {
	return policy.NewMeta(kind, id, s.Time())
}

// Publish tells the listener about e, with the call's context. Call it with no
// lock held. A panic of the listener is contained and reported once.
func (s *Scope) Publish(ctx context.Context, e policy.Event) {
	if s.listener == nil {
		return
	}
	value, stack, panicked := s.tell(ctx, e)
	if !panicked {
		return
	}
	// The listener panicked: tell it once. If it panics on that too, there is
	// nobody left to tell.
	s.tell(ctx, policy.CallbackPanic{Meta: s.Meta(e.Policy(), e.ID()), Value: value, Stack: stack})
}

func (s *Scope) tell(ctx context.Context, e policy.Event) (value any, stack []byte, panicked bool) {
	finished := false
	defer func() {
		if finished {
			return
		}
		// recover is nil on Goexit, which goes on: it ends the goroutine by the
		// listener's own wish.
		if value = recover(); value != nil {
			stack, panicked = debug.Stack(), true
		}
	}()
	s.listener(ctx, e)
	finished = true
	return nil, nil, false
}

// Guard calls f, a function that the user gave us, and reports whether it
// returned. A panic is contained and published as a [policy.CallbackPanic] of
// the given policy and instance. Call it with no lock held.
func (s *Scope) Guard(ctx context.Context, kind, id string, f func()) (returned bool) {
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil {
			s.Publish(ctx, policy.CallbackPanic{Meta: s.Meta(kind, id), Value: value, Stack: debug.Stack()})
		}
	}()
	f()
	return true
}
