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
	// From here the call goes down through the layers, which follow in this order:
	//
	//	execute (fallback) > retried > attempt (breaker, then limiter) > timed > bulked > fn
	//
	// On the way back bulked releases its slot, timed ends the context, and watched
	// tells the breaker; a rate permit stays spent. A defer in each of them does it
	// on a panic and on Goexit, too.
	p.check(ctx, "Execute", fn == nil)
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

func (p *Pipeline[T]) execute(ctx context.Context, fn func(context.Context) (T, error), values bool) (v T, err error) {
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
	tally := s.Calls.Begin()
	outcome := stack.Panicked // unless what follows returns
	defer func() {
		tally.End(outcome)
		s.Gate.Ended()
	}()
	t := try{layers: s.Layers(), values: values}
	var how ending
	switch {
	case s.Gate.IsShut():
		err, how = scope.ErrClosed, closed
	case ctx.Err() != nil:
		err, how = scope.Ended(ctx), callerEnded
	default:
		if t.layers.Retry == nil {
			v, how, err = p.attempt(ctx, &t, fn)
		} else {
			v, how, err = p.retried(ctx, &t, fn)
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
	outcome = how.outcome(err)
	return v, err
}

// retried runs attempts until one is final. Between attempts nothing is held.
func (p *Pipeline[T]) retried(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	t.begin()
	for {
		v, how, err = p.attempt(ctx, t, fn)
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

// attempt asks the circuit breaker, then takes a permit of the rate limiter.
// Waiting for it is outside the timeout; a permit that was taken stays spent.
func (p *Pipeline[T]) attempt(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	l := t.layers
	if l.Breaker != nil && t.probe == nil {
		return p.watched(ctx, t, fn) // asks the breaker, and comes back here for the rest
	}
	if l.Limiter != nil {
		if err := l.Limiter.Enter(ctx, l.LimiterWait, t.until()); err != nil {
			how, err = refusal(ctx, err)
			return v, how, err
		}
	}
	if l.Timeout == nil && !t.retrying {
		return p.bulked(ctx, ctx, t, fn)
	}
	return p.timed(ctx, t, fn)
}

// watched is an attempt for which the circuit breaker has been asked, and which
// is told how it ended.
func (p *Pipeline[T]) watched(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	permit, err := t.layers.Breaker.Enter(ctx)
	if err != nil {
		return v, refused, err
	}
	t.probe = newProbe(p.stack.Scope, permit)
	ended := false
	defer func() {
		if !ended { // a panic or Goexit goes on
			t.probe.failure()
		}
	}()
	v, how, err = p.attempt(ctx, t, fn)
	ended = true
	p.judge(ctx, t, v, err, how)
	return v, how, err
}

// timed gives the attempt a context that ends at the attempt's deadline: after
// the timeout, or when MaxDuration is over, whichever comes first.
func (p *Pipeline[T]) timed(ctx context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	d, ok := p.deadline(ctx, t)
	if !ok {
		return v, outOfTime, nil
	}
	plan := d.plan(t)
	if plan == nil {
		return p.bulked(ctx, ctx, t, fn)
	}
	c := callctx.New(ctx, plan)
	t.link(c)
	ended := false
	defer func() {
		if !ended { // a panic or Goexit goes on; nothing may stay armed
			c.Finish()
		}
	}()
	d.arm(c, t.layers, p.stack.Scope)
	v, how, err = p.bulked(ctx, c, t, fn)
	ended = true
	if c.Finish() == callctx.Expired {
		return p.expired(ctx, c, d, t, v, err, how)
	}
	return v, how, err
}

// bulked runs the function in a slot of the bulkhead. Waiting for the slot
// counts against the attempt's deadline, and ends with its context c.
func (p *Pipeline[T]) bulked(ctx, c context.Context, t *try, fn func(context.Context) (T, error)) (v T, how ending, err error) {
	if l := t.layers; l.Bulkhead != nil {
		if err := l.Bulkhead.Enter(c, l.BulkheadWait); err != nil {
			how, err = refusal(ctx, err)
			return v, how, err
		}
		defer l.Bulkhead.Release()
	}
	t.enter()
	v, err = fn(c)
	return v, returned, err
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
