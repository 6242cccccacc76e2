package pipeline

import (
	"context"
	"runtime/debug"
	"time"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
)

// settle decides what follows an attempt that has ended with a result: it
// returns the attempt that follows at once, or nil, when the call waits for its
// backoff or has ended. The caller is the call's driver.
//
// It runs at the bottom of a fresh goroutine, whose stack is 2 KiB: a call that
// goes on to nothing should not need more, which would cost it a copy. Nothing of
// the user's is asked there.
func (c *call[T]) settle(a *attempt[T], v T, err error, how ending) (next *attempt[T]) {
	if c.goesOn() {
		return c.driven(a, func() *attempt[T] { return c.decide(a, v, err, how) })
	}
	if err != nil || how != returned { // the caller's context is asked, which may be foreign code
		return c.driven(a, func() *attempt[T] { return c.conclude(a, v, err, how) })
	}
	return c.conclude(a, v, err, how)
}

// conclude is decide for a call that goes on to nothing.
func (c *call[T]) conclude(a *attempt[T], v T, err error, how ending) (next *attempt[T]) {
	if how == outOfTime {
		v, how, _, _, err = c.p.decide(c.ctx(), &try{layers: c.layers}, v, err, how)
	}
	if m := c.more.Load(); m != nil {
		c.remember(m, a, v, err, how)
	}
	if !c.complete(a, v, err, how) {
		c.lost(a, v, err, how, false)
	}
	return nil
}

// driven calls f, which decides what follows attempt a, for the call's driver.
// What the user gave us, a method of an error or a callback, may panic there or
// end the goroutine: that ends the call.
func (c *call[T]) driven(a *attempt[T], f func() *attempt[T]) (next *attempt[T]) {
	decided := false
	defer func() {
		if !decided {
			c.broke(a, recover())
		}
	}()
	next = f()
	decided = true
	return next
}

// broke ends a call for which a panic, or the end of the goroutine (a nil value),
// came where its end was being decided.
func (c *call[T]) broke(a *attempt[T], value any) {
	err := ErrGoexit
	if value != nil {
		err = &PanicError{value, debug.Stack()}
	}
	if m := c.more.Load(); m != nil && m.t.probe != nil {
		m.t.probe.failure()
	}
	var zero T
	switch {
	case c.future.to(pending, deciding):
		a.settled()
		c.finish(zero, err, panicked)
	case value != nil:
		c.lost(a, zero, err, panicked, false)
	default:
		a.settled()
		c.wentBy()
	}
}

// decide is settle, without a guard, for a call that may go on.
func (c *call[T]) decide(a *attempt[T], v T, err error, how ending) (next *attempt[T]) {
	m := c.more.Load()
	if !c.take(m) { // ended from outside
		c.lost(a, v, err, how, false)
		return nil
	}
	t := &m.t
	if a.flags.Load()&entered != 0 {
		t.enter()
	}
	if t.probe != nil {
		c.p.judge(c.ctx(), t, v, err, how)
		t.probe = nil
	}
	c.remember(m, a, v, err, how)
	own, was := err, how
	v, how, delay, again, err := c.p.decide(c.ctx(), t, v, err, how)
	if c.p.hooks.onDiscard != nil { // it may have the value now
		c.remember(m, a, v, own, was)
	}
	if !again { // t stays busy: the retry has said its last word
		if !c.complete(a, v, err, how) {
			if own == nil { // its value was dealt with, if there is an error now
				own = err
			}
			c.lost(a, v, own, was, t.kept) // what the attempt did, not what the retry made of it
		}
		return nil
	}
	a.settled()
	if !c.give(m, delay) {
		c.wentBy()
		return nil
	}
	if delay > 0 {
		return nil
	}
	return c.resume(m)
}

// take makes the driver the only one to use m.t. It reports false if the call
// has ended.
func (c *call[T]) take(m *more[T]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !c.future.is(pending) {
		return false
	}
	m.busy = true
	return true
}

// give ends what take began, and sets the timer for a backoff. It reports false
// if the call has ended meanwhile.
func (c *call[T]) give(m *more[T], delay time.Duration) bool {
	m.mu.Lock()
	m.busy = false
	live, first, resumed := c.future.is(pending), m.offClose == nil, m.resumed
	m.mu.Unlock()
	if !live {
		return false
	}
	if delay <= 0 {
		return true
	}
	// The clock may be the user's code: with no lock held.
	timer := c.scope().AfterFunc(delay, func() { c.wake(m) })
	m.mu.Lock()
	keep := c.future.is(pending) && m.resumed == resumed
	if keep {
		m.timer = timer
	}
	m.mu.Unlock()
	if !keep { // the call has ended, or gone on, meanwhile
		timer.Stop()
	}
	if first {
		c.hearClose(m)
	}
	return true
}

// wake is called when a backoff is over.
func (c *call[T]) wake(m *more[T]) {
	m.mu.Lock()
	last := m.latest(c)
	m.mu.Unlock()
	if next := c.driven(last, func() *attempt[T] { return c.resume(m) }); next != nil {
		fn := m.function()
		c.drive(next, atBreaker, fn, c.mine(fn))
	}
}

// resume begins the next attempt, if there is time for one.
func (c *call[T]) resume(m *more[T]) *attempt[T] {
	if !c.take(m) {
		return nil
	}
	t := &m.t
	stop := c.layers.Retry.Resume(c.ctx(), &t.run)
	var err error
	var how ending
	if stop != nil {
		how, err = t.giveUp(c.ctx(), stop)
	}
	n := t.run.Attempt
	m.mu.Lock()
	m.busy, m.timer = stop != nil, nil // the last word, if it is one, was said
	m.resumed++
	last := m.latest(c)
	m.mu.Unlock()
	if stop != nil {
		var zero T
		if !c.complete(last, zero, err, how) { // last was settled long ago
			c.wentBy()
		}
		return nil
	}
	return c.newAttempt(n)
}

// remember notes what the attempt itself did, for Work.
func (c *call[T]) remember(m *more[T], a *attempt[T], v T, err error, how ending) {
	if how != returned && how != panicked {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tells(a) && a.flags.Load()&lateSeen == 0 { // a late completion of its stage is the work's own
		m.work = &outcome[T]{v, err}
	}
}

// tells reports whether Work speaks of a: of the last attempt that was entered.
// It needs mu.
func (m *more[T]) tells(a *attempt[T]) bool { return a.n == max(m.last, 1) }

// latest is the last attempt that was begun. It needs mu.
func (m *more[T]) latest(c *call[T]) *attempt[T] {
	if m.cur == nil {
		return &c.first
	}
	return m.cur
}

// complete ends the call with a result, after the fallback was asked if it is
// for it. It reports false if something else has ended the call: then the result
// comes too late.
func (c *call[T]) complete(a *attempt[T], v T, err error, how ending) bool {
	if err != nil && how == returned && c.ctx().Err() != nil {
		how = callerEnded // judged by the caller's context, never by the error
	}
	if err != nil && c.p.hooks.fallback != nil && c.p.wantsFallback(c.ctx(), err, how) {
		if c.future.seal(pending, c.askedForEnd(how)) {
			a.settled()
			c.fallBack(err, how)
			if m := c.more.Load(); m != nil && m.t.kept {
				c.p.discard(c.ctx(), true, v)
			}
			return true
		}
	} else if c.future.to(pending, deciding) {
		a.settled()
		c.finish(v, err, how)
		return true
	}
	return false
}

// lost deals with a result that came in time and yet too late: between the
// attempt's end and its own, the call was ended from outside. kept says that
// RetryIf has looked at the value beside an error.
func (c *call[T]) lost(a *attempt[T], v T, err error, how ending, kept bool) {
	defer func() { // also if a callback ends the goroutine
		if m := c.more.Load(); m != nil && m.t.probe != nil {
			m.t.probe.ignored()
		}
		a.settled()
		c.wentBy()
	}()
	switch how {
	case returned, panicked:
		if a.orphaned() {
			break
		}
		if kept && c.p.discard(c.ctx(), true, v) {
			var zero T
			v = zero
		}
		c.late(a, v, err, how, true)
	case callerEnded, timedOut, outOfTime, refused, closed:
	}
}

// finish counts the call and completes its future, whose state the caller has
// moved to deciding.
func (c *call[T]) finish(v T, err error, how ending) {
	s := c.p.stack
	if !s.Plain {
		s.Calls.End(how.outcome(err))
	}
	defer c.finished() // who hears of the end may end the goroutine
	c.future.publish(v, err, 0)
}

// finished lets go of what the call held, and tells those who wait for its work.
func (c *call[T]) finished() {
	if m := c.more.Load(); m != nil {
		m.mu.Lock()
		unlink, off := m.unlink, m.offClose
		m.unlink, m.offClose, m.task = nil, nil, task[T]{}
		m.mu.Unlock()
		if unlink != nil {
			unlink()
		}
		if off != nil {
			off()
		}
		c.checkWork(m)
	}
	c.p.stack.Gate.Ended()
}

// askedForEnd says, as a flag of the future, whether a fallback that is asked
// because of how is asked because the caller's context has ended: then that end
// is no reason to stop it.
func (c *call[T]) askedForEnd(how ending) uint32 {
	if how == callerEnded && c.ctx().Err() != nil {
		return endAsked
	}
	return 0
}

// fallBack runs the fallback on a goroutine of its own, with a context that
// Cancel ends. The caller has sealed the future.
func (c *call[T]) fallBack(err error, how ending) {
	err = retry.Unmarked(err)
	m := c.slow()
	ctx, cancel := context.WithCancel(c.ctx())
	m.mu.Lock()
	m.cancel = cancel
	first := m.offClose == nil
	m.mu.Unlock()
	switch {
	case first:
		c.hearClose(m)
	case c.scope().Closed(): // perhaps while the fallback's rules were asked
		c.stop(scope.ErrClosed, closed, closedEnd, nil)
	}
	// Whoever stops the call sets its state and then looks for cancel; we have set
	// cancel and now look at the state.
	if !c.future.is(sealed) {
		cancel()
		return
	}
	go func() {
		defer cancel()
		v, how, err := c.runFallback(ctx, err, how)
		if c.future.to(sealed, deciding) {
			c.finish(v, err, how)
		} else if err == nil {
			c.p.discard(c.ctx(), true, v) //nolint:contextcheck // ctx is the fallback's, and has ended
		}
	}()
}

func (c *call[T]) runFallback(ctx context.Context, asked error, was ending) (v T, how ending, err error) {
	how = was
	finished := false
	defer func() {
		if finished {
			return
		}
		if value := recover(); value != nil {
			err, how = &fallback.FailedError{Failed: &PanicError{value, debug.Stack()}, Asked: asked}, panicked
			return
		}
		if c.future.to(sealed, deciding) { // Goexit: this goroutine ends
			c.finish(v, &fallback.FailedError{Failed: ErrGoexit, Asked: asked}, panicked)
		}
	}()
	v, err = c.p.fallBack(ctx, asked, &how)
	finished = true
	return v, how, err
}

// late deals with the outcome of an attempt that was given up, or whose call had
// ended: it is the work's own, counted and published, and never the future's.
// ours says that a value is not somebody else's to close.
func (c *call[T]) late(a *attempt[T], v T, err error, how ending, ours bool) {
	if !ours || err != nil || c.p.hooks.onDiscard == nil {
		c.recordLate(a, v, err, how)
		return
	}
	var zero T
	defer c.recordLate(a, zero, nil, how) // also if the hook ends the goroutine
	c.p.discard(c.ctx(), true, v)
}

// recordLate notes, counts and publishes a late outcome.
func (c *call[T]) recordLate(a *attempt[T], v T, err error, how ending) {
	m := c.slow()
	s := c.p.stack
	m.mu.Lock()
	if m.tells(a) {
		m.work = &outcome[T]{v, err}
	}
	m.mu.Unlock()
	listening := s.Scope.Listening()
	panicErr, isPanic := err.(*PanicError) //nolint:errorlint // made by run
	switch {
	case how == panicked && isPanic:
		s.Abandoned.LatePanic.Add(1)
		if listening {
			s.Scope.Publish(c.ctx(), LatePanic{Meta: c.p.meta(), Attempt: int(a.n), Late: c.lateness(a), Value: panicErr.Value, Stack: panicErr.Stack})
		}
	case err != nil:
		s.Abandoned.LateFailure.Add(1)
		if listening {
			s.Scope.Publish(c.ctx(), LateFailure{Meta: c.p.meta(), Attempt: int(a.n), Late: c.lateness(a), Err: err})
		}
	default:
		s.Abandoned.LateSuccess.Add(1)
		if listening {
			s.Scope.Publish(c.ctx(), LateSuccess{Meta: c.p.meta(), Attempt: int(a.n), Late: c.lateness(a)})
		}
	}
}

// wentBy tells those who wait for the end of work that some has ended.
func (c *call[T]) wentBy() {
	if m := c.more.Load(); m != nil {
		c.checkWork(m)
	}
	c.p.stack.Gate.Ended()
}
