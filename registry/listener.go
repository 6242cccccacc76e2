package registry

import (
	"context"
	"runtime/debug"

	"resilience4cata.dev/go/policy"
)

// together returns one listener for all of them; nil for none.
func together(all []policy.Listener) policy.Listener {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(ctx context.Context, e policy.Event) { tellAll(all, ctx, e) }
}

// tellAll tells e to all listeners. One that panics keeps it from nobody; its
// panic is told to all, once: if that makes one panic, there is nobody to tell.
func tellAll(all []policy.Listener, ctx context.Context, e policy.Event) { //nolint:revive // as in policy.Listener, ctx goes with e
	var panics []policy.CallbackPanic
	for _, l := range all {
		if value, stack := tell(l, ctx, e); stack != nil {
			panics = append(panics, policy.CallbackPanic{Meta: policy.NewMeta(e.Policy(), e.ID(), e.At()), Value: value, Stack: stack})
		}
	}
	if _, isPanic := e.(policy.CallbackPanic); isPanic {
		return
	}
	for _, p := range panics {
		tellAll(all, ctx, p)
	}
}

// tell returns what l panicked with, and where; a nil stack: it did not.
func tell(l policy.Listener, ctx context.Context, e policy.Event) (value any, stack []byte) { //nolint:revive // see tellAll
	returned := false
	defer func() {
		if returned {
			return
		}
		// recover is nil on Goexit, which goes on.
		if value = recover(); value != nil {
			stack = debug.Stack()
		}
	}()
	l(ctx, e)
	returned = true
	return nil, nil
}
