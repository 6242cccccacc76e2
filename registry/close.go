package registry

import (
	"context"
	"slices"
	"sync/atomic"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
)

// closer is the owner of an async call's context: it ends the call's future.
type closer interface {
	Close(c *callctx.Context, slot *atomic.Pointer[callctx.Context])
}

// Close refuses all calls from now on, and ends what only waits: calls that wait
// for a permit, a slot or the next attempt, and pending futures, all with
// [ErrClosed]. Functions that run on their caller's goroutine go on, and keep
// their deadlines. It returns nil, and waits for nothing; see [Registry.Drain].
//
// It is optional: a registry that nobody uses holds no goroutine and no timer.
// It may be called more than once, from any goroutine and from callbacks.
// Snapshots still work afterwards.
func (r *Registry) Close() error {
	r.gate.Shut()
	if !r.scope.Close() {
		return nil
	}
	r.scope.Each(func(c *callctx.Context, slot *atomic.Pointer[callctx.Context]) {
		if owner, ok := c.Owner().(closer); ok {
			owner.Close(c, slot)
		}
	})
	return nil
}

// Drain refuses all calls from now on, and waits until no call is in flight and
// no abandoned work is running; retries that have begun go on meanwhile. It
// returns nil then, or, if ctx ends before, ctx's error, which matches its cause
// as well: call it again to wait on, or [Registry.Close] to end what waits.
// Pipelines without layers count no calls, so that it cannot wait for theirs.
//
// It may be called more than once, also at once. A nil ctx panics.
func (r *Registry) Drain(ctx context.Context) error {
	if ctx == nil {
		panic("registry: Drain: ctx is nil: pass context.Background() if there is no other")
	}
	r.gate.Shut()
	// The gate wakes one of those who wait. Whoever leaves wakes the next one,
	// that it may look, too: perhaps nothing else will ever end.
	defer r.gate.Ended()
	var busy []*stack.Stack
	for _, p := range r.look().pipelines {
		busy = append(busy, p.stack)
	}
	for {
		// A call that is begun from now on is refused, so a pipeline that is idle
		// stays so.
		if busy = slices.DeleteFunc(busy, (*stack.Stack).Idle); len(busy) == 0 {
			return nil
		}
		if r.scope.Wait(ctx, r.gate.Wait()) != nil {
			return scope.Ended(ctx)
		}
	}
}
