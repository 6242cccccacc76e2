package pipeline

import (
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/internal/callctx"
)

// attempt is one attempt of an async call: the context that its function gets,
// and a word of flags on which those who end it agree.
type attempt[T any] struct {
	callctx.Context
	callctx.Info
	call  *call[T]
	stage atomic.Pointer[Future[T]]
	n     int32
	flags atomic.Uint32
}

// The flags of an attempt. Each is set once and never cleared, but for holding
// and staged.
const (
	entered   uint32 = 1 << iota // the function was entered
	givenUp                      // the call goes on, or has ended, without it
	ended                        // the function has returned; a stage has ended or was cancelled
	holding                      // it holds a slot of the bulkhead
	staged                       // the end of its stage has been dealt with
	lateSeen                     // a late completion of a cancelled stage was recorded
	cut                          // its deadline is MaxDuration's
	inTime                       // it ended before it was given up: its end is its result
	gone                         // its outcome is where it belongs, and it runs no more
	uncounted                    // it has left the gauge of abandoned work, too: only then is the work over
	counted                      // the gauge of abandoned work has it
	observed                     // of the first: somebody in another synctest bubble waits for the call
)

// enter notes that the function is being entered. It reports false if the
// attempt was given up before: then the function must not run.
func (a *attempt[T]) enter() bool {
	if a.n > 1 {
		a.call.more.Load().alive.Add(1)
	}
	for {
		before := a.flags.Load()
		if before&givenUp != 0 {
			break
		}
		if a.flags.CompareAndSwap(before, before|entered) {
			if a.n > 1 { // what earlier attempts did is not the work's outcome any more
				m := a.call.more.Load()
				m.mu.Lock()
				m.last, m.work = a.n, nil
				m.mu.Unlock()
			}
			return true
		}
	}
	if a.n > 1 {
		m := a.call.more.Load()
		m.alive.Add(-1)
		a.call.checkWork(m)
	}
	return false
}

// giveUp notes that nobody waits for the attempt any more, and counts it as
// abandoned if its function is running. It returns the flags from before.
//
// The gauge goes up first, so that it is never seen below zero: the function
// may return at any moment, and then takes it down.
func (a *attempt[T]) giveUp() uint32 {
	if a.stage.Load() != nil {
		a.ran() // a stage that is going to be cancelled counts as ended
	}
	before := a.flags.Or(givenUp)
	if before&(entered|ended|givenUp) == entered {
		a.call.p.stack.Abandoned.Running.Add(1)
		if a.flags.Or(counted)&gone != 0 { // it has returned meanwhile, and left the rest to us
			a.uncount()
			a.call.wentBy()
		}
	}
	return before
}

// uncount takes down what counts a as abandoned.
func (a *attempt[T]) uncount() {
	a.call.p.stack.Abandoned.Running.Add(-1)
	a.flags.Or(uncounted)
	if a.n > 1 {
		a.call.more.Load().alive.Add(-1)
	}
}

// ran notes that the attempt runs no more.
func (a *attempt[T]) ran() { a.left(a.flags.Or(ended)) }

// end notes that the function has returned, or that its stage has ended. It
// returns the flags from before, and whether that is the attempt's result.
func (a *attempt[T]) end(v callctx.Verdict) (before uint32, result bool) {
	for {
		before = a.flags.Load()
		after := before | ended
		if result = v == callctx.InTime && before&givenUp == 0; result {
			after |= inTime
		}
		if a.flags.CompareAndSwap(before, after) {
			return before, result
		}
	}
}

// settled notes, where an attempt's result has been used, that it runs no more.
// Not before: a result may still turn out to be late, and who hears that the work
// is done looks at what became of it.
func (a *attempt[T]) settled() {
	if a.flags.Load()&(inTime|gone) == inTime {
		a.left(entered)
	}
}

// left takes down what counts running attempts. before is the flags from before
// the attempt's end was noted.
//
// First the gauge, then what Work looks at: who hears that the work is done finds
// nothing of it in a snapshot.
func (a *attempt[T]) left(before uint32) {
	if before&(entered|ended) != entered {
		return
	}
	abandoned := before&givenUp != 0
	leaves := gone
	if !abandoned {
		leaves |= uncounted
	}
	now := a.flags.Or(leaves)
	switch {
	case now&(entered|gone) != entered:
	case abandoned && now&counted == 0: // who gives it up is about to count it, and takes that back
	case abandoned:
		a.uncount()
	case a.n > 1:
		a.call.more.Load().alive.Add(-1)
	}
}

// free gives the bulkhead's slot back, once.
func (a *attempt[T]) free() {
	if a.flags.And(^holding)&holding != 0 {
		a.call.layers.Bulkhead.Release()
	}
}

// returned is called when the function has returned, or its stage has ended. It
// reports whether that is the attempt's result; else the attempt was given up,
// and this is its late outcome.
func (a *attempt[T]) returned(v T, err error, how ending) bool {
	before, result := a.end(a.Finish())
	a.free()
	if result {
		return true
	}
	// First the outcome, then the gauge: who sees that nothing is abandoned any
	// more sees what became of it. A callback may end the goroutine.
	defer a.call.wentBy()
	defer a.left(before)
	if before&entered != 0 && !a.orphaned() { // a refusal that comes after the call's end is nobody's outcome
		a.call.late(a, v, err, how, true)
	}
	return false
}

// stageEnded is called when the stage has ended, by itself.
func (a *attempt[T]) stageEnded() {
	if a.flags.Or(staged)&staged != 0 {
		return
	}
	stage := a.stage.Load()
	if stage.kind(canceledF) && a.ending() { // by another call that it was the stage of
		if late := stage.late(); late != nil { // it may have come before this one was ending
			a.stageLate(late.v, late.err)
		}
		a.ran()
		a.call.wentBy()
		return
	}
	how := stageEnding(stage.err)
	if a.returned(stage.v, stage.err, how) {
		a.call.goOn(a.call.settle(a, stage.v, stage.err, how))
	}
}

// stageEnding is how a stage ended: one that is a pipeline's future may have
// ended in a panic, which is none of the errors that are retried.
func stageEnding(err error) ending {
	if _, isPanic := err.(*PanicError); isPanic || err == ErrGoexit { //nolint:errorlint // as a pipeline completes its future
		return panicked
	}
	return returned
}

// cancelStage cancels the stage of an attempt that was given up.
func (a *attempt[T]) cancelStage() { a.cancelStageFor(0) }

// cancelStageApart is cancelStage for a goroutine that belongs to others, too: on
// the system clock the callbacks that hear of it get goroutines of their own.
func (a *attempt[T]) cancelStageApart() {
	stage := a.stage.Load()
	switch {
	case stage == nil:
	case !a.call.scope().System():
		a.cancelStage()
	case stage.of == ofCall: // and so should what it waits for in its turn
		go a.cancelStage()
	default:
		a.cancelStageFor(apart)
	}
}

// cancelStageFor cancels the stage with flags, which may be apart.
func (a *attempt[T]) cancelStageFor(flags uint32) {
	stage := a.stage.Load()
	if stage == nil || a.flags.Or(staged)&staged != 0 {
		return
	}
	a.free()
	if stage.cancelFor(flags) {
		a.ran() // for whoever gave it up before it had its stage
		a.call.wentBy()
		return
	}
	// It ends by itself, which is true to whoever completes it. That may be under
	// way: whoever does it has found the flag, and we find that it has ended, or it
	// finds that we have given the flag back.
	a.flags.And(^staged)
	if stage.ended() {
		a.stageEnded()
	}
}

// ending reports whether the attempt was given up, or is about to be: whoever
// ends the call from outside moves its future first.
func (a *attempt[T]) ending() bool {
	f := a.flags.Load()
	return f&givenUp != 0 || f&inTime == 0 && !a.call.future.is(pending)
}

// orphaned reports whether the attempt's stage was cancelled by another call
// whose stage it was, too, just before its own call was ended. That end is not
// the work's; a late completion is.
func (a *attempt[T]) orphaned() bool {
	stage := a.stage.Load()
	if stage == nil || !stage.kind(canceledF) {
		return false
	}
	a.flags.Or(givenUp) // first this, then the look: see keep
	if late := stage.late(); late != nil {
		a.stageLate(late.v, late.err)
	}
	return true
}

// stageLate is called when a stage is completed that was cancelled before.
func (a *attempt[T]) stageLate(v T, err error) {
	if !a.ending() || a.flags.Or(lateSeen)&lateSeen != 0 {
		return
	}
	a.call.late(a, v, err, returned, false)
	a.call.wentBy()
}

// Attempt, Key, Ended and Close make an attempt the owner of its context.

// Attempt is its number, from 1.
func (a *attempt[T]) Attempt() int { return int(a.n) }

// Key is its call's.
func (a *attempt[T]) Key() *callctx.Key { return &a.call.slow().key }

// Replanned is the plan of a stage that MaxDuration ends before its timeout does.
func (a *attempt[T]) Replanned() *callctx.Plan {
	if a.flags.Load()&cut != 0 {
		return a.call.layers.Cut.Plan
	}
	return nil
}

// Ended hears that the deadline has passed. It runs on a goroutine that the
// wheel shares among all that were due together, so what calls the user's code
// goes to another one.
func (a *attempt[T]) Ended(_ *callctx.Context, v callctx.Verdict) (after func()) {
	c := a.call
	if v == callctx.Void { // the caller's own end, of which its context may not tell by itself
		if c.asksUser() && c.scope().System() {
			go c.callerEnded()
		} else {
			c.callerEnded()
		}
		return nil
	}
	before := a.giveUp()
	if c.layers.FreeOnTimeout || a.stage.Load() != nil {
		a.free()
	}
	staging := a.stage.Load() != nil // else who starts the stage cancels it
	if c.asksUser() && c.scope().System() {
		// The stage is cancelled by who comes second: then the call has its answer,
		// and all that were due with it have theirs decided.
		var came atomic.Int32
		second := func() {
			if came.Add(1) == 2 {
				a.cancelStageApart()
			}
		}
		go func() {
			next := func() *attempt[T] {
				defer second() // also if a function of the user's ends the goroutine
				return c.expire(a, before)
			}()
			if next != nil {
				c.drive(next, atBreaker, c.more.Load().function(), true)
			}
		}()
		if !staging {
			return nil
		}
		return second
	}
	next := c.expire(a, before)
	if !staging {
		c.goOn(next)
		return nil
	}
	return func() {
		a.cancelStageApart()
		c.goOn(next)
	}
}

// goesOn reports whether the end of an attempt need not be the call's.
func (c *call[T]) goesOn() bool {
	return c.layers.Retry != nil || c.layers.Breaker != nil || c.p.hooks.fallback != nil
}

// asksUser reports whether what follows a timeout may call the user's functions.
func (c *call[T]) asksUser() bool {
	l, h := c.layers, &c.p.hooks
	return h.fallback != nil || c.goesOn() && c.scope().Listening() || l.Retry != nil && (h.retryIf != nil || l.Retry.Asks())
}

// expire ends an attempt whose deadline won, and returns the one that follows at
// once, if there is one. before is its flags from before it was given up.
func (c *call[T]) expire(a *attempt[T], before uint32) (next *attempt[T]) {
	started := before&entered != 0
	m := c.more.Load()
	if m != nil {
		c.leave(m, a)
	}
	limit := a.Plan().Limit
	how := timedOut
	if before&cut != 0 || a.Plan() == c.layers.Cut.Plan {
		how = outOfTime
	}
	var zero T
	if !c.goesOn() { // the future first, then who listens
		if c.layers.Timeout == nil || !c.future.to(pending, deciding) {
			return nil
		}
		err, tell := c.layers.Timeout.Expired(c.ctx(), limit, started)
		c.finish(zero, err, how)
		switch {
		case tell == nil:
		case c.scope().System():
			go tell()
		default:
			tell()
		}
		return nil
	}
	if !c.future.is(pending) {
		return nil
	}
	return c.driven(a, func() *attempt[T] { // those who listen may end the goroutine
		m.mu.Lock()
		b := m.t.probe
		m.mu.Unlock()
		if b != nil { // from this instant on, and not after those who listen
			b.failure()
		}
		var err error
		if how == timedOut {
			err = c.layers.Timeout.Exceeded(c.ctx(), limit, started, false, nil)
		}
		return c.settle(a, zero, err, how)
	})
}

// newAttempt returns the attempt that follows.
func (c *call[T]) newAttempt(n int) *attempt[T] {
	return &attempt[T]{call: c, n: int32(n)}
}

// dueAt is when a was due, or, if it was ended from outside, when that was.
func (c *call[T]) dueAt(a *attempt[T]) int64 {
	if a.Finish() == callctx.Expired {
		return c.scope().Deadline(&a.Context)
	}
	if m := c.more.Load(); m != nil {
		m.mu.Lock()
		at := m.endedAt
		m.mu.Unlock()
		if at != 0 {
			return at
		}
	}
	return c.scope().Deadline(&a.Context)
}

func (c *call[T]) lateness(a *attempt[T]) time.Duration { return late(c.scope(), c.dueAt(a)) }
