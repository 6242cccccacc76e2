package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// try is what a call remembers from one attempt to the next. A sync call keeps
// it on its stack.
type try struct {
	layers   *stack.Layers
	run      retry.Run // only if retrying
	retrying bool
	values   bool             // the function makes values, not only errors
	entered  bool             // the attempt under way has entered the function
	kept     bool             // RetryIf has looked at the value that is returned beside an error
	last     *callctx.Context // a sync call's: of the latest attempt that had one
	probe    *probe           // what the breaker waits for, if there is one

	// A sync call's, for what a panic or Goexit leaves to be done. Here, where one
	// pointer leads to all of it, they cost less than as variables of their own.
	tally stack.Tally
	done  bool // the tally was told
	holds bool // a slot of the bulkhead
	armed bool // last is to be finished
}

// unwind gives back what a call holds through which a panic or Goexit goes. Each
// step is taken also if one before it panics: the user's clock may.
func (t *try) unwind() {
	if t.probe != nil {
		defer t.probe.failure()
	}
	if t.armed {
		defer t.last.Finish()
	}
	if t.holds {
		t.layers.Bulkhead.Release()
	}
}

// arm makes the context of an attempt that begins now, and starts its deadline.
// It returns the caller's where the attempt needs none of its own, and reports
// false if MaxDuration is over already.
func (t *try) arm(ctx context.Context, s *scope.Scope) (own context.Context, ok bool) {
	d, ok := t.deadline(ctx, s)
	if !ok {
		return ctx, false
	}
	plan := d.plan(t)
	if plan == nil {
		return ctx, true
	}
	c := callctx.New(ctx, plan)
	t.link(c)
	t.armed = true // first, since a clock may panic
	d.arm(c, t.layers, s)
	return c, true
}

// begin makes t a call under its retry.
func (t *try) begin() {
	t.layers.Retry.BeginIn(&t.run)
	t.retrying = true
}

// until is when MaxDuration is over, in the scope's time; 0: never.
func (t *try) until() int64 {
	return t.run.Deadline()
}

// number is the number of the attempt under way.
func (t *try) number() int {
	return max(t.run.Attempt, 1)
}

// enter notes that the function is entered.
func (t *try) enter() {
	t.entered, t.run.Entered = true, true
}

// link makes c the context of the attempt under way.
func (t *try) link(c *callctx.Context) {
	t.entered = false
	if t.probe != nil || t.run.Attempt > 1 {
		t.own(c)
	}
	t.last = c
}

// own gives c its owner, which knows the attempt's number and the call's key.
func (t *try) own(c *callctx.Context) {
	if t.probe == nil {
		c.Follow(t.last, t.number())
		return
	}
	t.probe.number = t.number()
	if t.last != nil {
		t.probe.key = t.last.Key()
	} else {
		t.probe.key = new(callctx.Key)
	}
	t.probe.Owner = t.probe
	c.Own(&t.probe.Info)
}

// giveUp ends a call whose wait for the next attempt was cut short by stop. The
// last attempt's error is remembered by the run.
func (t *try) giveUp(ctx context.Context, stop error) (ending, error) {
	how := callerEnded
	switch {
	case errors.Is(stop, scope.ErrClosed):
		how = closed
	case errors.Is(stop, retry.ErrOutOfTime):
		how = outOfTime
	}
	return how, t.layers.Retry.Fail(ctx, &t.run, stop)
}

// decide says, after an attempt, whether there is another one and after which
// delay. Otherwise it returns the call's result.
func (p *Pipeline[T]) decide(ctx context.Context, t *try, v T, err error, how ending) (_ T, _ ending, delay time.Duration, again bool, _ error) {
	if err == nil && how == returned && p.hooks.retryIf == nil {
		return v, returned, 0, false, nil
	}
	if !t.retrying {
		if how == outOfTime {
			err = retry.ErrOutOfTime
		}
		return v, how, 0, false, err
	}
	var zero T
	switch how {
	case callerEnded, closed: // in a wait for a permit or a slot
		return zero, how, 0, false, t.layers.Retry.Fail(ctx, &t.run, err)
	case panicked:
		return zero, how, 0, false, err
	case returned, timedOut, outOfTime, refused:
	}
	decision := retry.ByRules
	looked := p.hooks.retryIf != nil && how != outOfTime
	if looked {
		decision = retry.No
		if p.guard(ctx, "retry", func() {
			if p.hooks.retryIf(v, err) {
				decision = retry.Yes
			}
		}); err == nil && decision == retry.No {
			return v, how, 0, false, nil
		}
	}
	delay, stop := t.layers.Retry.Next(ctx, &t.run, how.kind(), err, decision)
	if stop == nil {
		if how == returned && (err == nil || looked) {
			p.discard(ctx, t.values, v)
		}
		return zero, how, delay, true, err
	}
	failure := t.layers.Retry.Fail(ctx, &t.run, stop)
	if failure == nil { // a value that ran out of attempts is better than none
		return v, how, 0, false, nil
	}
	gaveUp, isOurs := failure.(*retry.Error)                                    //nolint:errorlint // an inner pipeline's, wrapped, is the function's
	isOurs = isOurs && gaveUp.Instance == t.layers.Retry.ID() && failure != err //nolint:errorlint // unchanged or not
	if !isOurs && how == returned {                                             // the function's own, unchanged, and so is what came with it
		if ctx.Err() != nil {
			how = callerEnded
		}
		t.kept = looked
		return v, how, 0, false, failure
	}
	if how == returned && looked {
		p.discard(ctx, t.values, v)
	}
	switch {
	case !isOurs && how == outOfTime && !errors.Is(failure, timeout.ErrExceeded):
		how = refused // an attempt was, and time ran out in the wait of a later one
	case !isOurs:
	case errors.Is(stop, retry.ErrOutOfTime) && t.run.CallerDeadline():
		how = callerEnded
	case errors.Is(stop, retry.ErrOutOfTime):
		how = outOfTime
	case errors.Is(stop, scope.ErrClosed):
		how = closed
	case ctx.Err() != nil && errors.Is(stop, ctx.Err()):
		how = callerEnded
	}
	return zero, how, 0, false, failure
}

// deadline is what bounds an attempt: its timeout, or MaxDuration if that comes
// first, or nothing.
type deadline struct {
	limit *timeout.Limit
	until int64 // MaxDuration's, in the scope's time; 0: it does not come first
}

// deadline decides what bounds an attempt that begins now: equal deadlines are
// the timeout's. It reports false when MaxDuration is over already.
func (t *try) deadline(ctx context.Context, s *scope.Scope) (d deadline, ok bool) {
	if t.layers.Timeout != nil {
		d.limit = t.layers.Timeout.For(ctx)
	}
	if until := t.until(); until != 0 {
		left := until - s.Now()
		if d.limit == nil || left < int64(d.limit.D) {
			return deadline{until: until}, left > 0
		}
	}
	return d, true
}

// plan is what the attempt's context is made with; nil: it needs none of its own.
func (d deadline) plan(t *try) *callctx.Plan {
	switch {
	case d.limit != nil:
		return d.limit.Plan
	case d.until != 0:
		return t.layers.Cut.Plan
	case t.retrying:
		return t.layers.Attempts
	default:
		return nil
	}
}

// arm starts the deadline for c.
func (d deadline) arm(c *callctx.Context, l *stack.Layers, s *scope.Scope) {
	switch {
	case d.limit != nil:
		d.limit.Arm(c)
	case d.until != 0:
		s.ArmUntil(c, l.Cut.Level, d.until)
	}
}

// expired is the end of a sync attempt whose deadline won: whatever the function
// returned, the caller gets the deadline's error.
func (p *Pipeline[T]) expired(ctx context.Context, t *try, v T, err error, how ending) (zero T, _ ending, _ error) {
	if how != returned { // it ended in the bulkhead's queue, or was refused at that instant
		err = nil
	} else if err == nil {
		defer p.superseded(ctx, t, t.last, v) // the timeout comes first, as it did
	}
	plan := t.last.Plan()
	if plan == t.layers.Cut.Plan {
		return zero, outOfTime, err
	}
	return zero, timedOut, t.layers.Timeout.Exceeded(ctx, plan.Limit, t.entered, true, err)
}

// superseded deals with a value that came after the deadline.
func (p *Pipeline[T]) superseded(ctx context.Context, t *try, c *callctx.Context, v T) {
	defer p.discard(ctx, t.values, v) // also if a listener ends the goroutine
	p.lateSuccess(ctx, t.number(), c)
}

// probe tells the circuit breaker, once, how an attempt ended: at the deadline,
// if that wins, or when the attempt has returned.
type probe struct {
	callctx.Info
	scope  *scope.Scope
	permit circuitbreaker.Permit
	told   atomic.Bool
	number int
	key    *callctx.Key
}

func newProbe(s *scope.Scope, permit circuitbreaker.Permit) *probe {
	return &probe{scope: s, permit: permit}
}

func (b *probe) failure() {
	if !b.told.Swap(true) {
		b.permit.Failure()
	}
}

// Attempt, Key and Ended make a probe the owner of its attempt's context.

func (b *probe) Attempt() int      { return b.number }
func (b *probe) Key() *callctx.Key { return b.key }

// Ended is called when the deadline has passed: from that instant on a timeout is
// a failure. The goroutine serves all deadlines that are due together: where a
// listener may be called, the breaker is told on another one.
func (b *probe) Ended(_ *callctx.Context, v callctx.Verdict) (after func()) {
	switch {
	case v != callctx.Expired:
	case b.scope.System() && b.scope.Listening():
		go b.failure()
	default:
		b.failure()
	}
	return nil
}

// judge tells the breaker how an attempt ended that did not panic. If what it asks
// of the user's panics, the probe is still t's, and counts as failed.
func (p *Pipeline[T]) judge(ctx context.Context, t *try, v T, err error, how ending) {
	b := t.probe
	switch how {
	case timedOut, outOfTime:
		b.failure()
		return
	case refused:
		if t.layers.CountRejections {
			b.failure()
			return
		}
	case returned:
		if err != nil && ctx.Err() != nil {
			break // the caller gave up: neither good nor bad
		}
		if b.told.Swap(true) {
			return
		}
		if p.hooks.failIf == nil {
			b.permit.Record(err)
			return
		}
		settle := b.permit.Success
		if err != nil {
			settle = b.permit.Failure
		}
		defer func() { settle() }() // also if code of the user's ends the goroutine
		if err != nil && t.layers.Breaker.Ignores(ctx, err) {
			settle = b.permit.Ignored
			return
		}
		p.guard(ctx, "circuitbreaker", func() {
			if p.hooks.failIf(v, err) {
				settle = b.permit.Failure
			} else {
				settle = b.permit.Success
			}
		})
		return
	case panicked:
		b.failure()
		return
	case callerEnded, closed:
	}
	b.ignored()
}

func (b *probe) ignored() {
	if !b.told.Swap(true) {
		b.permit.Ignored()
	}
}
