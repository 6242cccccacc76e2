package pipeline

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
)

// call is one async call: its future, its first attempt, and the state machine
// that takes its attempts through the layers without holding a goroutine while
// they wait. At any time one goroutine drives it (see drive); who may end it
// from outside is in stop.go.
//
// What most calls need is in one allocation; the rest is in more.
type call[T any] struct {
	future Future[T] // the first field: see Future.own
	first  attempt[T]
	p      *Pipeline[T]
	layers *stack.Layers
	more   atomic.Pointer[more[T]]
}

// more is what a call needs that may wait, be retried, be cancelled by its
// caller's context, or end late. A call that may do any of the first three has
// it from the start.
type more[T any] struct {
	key callctx.Key // shared by the attempts

	// t belongs to the driver; while busy is false and the call is pending,
	// whoever ends the call may look at it, under mu.
	t try

	// ctx is the caller's. The first attempt has it too, but where the call waits
	// before it is armed, others may look while the driver is arming it.
	ctx context.Context //nolint:containedctx // the call is what outlives its function

	alive atomic.Int32 // attempts after the first that run

	mu       sync.Mutex
	task     task[T]     // for attempts that do not begin in the caller's call; gone once the call has ended
	last     int32       // the number of the last attempt that was entered; 0: none after the first
	busy     bool        // the driver is using t
	workOver bool        // workDone is closed
	cur      *attempt[T] // the last one that was begun; nil: the first
	armed    *attempt[T] // the last one whose context has its slot
	parked   *parked[T]  // what it waits for in a queue
	untold   *attempt[T] // its context was ended from outside, and has to tell of it
	timer    clock.Timer // the backoff
	resumed  uint32      // how many backoffs are over
	unlink   func() bool // from the caller's context
	offClose func()      // from the scope
	cancel   func()      // ends the fallback's context

	endedAt  int64       // when it was ended from outside, in the scope's time
	work     *outcome[T] // what the last attempt itself did, if the future does not say it
	workDone chan struct{}
	guests   []*scope.Guest // who wait for the same in synctest bubbles
}

// function is the user's, or nothing once the call has ended: whoever keeps a
// future does not keep that, too. An attempt that finds nothing is not entered.
func (m *more[T]) function() task[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.task
}

type outcome[T any] struct {
	v   T
	err error
}

// task is the user's function, in one of its two forms.
type task[T any] struct {
	run   func(context.Context) (T, error)
	stage func(context.Context) *Future[T]
}

// ExecuteAsync calls fn behind the layers, on a goroutine of its own, and
// returns a future. The breaker, the limiter and the bulkhead are asked in this
// call, so in the order of submission; a refusal starts no goroutine, and waits
// and backoffs hold none. The context ends as it does for Execute, also once fn
// has returned. The future fails at the deadline even if fn ignores its context;
// the bulkhead's slot is held until fn has really returned. A panic of fn becomes
// a [PanicError]. ExecuteAsync panics if ctx or fn is nil.
func (p *Pipeline[T]) ExecuteAsync(ctx context.Context, fn func(context.Context) (T, error)) *Future[T] {
	p.check(ctx, "ExecuteAsync", fn == nil)
	return p.begin(ctx, task[T]{run: fn})
}

// ExecuteFuture calls fn, which starts some work and returns a future for it, a
// stage. With breaker, permit and slot free, fn runs on this goroutine, else on
// a fresh one when they are granted; ExecuteFuture itself never waits. The
// timeout covers the stage and not fn: it starts when fn has returned, or at
// queueing where a slot had to be waited for. The context of fn lives until the
// stage has completed or was given up. When the call ends early, its future fails
// first, then the stage is cancelled. A panic of fn becomes a [PanicError], a nil
// stage [ErrNilStage]. ExecuteFuture panics if ctx or fn is nil.
func (p *Pipeline[T]) ExecuteFuture(ctx context.Context, fn func(context.Context) *Future[T]) *Future[T] {
	p.check(ctx, "ExecuteFuture", fn == nil)
	return p.begin(ctx, task[T]{stage: fn})
}

func (p *Pipeline[T]) begin(ctx context.Context, fn task[T]) *Future[T] {
	c := &call[T]{p: p, layers: p.stack.Layers()}
	c.future.of = ofCall
	c.first.call, c.first.n = c, 1
	c.first.Init(ctx, c.layers.Attempts)

	s := p.stack
	if !s.Plain {
		s.Calls.Begin() // before the gate is asked, as in execute
	}
	switch {
	case s.Gate.IsShut():
		c.endAtOnce(scope.ErrClosed, closed)
		return &c.future
	case ctx.Err() != nil:
		c.endAtOnce(scope.Ended(ctx), callerEnded)
		return &c.future
	}
	if c.mayWait(ctx) {
		m := &more[T]{ctx: ctx, task: fn, t: try{layers: c.layers, values: true}}
		c.more.Store(m)
		if c.layers.Retry != nil {
			c.driven(&c.first, func() *attempt[T] { // it may read the clock, which is the user's code
				m.t.begin()
				return nil
			})
		}
		c.hear(ctx, m)
	}
	c.drive(&c.first, atBreaker, fn, fn.stage != nil)
	return &c.future
}

// endAtOnce ends a call that takes nothing and enters nothing.
func (c *call[T]) endAtOnce(err error, how ending) {
	c.driven(&c.first, func() *attempt[T] {
		var zero T
		c.complete(&c.first, zero, err, how)
		return nil
	})
}

// mayWait reports whether the call needs more from the start.
func (c *call[T]) mayWait(ctx context.Context) bool {
	l := c.layers
	return l.Retry != nil || l.Breaker != nil || c.p.hooks.fallback != nil || ctx.Done() != nil ||
		l.Limiter != nil && l.LimiterWait != 0 || l.Bulkhead != nil && l.BulkheadWait != 0
}

// hear has the call ended when its caller's context ends.
func (c *call[T]) hear(ctx context.Context, m *more[T]) {
	if ctx.Done() == nil {
		return
	}
	unlink := context.AfterFunc(ctx, c.callerEnded)
	m.mu.Lock()
	live := c.future.is(pending)
	if live {
		m.unlink = unlink
	}
	m.mu.Unlock()
	if !live {
		unlink()
	}
}

// ctx is the caller's context.
func (c *call[T]) ctx() context.Context {
	if m := c.more.Load(); m != nil {
		return m.ctx
	}
	return c.first.Parent()
}

func (c *call[T]) scope() *scope.Scope { return c.p.stack.Scope }

// slow returns more; it makes it if the call has none.
func (c *call[T]) slow() *more[T] {
	if m := c.more.Load(); m != nil {
		return m
	}
	c.more.CompareAndSwap(nil, &more[T]{ctx: c.first.Parent(), armed: &c.first, t: try{layers: c.layers, values: true}})
	return c.more.Load()
}

// mine reports whether the goroutine that calls it may run the user's function:
// a stage's may run where its continuation does; others have a goroutine of
// their own, which under a manual clock the advancing one is not.
func (c *call[T]) mine(fn task[T]) bool { return fn.stage != nil || c.scope().System() }

// drive takes attempt a on from the given step, and then the attempts that
// follow at once; it returns when the call waits, runs elsewhere or has ended.
// Attempts that fail at once are so iterated and never recursed. own says that
// the user's function may run on this goroutine.
func (c *call[T]) drive(a *attempt[T], at step, fn task[T], own bool) {
	returned := false
	defer func() {
		if !returned && a.flags.Load()&(entered|givenUp|ended) == 0 { // it was on its way to the function
			value := recover()
			a.free()
			if a.Slot() != nil {
				a.Finish()
			}
			c.broke(a, value)
		}
	}()
	for a != nil {
		v, how, over, err := c.advance(a, at, fn, own)
		if !over {
			break
		}
		a, at = c.settle(a, v, err, how), atBreaker
	}
	returned = true
}

// goOn is drive for an attempt, if there is one, that follows on a goroutine of
// somebody else: who completed a stage, perhaps with a lock held that the function
// wants, or who tells of deadlines. Under a manual clock that one goes on with it.
func (c *call[T]) goOn(next *attempt[T]) {
	switch {
	case next == nil:
	case c.scope().System():
		go c.drive(next, atBreaker, c.more.Load().function(), true)
	default:
		fn := c.more.Load().function()
		c.drive(next, atBreaker, fn, c.mine(fn))
	}
}

// goRun is the goroutine of a function that was given to ExecuteAsync.
func (a *attempt[T]) goRun(run func(context.Context) (T, error)) {
	c := a.call
	v, how, over, err := c.run(a, run)
	if over {
		if next := c.settle(a, v, err, how); next != nil {
			c.drive(next, atBreaker, c.more.Load().function(), true)
		}
	}
}

// run calls the function and reports whether its result is the attempt's: it is
// not if the attempt was given up before.
func (c *call[T]) run(a *attempt[T], run func(context.Context) (T, error)) (v T, how ending, over bool, err error) {
	finished := false
	defer func() {
		if finished {
			return
		}
		if value := recover(); value != nil {
			err, how = &PanicError{value, debug.Stack()}, panicked
			over = a.returned(v, err, how)
			return
		}
		c.exited(a) // Goexit: this goroutine ends
	}()
	v, err = run(&a.Context)
	finished = true
	return v, returned, a.returned(v, err, returned), err
}

// exited ends the attempt of a function that called runtime.Goexit.
func (c *call[T]) exited(a *attempt[T]) {
	var zero T
	if a.returned(zero, ErrGoexit, panicked) {
		c.settle(a, zero, ErrGoexit, panicked)
	}
}

// stage calls the function that starts the work. over is false if the call goes
// on when the stage ends, or if the attempt was given up before.
func (c *call[T]) stage(a *attempt[T], place scope.Place, begun bool, start func(context.Context) *Future[T]) (v T, how ending, over bool, err error) {
	stage, how, ok, err := c.startStage(a, start)
	switch {
	case !ok:
		return v, how, a.returned(v, err, how), err
	case stage == nil:
		return v, returned, a.returned(v, ErrNilStage, returned), ErrNilStage
	case stage.ended():
		a.flags.Or(staged)
		how := stageEnding(stage.err)
		return stage.v, how, a.returned(stage.v, stage.err, how), stage.err
	}
	if !begun {
		if err := c.mustBegin(a, place, stage); err != nil {
			return v, panicked, a.returned(v, err, panicked), err
		}
	}
	a.stage.Store(stage)
	// Whoever gives the attempt up says so and then looks for the stage; we have
	// set the stage and now look whether it was given up. One of us cancels it. Its
	// end must be heard all the same: it may be ending by itself.
	given := a.flags.Load()&givenUp != 0
	c.follow(a, stage)
	if given {
		a.cancelStage()
	}
	return v, returned, false, nil
}

// startStage calls the user's function; ok is false if it did not return.
func (c *call[T]) startStage(a *attempt[T], start func(context.Context) *Future[T]) (stage *Future[T], how ending, ok bool, err error) {
	defer func() {
		if ok {
			return
		}
		if value := recover(); value != nil {
			err, how = &PanicError{value, debug.Stack()}, panicked
			return
		}
		c.exited(a)
	}()
	stage = start(&a.Context)
	return stage, returned, true, nil
}

// follow has a told when its stage ends.
func (c *call[T]) follow(a *attempt[T], stage *Future[T]) {
	if stage.of == ofPromise && stage.peer.CompareAndSwap(nil, a) {
		if stage.ended() {
			a.stageEnded()
		}
		return
	}
	stage.follow(&follower[T]{attempt: a})
}

// mustBegin is beginStage for a stage that is running. A clock that panics there
// ends the attempt.
func (c *call[T]) mustBegin(a *attempt[T], place scope.Place, stage *Future[T]) (err error) {
	begun := false
	defer func() {
		if begun {
			return
		}
		stage.Cancel()
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
			return
		}
		c.exited(a) // Goexit: this goroutine ends
	}()
	c.beginStage(a, place)
	begun = true
	return nil
}

// beginStage starts the deadline of a stage: the timeout, or what is left of
// MaxDuration.
func (c *call[T]) beginStage(a *attempt[T], place scope.Place) {
	var until int64
	if m := c.more.Load(); m != nil {
		until = m.t.until()
	}
	limit := a.Plan().Limit
	if limit <= 0 && until == 0 {
		return
	}
	now, due := c.scope().Now(), int64(scope.Never)
	if limit > 0 {
		due = scope.After(now, limit)
	}
	if until != 0 && until < due {
		due = until
		a.flags.Or(cut)
	}
	place.Begin(&a.Context, now, due)
}
