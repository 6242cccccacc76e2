package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
)

// Kind is how an attempt ended.
type Kind uint8

const (
	// Returned means that the function returned, in time: an error of its own, or
	// a value that is to be retried.
	Returned Kind = iota
	// TimedOut means that the attempt's own timeout won; the error is the
	// timeout's.
	TimedOut
	// Refused means that a policy below the retry refused the attempt, so that
	// the function was not entered; the error is the refusal.
	Refused
	// OutOfTime means that MaxDuration ended the attempt; the error is what the
	// function returned, or nil.
	OutOfTime
)

// Decision is who says whether an attempt is to be retried.
type Decision uint8

// What the pipeline may say about an attempt.
const (
	ByRules Decision = iota // On, If, AbortOn, AbortIf, or the default
	Yes                     // the pipeline, by the value: yes
	No                      // the pipeline, by the value: no
)

// Run is the state of one call under a retry. It is a value of the call's: not
// for concurrent use, nothing to release. [Policy.Begin] makes it.
type Run struct {
	// Attempt is the number of the attempt under way, from 1. Next moves it on.
	Attempt int
	// Entered is for the pipeline to set once an attempt enters the function.
	Entered bool
	// Interrupted is for the pipeline to set if it ends the call while the attempt
	// under way is in the function: that attempt counts.
	Interrupted bool

	kind     Kind // of the latest attempt that ended
	refused  bool // it did not enter the function and says so
	final    bool // it is the call's last: Next has said so
	value    bool // it ended with a value, which the caller gets after all
	caller   bool // ErrOutOfTime is for the caller's deadline, not for MaxDuration
	settings *settings
	start    int64 // of what Elapsed counts; 0: not known yet
	deadline int64
	err      error // what the latest attempt ended with
	last     error // the function's last error
}

// Deadline is the time, in the scope's terms, at which MaxDuration less the
// reserve is over; 0: there is none.
func (r *Run) Deadline() int64 { return r.deadline }

// Kind is how the latest attempt ended that Next was told of.
func (r *Run) Kind() Kind { return r.kind }

// CallerDeadline reports whether the [ErrOutOfTime] that Next returned is for
// the caller's own deadline, which the delay does not fit, rather than for
// MaxDuration.
func (r *Run) CallerDeadline() bool { return r.caller }

// Begin starts a call: its first attempt is under way. It counts the call in the
// budget. It reads the clock only if there is a MaxDuration or a budget.
func (p *Policy) Begin() (r Run) {
	p.BeginIn(&r)
	return r
}

// BeginIn is Begin for a zero Run that is in its place already: copying one
// costs as much as an atomic operation.
func (p *Policy) BeginIn(r *Run) {
	r.Attempt, r.settings = 1, p.settings.Load()
	if r.settings.timed {
		p.clockIn(r)
	}
}

func (p *Policy) clockIn(r *Run) {
	g, now := r.settings, p.scope.Now()
	if g.budget != nil {
		g.budget.started(now)
	}
	if d := g.config.MaxDuration; d > 0 {
		r.start = now
		r.deadline = now + int64(min(d-g.config.Reserve, longest-time.Duration(max(now, 0))))
	}
}

// Next decides what follows the attempt r.Attempt, which ended as kind says,
// with err. ctx is the caller's. An attempt that ended well needs no decision,
// and neither does a panic.
//
// If stop is nil, the caller waits for delay and makes another attempt, whose
// number is in r then. Else it returns what [Policy.Fail] makes of stop. A value
// that is to be retried has the decision Yes and a nil err.
//
// The order: MaxDuration or the caller has ended the call; the rules; the number
// of attempts; the time, which the delay must fit; the registry is closed; the
// budget. So nothing is taken from the budget for a retry that cannot be.
func (p *Policy) Next(ctx context.Context, r *Run, kind Kind, err error, decision Decision) (delay time.Duration, stop error) {
	g := r.settings
	r.kind, r.final, r.caller = kind, true, false
	if kind == OutOfTime {
		r.note(err)
		return 0, ErrOutOfTime
	}
	if callers := ctx.Err(); callers != nil {
		if kind == Refused && errors.Is(err, callers) { // a wait that ended with ctx refused nothing
			r.final = false
		} else {
			r.note(err)
		}
		return 0, scope.Ended(ctx)
	}
	r.note(err)

	says := p.classify(ctx, g, kind, err, decision)
	if says == never {
		return 0, errNotRetried
	}
	r.value = err == nil
	if limit := g.config.MaxAttempts; limit > 0 && r.Attempt >= limit {
		return 0, ErrExhausted
	}
	delay, nominal := p.delay(ctx, g, r.Attempt, err)
	if says == ifDelayed && nominal == 0 {
		return 0, errNotRetried
	}
	now := p.timeFor(ctx, r)
	if !r.fits(ctx, p.scope, now, delay) {
		return 0, ErrOutOfTime
	}
	if p.scope.Closed() {
		r.value = false
		return 0, scope.ErrClosed
	}
	if g.budget != nil && !g.budget.take(*g.config.Budget, now) {
		return 0, ErrBudget
	}

	p.retries.Add(1)
	over := r.Attempt
	r.Attempt++
	r.final, r.value = false, false // what the attempt returned is superseded from here on
	if p.scope.Listening() {
		p.scope.Publish(ctx, Retrying{Meta: p.scope.Meta(policyName, p.id), Attempt: over, Delay: delay, Err: err})
	}
	return delay, nil
}

// note remembers what an attempt ended with. A refusal, and a timeout that
// passed in a queue, are no errors of the function.
func (r *Run) note(err error) {
	r.refused = r.kind == Refused || r.kind == TimedOut && policy.NotStarted(err)
	if r.kind == OutOfTime && err == nil {
		return // cut in a wait: what was there before stays the last word
	}
	r.err = err
	if err != nil && !r.refused {
		r.last = strip(err)
	}
}

// delay returns the delay after attempt n, and what it would be without jitter
// and hint.
func (p *Policy) delay(ctx context.Context, g *settings, n int, err error) (delay, nominalDelay time.Duration) {
	c := &g.config
	delay, ok := p.delayFunc(ctx, c, n, err)
	if ok {
		delay = atMost(c.MaxDelay, max(delay, 0))
		nominalDelay = delay
	} else {
		nominalDelay = nominal(c, n)
		delay = schedule(c, n, p.random(ctx, c))
	}
	var hint policy.RetryAfterer
	if errors.As(err, &hint) {
		delay = max(delay, atMost(c.MaxDelay, p.asked(ctx, hint)))
	}
	return delay, nominalDelay
}

func (p *Policy) delayFunc(ctx context.Context, c *Config, n int, err error) (d time.Duration, ok bool) {
	if c.DelayFunc == nil {
		return 0, false
	}
	returned := p.scope.Guard(ctx, policyName, p.id, func() { d, ok = c.DelayFunc(n, err) })
	return d, ok && returned
}

// random returns the number for the jitter; without jitter nobody is asked.
func (p *Policy) random(ctx context.Context, c *Config) float64 {
	switch {
	case c.Jitter == 0 && !c.FullJitter:
		return 0
	case c.Rand == nil:
		return rand.Float64()
	}
	x := 0.5
	p.scope.Guard(ctx, policyName, p.id, func() { x = c.Rand() })
	return x
}

// timeFor reads the clock if anything that follows needs it.
func (p *Policy) timeFor(ctx context.Context, r *Run) (now int64) {
	_, bounded := ctx.Deadline()
	if bounded || r.start == 0 || r.settings.timed {
		now = p.scope.Now()
	}
	if r.start == 0 {
		r.start = now
	}
	return now
}

// fits reports whether the delay, and something of an attempt after it, fits in
// what is left. Exactly what is left does not fit.
func (r *Run) fits(ctx context.Context, s *scope.Scope, now int64, delay time.Duration) bool {
	left, callers := longest, false
	if r.deadline != 0 {
		left = time.Duration(r.deadline - now)
	}
	if end, ok := ctx.Deadline(); ok {
		l := end.Sub(s.At(now))
		// One that has passed although ctx lives is of another clock: the real one,
		// where the scope's is manual.
		others := l < 0 && !s.System() && ctx.Err() == nil
		if l > 0 { // else it is over anyway, and the difference may overflow
			l -= r.settings.config.Reserve
		}
		if l < left && !others {
			left, callers = l, true
		}
	}
	if delay < left || left == longest {
		return true
	}
	r.caller = callers
	return false
}

// Resume reports, after the delay, whether the next attempt may begin: nil, or
// the reason for Fail. The clock may have come late.
func (p *Policy) Resume(ctx context.Context, r *Run) (stop error) {
	if ctx.Err() != nil {
		return scope.Ended(ctx)
	}
	if p.scope.Closed() {
		return scope.ErrClosed
	}
	if r.deadline != 0 && p.scope.Now() >= r.deadline {
		r.caller = false
		return ErrOutOfTime
	}
	return nil
}

// Pause waits for the delay, on the caller's goroutine, and is Resume then. It
// returns at once when ctx ends or the registry is closed.
func (p *Policy) Pause(ctx context.Context, r *Run, delay time.Duration) (stop error) {
	if delay > 0 {
		if err := p.scope.Sleep(ctx, delay); err != nil {
			if ctx.Err() != nil && !errors.Is(err, scope.ErrClosed) {
				return scope.Ended(ctx)
			}
			return err
		}
	}
	return p.Resume(ctx, r)
}

// Fail ends a call that had no success, counts and publishes that, and returns
// what the caller gets. stop is the reason: what Next, Resume or Pause returned,
// or what ended a wait of an attempt that then needed no decision: the error of
// the caller's context, ErrClosed, or ErrOutOfTime.
//
//   - The function's error that the rules do not retry comes back unchanged, but
//     for the mark of [Permanent]; so does one that says what the caller's
//     context says.
//   - If no attempt entered the function, the last refusal comes back unchanged;
//     where the caller's end or a close interrupted the call, an [*Error] holds
//     both, or there was no refusal and the reason itself comes back.
//   - A value that was to be retried when attempts, time or budget ran out is the
//     call's result: nil. One that a later attempt has superseded is not.
//   - All else is an [*Error].
func (p *Policy) Fail(ctx context.Context, r *Run, stop error) error {
	refused := r.final && r.refused
	switch {
	case stop == errNotRetried && refused && r.Entered && r.Attempt == r.settings.config.MaxAttempts: //nolint:errorlint // our own, never wrapped
		p.exhausted.Add(1) // true as well, whatever the rules say of the refusal
		return p.giveUp(ctx, r, &both{ErrExhausted, r.err}, r.last)
	case stop == errNotRetried && refused && r.Entered: //nolint:errorlint // our own, never wrapped
		return p.giveUp(ctx, r, r.err, r.last)
	case stop == errNotRetried: //nolint:errorlint // our own, never wrapped
		return strip(r.err)
	case errors.Is(stop, ErrExhausted):
		p.exhausted.Add(1)
	case errors.Is(stop, ErrOutOfTime):
		p.outOfTime.Add(1)
	case errors.Is(stop, ErrBudget):
		p.budgetDenied.Add(1)
	default:
		return p.interrupted(ctx, r, stop)
	}
	switch {
	case r.value:
		p.publish(ctx, r, stop, nil)
		return nil
	case !r.Entered && r.err != nil:
		err := strip(r.err)
		p.publish(ctx, r, stop, err)
		return err
	case refused:
		stop = &both{stop, r.err}
	}
	return p.giveUp(ctx, r, stop, r.last)
}

// interrupted ends a call that the caller or a close has interrupted.
func (p *Policy) interrupted(ctx context.Context, r *Run, stop error) error {
	if callers := ctx.Err(); callers != nil && stop == callers { //nolint:errorlint // from a wait that says no more
		stop = scope.Ended(ctx)
	}
	if r.final && r.kind == Returned && r.err != nil && says(r.err, ctx) {
		return r.last
	}
	switch {
	case r.Entered:
		return p.giveUp(ctx, r, stop, r.last)
	case r.err != nil:
		return p.giveUp(ctx, r, stop, strip(r.err))
	default:
		return stop
	}
}

// says reports whether err says that ctx has ended, as the function's own error
// does when it has honored its context.
func says(err error, ctx context.Context) bool { //nolint:revive // reads like a sentence
	callers := ctx.Err()
	return callers != nil && (errors.Is(err, callers) || errors.Is(err, context.Cause(ctx)))
}

// giveUp makes the error of a call that was given up, and publishes it.
func (p *Policy) giveUp(ctx context.Context, r *Run, reason, last error) error {
	e := &Error{Instance: p.id, Attempts: r.made(), Reason: reason, Last: last, notStarted: !r.Entered, sinceEnd: r.deadline == 0}
	if r.start != 0 {
		e.Elapsed = time.Duration(max(0, p.scope.Now()-r.start))
	}
	p.publish(ctx, r, reason, last)
	return e
}

// made is how many attempts came to an end: not one that was interrupted before
// it entered the function, or never began.
func (r *Run) made() int {
	if r.final || r.Interrupted {
		return r.Attempt
	}
	return r.Attempt - 1
}

func (p *Policy) publish(ctx context.Context, r *Run, reason, last error) {
	if p.scope.Listening() {
		p.scope.Publish(ctx, GaveUp{Meta: p.scope.Meta(policyName, p.id), Attempts: r.made(), Reason: reason, Err: last})
	}
}

// Interrupted is the error of a call that was ended while what follows its
// attempt n, which failed with last, was being decided.
func (p *Policy) Interrupted(n int, reason, last error) error {
	return &Error{Instance: p.id, Attempts: n, Reason: reason, Last: strip(last)}
}

// asked is the server's hint. One that panics says nothing.
func (p *Policy) asked(ctx context.Context, hint policy.RetryAfterer) (d time.Duration) {
	p.scope.Guard(ctx, policyName, p.id, func() { d = hint.RetryAfter() })
	return d
}
