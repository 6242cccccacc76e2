package pipeline

import (
	"context"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
)

// Pipeline runs functions that return a T behind its layers. It is immutable
// and safe for concurrent use. Make it with [New] or [Configured]; the zero
// value is not usable, and its methods panic. A pipeline without layers asks
// whether the registry is closed and the context has ended, calls the function,
// and counts no call; so Drain does not wait for its calls.
type Pipeline[T any] struct {
	stack *stack.Stack
	hooks hooks[T]
}

// hooks are the functions that the user gave to the builder.
type hooks[T any] struct {
	fallback  func(ctx context.Context, err error) (T, error)
	asked     fallback.Config // which errors the fallback is for
	retryIf   func(v T, err error) bool
	failIf    func(v T, err error) bool
	onDiscard func(v T)
}

// Execute calls fn behind the layers, on this goroutine, and returns what it
// returned or the error of the layer that ended the call. fn gets a context
// that ends at the attempt's deadline, and also once fn has returned: do not
// return what still lives by it, such as the unread body of an HTTP response or
// rows of a database. It is asked to stop, never killed. A panic of fn passes
// through, and so does runtime.Goexit; both release all that the call held.
// Execute panics if ctx or fn is nil.
func (p *Pipeline[T]) Execute(ctx context.Context, fn func(context.Context) (T, error)) (v T, err error) {
	return p.execute(ctx, fn, true)
}

// Run is Execute for a function that returns no value. RetryIf and FailIf get the
// zero value; a fallback is asked as ever, and its value dropped; OnDiscard is
// never called.
func (p *Pipeline[T]) Run(ctx context.Context, fn func(context.Context) error) error {
	p.check(ctx, "Run", fn == nil)
	_, err := p.execute(ctx, func(ctx context.Context) (v T, err error) { return v, fn(ctx) }, false)
	return err
}

// execute is a sync call. It goes down through the layers, which follow in this
// order:
//
//	execute (fallback) > retried > watched (breaker) > attempt (limiter, timeout, bulkhead) > fn
//
// What the call holds is in t: attempt gives it back when fn has returned, and
// t.unwind on a panic and on Goexit. A rate permit stays spent.
func (p *Pipeline[T]) execute(ctx context.Context, fn func(context.Context) (T, error), values bool) (v T, err error) {
	p.check(ctx, "Execute", fn == nil)
	s := p.stack
	if s.Plain {
		switch {
		case s.Gate.IsShut():
			return v, scope.ErrClosed
		case ctx.Err() != nil:
			return v, scope.Ended(ctx)
		}
		return fn(ctx)
	}
	// Counted as started before the gate is asked: whoever shuts it sees the
	// call, or the call sees that it is shut.
	t := try{layers: s.Layers(), values: values, tally: s.Calls.Begin()}
	defer func() {
		if !t.done { // a panic or Goexit goes on
			defer s.Gate.Ended()
			defer t.tally.End(stack.Panicked)
			t.unwind()
		}
	}()
	var how ending
	switch {
	case s.Gate.IsShut():
		err, how = scope.ErrClosed, closed
	case ctx.Err() != nil:
		err, how = scope.Ended(ctx), callerEnded
	default:
		switch {
		case t.layers.Retry != nil:
			v, how, err = p.retried(ctx, &t, fn)
		case t.layers.Breaker != nil:
			v, how, err = p.watched(ctx, &t, fn)
		default:
			v, how, err = p.attempt(ctx, &t, fn)
		}
		if err != nil && how == returned && ctx.Err() != nil {
			how = callerEnded // judged by the caller's context, never by the error
		}
	}
	if err != nil && p.hooks.fallback != nil && p.wantsFallback(ctx, err, how) {
		if t.kept {
			p.discard(ctx, values, v)
		}
		v, err = p.fallBack(ctx, retry.Unmarked(err), &how) // without a retry nobody has done it
	}
	t.done = true
	t.tally.End(how.outcome(err))
	s.Gate.Ended()
	return v, err
}

// retried runs attempts until one is final. Between attempts nothing is held.
func (p *Pipeline[T]) retried(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	t.begin()
	for {
		if t.layers.Breaker != nil {
			v, how, err = p.watched(ctx, t, fn)
		} else {
			v, how, err = p.attempt(ctx, t, fn)
		}
		if err == nil && how == returned && p.hooks.retryIf == nil {
			return v, returned, nil
		}
		var delay time.Duration
		var again bool
		if v, how, delay, again, err = p.decide(ctx, t, v, err, how); !again {
			return v, how, err
		}
		if stop := t.layers.Retry.Pause(ctx, &t.run, delay); stop != nil {
			how, err = t.giveUp(ctx, stop)
			var zero T
			return zero, how, err
		}
	}
}

// watched is an attempt for which the circuit breaker is asked, and which is
// told how it ended.
func (p *Pipeline[T]) watched(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	permit, err := t.layers.Breaker.Enter(ctx)
	if err != nil {
		return v, refused, err
	}
	t.probe = newProbe(p.stack.Scope, permit)
	v, how, err = p.attempt(ctx, t, fn)
	p.judge(ctx, t, v, err, how)
	t.probe = nil
	return v, how, err
}

// attempt is one attempt behind the breaker. It takes a permit of the limiter,
// for which it may wait outside the timeout; makes the attempt's context, which
// ends at its deadline; and takes a slot of the bulkhead, for which it may wait
// as long as that context lives. On the way back the slot comes first.
func (p *Pipeline[T]) attempt(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	l := t.layers
	if l.Limiter != nil {
		if err = l.Limiter.Enter(ctx, l.LimiterWait, t.until()); err != nil {
			how, err = refusal(ctx, err)
			return v, how, err
		}
	}
	own := ctx
	if l.Timeout != nil || t.retrying {
		var ok bool
		if own, ok = t.arm(ctx, p.stack.Scope); !ok {
			return v, outOfTime, nil
		}
	}
	if l.Bulkhead != nil {
		err = l.Bulkhead.Enter(own, l.BulkheadWait)
		t.holds = err == nil
	}
	if err == nil {
		t.enter()
		v, err = fn(own)
	} else {
		how, err = refusal(ctx, err)
	}
	if t.holds {
		t.holds = false
		l.Bulkhead.Release()
	}
	if t.armed {
		t.armed = false
		if t.last.Finish() == callctx.Expired {
			return p.expired(ctx, t, v, err, how)
		}
	}
	return v, how, err
}

// ID is the pipeline's id.
func (p *Pipeline[T]) ID() string { return p.stack.ID }

// check panics, on the caller's goroutine and before anything is taken, for
// arguments that are mistakes of the program.
func (p *Pipeline[T]) check(ctx context.Context, form string, noFunc bool) {
	if p == nil || p.stack == nil || ctx == nil || noFunc {
		p.mistake(ctx, form)
	}
}

func (p *Pipeline[T]) mistake(ctx context.Context, form string) {
	switch {
	case p == nil || p.stack == nil:
		panic("pipeline: " + form + " on a nil or zero Pipeline: make it with pipeline.New(…).Build()")
	case ctx == nil:
		panic("pipeline: " + form + ": ctx is nil: pass context.Background() if there is no other")
	default:
		panic("pipeline: " + form + ": fn is nil")
	}
}
