package pipeline

import (
	"context"
	"sync/atomic"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
)

// closedEnd is how contexts of async calls end when the registry is closed.
var closedEnd = callctx.NewEnd(context.Canceled, scope.ErrClosed)

// cancel ends the call by its consumer's wish.
func (c *call[T]) cancel() bool {
	return c.stop(context.Canceled, callerEnded, callctx.Canceled, nil)
}

// callerEnded ends the call because its caller's context has ended.
func (c *call[T]) callerEnded() {
	c.stop(scope.Ended(c.ctx()), callerEnded, callctx.ParentEnded, nil)
}

// Close ends the call because the registry is closed. The context may not know
// its slot yet; the visitor does.
func (a *attempt[T]) Close(_ *callctx.Context, slot *atomic.Pointer[callctx.Context]) {
	a.call.stop(scope.ErrClosed, closed, closedEnd, slot)
}

// hearClose has the call ended when the registry is closed, for times in which
// no context of its attempts can be found.
func (c *call[T]) hearClose(m *more[T]) {
	off := c.scope().OnClose(func() { c.stop(scope.ErrClosed, closed, closedEnd, nil) })
	m.mu.Lock()
	keep := m.offClose == nil && (c.future.is(pending) || c.future.is(sealed))
	if keep {
		m.offClose = off
	}
	m.mu.Unlock()
	if !keep {
		off()
	}
}

// stop ends the call from outside: what the call holds or waits for comes back
// first, so that who has the answer finds nothing of it left; then the future is
// completed; then the context tells of its end, and the stage is cancelled. It
// reports whether this call ended it. It may run at any moment of the driver's
// work; the driver looks, after every step that takes something, whether the call
// is pending still.
func (c *call[T]) stop(err error, how ending, end *callctx.End, slot *atomic.Pointer[callctx.Context]) bool {
	m := c.more.Load()
	now := c.scope().Now() // first: a clock is the user's code, and may panic
	// Only the caller's end may be what a fallback is for.
	next := deciding
	if end == callctx.ParentEnded {
		next = asking
	}
	if !c.future.to(pending, next) {
		return m != nil && c.stopFallback(m, err, how, end)
	}
	a, armed := &c.first, &c.first
	var p *parked[T]
	var b *probe
	var work *outcome[T]
	var timer clock.Timer
	idle := false
	if m != nil {
		m.mu.Lock()
		a, armed, p, idle = m.latest(c), m.armed, m.parked, !m.busy
		if idle { // else the driver is telling the breaker
			b = m.t.probe
		}
		work = m.work
		timer = m.timer
		m.parked, m.timer, m.endedAt = nil, nil, now
		m.mu.Unlock()
	}
	before := a.giveUp()
	if c.layers.FreeOnTimeout || a.stage.Load() != nil {
		a.free()
	}
	if m == nil && before&(entered|ended) == entered { // a late outcome will want to know
		m = c.slow()
		m.mu.Lock()
		m.endedAt = now
		m.mu.Unlock()
	}
	// From the last to the first, each also if one before it ends the goroutine:
	// those who are told may, and so may a clock that is asked to stop a timer.
	untold := c.endArmed(m, a, armed, end, slot)
	if m != nil {
		m.mu.Lock()
		m.untold = untold
		m.mu.Unlock()
	}
	asks := false
	defer func() { c.letGo(a, untold, how) }()
	defer func() {
		if asks {
			if c.future.seal(asking, c.askedForEnd(how)) {
				c.fallBack(err, how)
			}
		} else if next == deciding || c.future.to(asking, deciding) {
			var zero T
			c.finish(zero, err, how)
		}
	}()
	func() {
		if untold != nil {
			defer untold.Hush()
		}
		if b != nil { // the caller gave up: neither good nor bad
			defer b.ignored()
		}
		if p != nil {
			defer p.q.Leave(&p.Waiter)
		}
		if timer != nil {
			defer timer.Stop()
		}
	}()
	// Errors of the user's function are asked what they are: one that panics, or
	// ends the goroutine, must not leave the call without an end.
	c.p.guard(c.ctx(), kind, func() {
		switch {
		case m == nil || c.layers.Retry == nil:
		case idle:
			if before&entered != 0 {
				m.t.run.Entered = true
				m.t.run.Interrupted = m.t.run.Attempt == int(a.n) // else it waits for the next one
			}
			err = c.layers.Retry.Fail(c.ctx(), &m.t.run, err)
		case work != nil && work.err != nil: // the driver is deciding what follows an attempt that failed
			err = c.layers.Retry.Interrupted(int(a.n), err, work.err)
		}
		asks = next == asking && c.p.hooks.fallback != nil && c.p.wantsFallback(c.ctx(), err, how)
	})
	return true
}

// letGo tells of the end of the context, and cancels the stage, of a call whose
// future has ended.
func (c *call[T]) letGo(a, untold *attempt[T], how ending) {
	defer func() {
		if how == closed { // who closes does not wait
			a.cancelStageApart()
		} else {
			a.cancelStage()
		}
	}()
	if untold != nil {
		untold.Tell()
	}
}

// endArmed ends the context of the attempt that the call was in, and returns it:
// it has to tell of its end. nil: it had none.
func (c *call[T]) endArmed(m *more[T], a, armed *attempt[T], end *callctx.End, slot *atomic.Pointer[callctx.Context]) *attempt[T] {
	// A visitor may have found an attempt whose successor is armed by now. Without
	// more there is none, and its own idea of its slot may not be there yet.
	if slot != nil && (a.EndIn(slot, end) || m == nil) {
		return a
	}
	if armed == nil || armed.Slot() == nil {
		return nil
	}
	armed.EndIn(armed.Slot(), end)
	return armed
}

// stopFallback ends a call whose end is decided, but for its fallback: that is
// running, or the user's functions are being asked whether it is to run.
func (c *call[T]) stopFallback(m *more[T], err error, how ending, end *callctx.End) bool {
	from, ok := c.future.takeOver(end == callctx.ParentEnded)
	if !ok {
		return false
	}
	m.mu.Lock()
	cancel, a, untold := m.cancel, m.latest(c), m.untold
	m.mu.Unlock()
	if from == asking { // who asks has done all else
		defer c.letGo(a, untold, how)
	}
	if cancel != nil {
		defer cancel()
	}
	var zero T
	c.finish(zero, err, how)
	return true
}

// checkWork tells those who wait for the work's end if it has come.
func (c *call[T]) checkWork(m *more[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.workDone == nil && m.guests == nil || !c.workIsOver(m) {
		return
	}
	if m.workDone != nil && !m.workOver {
		m.workOver = true
		close(m.workDone)
	}
	for _, g := range m.guests {
		g.Wake()
	}
	m.guests = nil
}

// workIsOver reports whether the future has ended and no attempt runs.
func (c *call[T]) workIsOver(m *more[T]) bool {
	first := c.first.flags.Load()
	return c.future.ended() && first&(entered|uncounted) != entered && (m == nil || m.alive.Load() == 0)
}

func (c *call[T]) workDone() <-chan struct{} {
	foreign := c.observe()
	m := c.slow() // before the look: who ends something looks for it afterwards
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.workIsOver(m) {
		return closedChan
	}
	if foreign {
		return c.workDoneIn(c.scope().Visited(), m)
	}
	if m.workDone == nil {
		m.workDone = make(chan struct{})
	}
	return m.workDone
}

// workDoneIn is workDone in a foreign synctest bubble. The caller holds m.mu.
func (c *call[T]) workDoneIn(bubble uint64, m *more[T]) <-chan struct{} {
	for _, g := range m.guests {
		if g.Of(bubble) {
			return g.Ready
		}
	}
	g := scope.NewGuest(bubble, func() bool { return c.workIsOver(m) })
	m.guests = append(m.guests, g)
	return g.Ready
}

func (c *call[T]) workPoll() (v T, complete bool, err error) {
	if !c.workIsOver(c.more.Load()) {
		return v, false, nil
	}
	if m := c.more.Load(); m != nil { // now, for it may have come with the outcome
		m.mu.Lock()
		work := m.work
		m.mu.Unlock()
		if work != nil {
			return work.v, true, work.err
		}
	}
	return c.future.v, true, c.future.err
}

func (c *call[T]) cancelRequested() bool {
	a := &c.first
	if m := c.more.Load(); m != nil {
		m.mu.Lock()
		a = m.latest(c)
		m.mu.Unlock()
	}
	return a.flags.Load()&givenUp != 0
}

// observe moves the deadline of the attempt under way into the synctest bubble
// that the caller is in, if the registry was not made there: from then on, who
// completes the future is in the bubble too. It reports whether that is so.
func (c *call[T]) observe() (foreign bool) {
	s := c.scope()
	if !s.Foreign() {
		return false
	}
	c.first.flags.Or(observed) // before the look at armed: arm does the reverse
	if a := c.underWay(); a != nil {
		a.Observe()
	}
	return true
}

// underWay is the last attempt whose context is armed, or nil.
func (c *call[T]) underWay() *attempt[T] {
	a := &c.first
	if m := c.more.Load(); m != nil {
		m.mu.Lock()
		a = m.armed
		m.mu.Unlock()
	}
	if a == nil || a.Slot() == nil {
		return nil
	}
	return a
}

// tellFunction has those in the synctest bubble that the caller is in hear of the
// end of a function's context, and reports whether it has ended.
func (c *call[T]) tellFunction() (over bool) {
	a := c.underWay()
	return a == nil || a.Tell()
}
