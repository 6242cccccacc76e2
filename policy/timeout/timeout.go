package timeout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/setting"
)

// Policy is one timeout. It is safe for concurrent use. Make it with [New]; the
// zero value is not usable.
type Policy struct {
	id       string
	scope    *scope.Scope
	retrying bool
	mu       sync.Mutex // for changes
	config   atomic.Pointer[Config]
	limit    atomic.Pointer[Limit] // for Config.Value; nil: Config.Func is asked
	asked    atomic.Pointer[Limit] // for what Config.Func said last
	timedOut atomic.Uint64
}

// New returns a timeout that stands alone, on the clock's own timers. It
// returns an error that joins all mistakes in its arguments.
func New(id string, c Config, clk clock.Clock) (*Policy, error) {
	if err := setting.Clock(kind, id, clk); err != nil {
		return nil, errors.Join(err, check(id, c))
	}
	return NewIn(scope.New(clk, nil), id, c, false)
}

// NewIn returns a timeout of a registry's pipeline; retrying says that its
// contexts are attempts of a retry. It is for packages registry and pipeline.
func NewIn(s *scope.Scope, id string, c Config, retrying bool) (*Policy, error) {
	if err := check(id, c); err != nil {
		return nil, err
	}
	p := &Policy{id: id, scope: s, retrying: retrying}
	p.use(c)
	return p, nil
}

// check returns all mistakes in an id and its settings.
func check(id string, c Config) error {
	return setting.Named(errors.Join(setting.ID(kind, id, "id"), c.Validate()), id)
}

// Reconfigure changes the settings, or returns every mistake in c and changes
// nothing. Attempts in flight keep their limit.
func (p *Policy) Reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return setting.Named(err, p.id)
	}
	p.use(c)
	return nil
}

func (p *Policy) use(c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// In this order: who finds no limit finds a function in the config, or looks
	// again.
	if c.Func == nil {
		p.limit.Store(p.newLimit(c.Value))
		p.config.Store(&c)
	} else {
		p.config.Store(&c)
		p.limit.Store(nil)
	}
}

// ID is the instance's id: the pipeline's.
func (p *Policy) ID() string { return p.id }

// Config is the current settings.
func (p *Policy) Config() Config { return *p.config.Load() }

// Snapshot is the state at this moment.
func (p *Policy) Snapshot() Snapshot {
	return Snapshot{Instance: p.id, Config: p.Config(), TimedOut: p.timedOut.Load()}
}

// Limit is one value of a timeout, ready to be armed. It is immutable and for
// package pipeline.
type Limit struct {
	D    time.Duration
	Plan *callctx.Plan

	scope *scope.Scope
	level *scope.Level
}

func (p *Policy) newLimit(d time.Duration) *Limit {
	return &Limit{
		D:     d,
		Plan:  p.scope.NewPlan(d, &Error{Instance: p.id, Limit: d}, p.retrying),
		scope: p.scope,
		level: p.scope.Level(d),
	}
}

// Arm starts the limit for c, which was made with the Limit's plan.
func (l *Limit) Arm(c *callctx.Context) { l.scope.Arm(c, l.level) }

// Reserve gives c its place without starting the limit; see Begin.
func (l *Limit) Reserve(c *callctx.Context) scope.Place { return l.scope.Reserve(c, l.level) }

// For returns the limit of an attempt that begins now, or nil for none. It asks
// Config.Func, if there is one, with the caller's context. It is written so as to
// be inlined.
func (p *Policy) For(ctx context.Context) (l *Limit) {
	if l = p.limit.Load(); l == nil {
		l = p.ask(ctx)
	}
	return l
}

func (p *Policy) ask(ctx context.Context) *Limit {
	c := p.config.Load()
	for c.Func == nil { // the settings have changed since For looked
		if l := p.limit.Load(); l != nil {
			return l
		}
		c = p.config.Load()
	}
	d := c.Value
	p.scope.Guard(ctx, kind, p.id, func() { d = c.Func(ctx) })
	if d <= 0 {
		return nil
	}
	if l := p.asked.Load(); l != nil && l.D == d {
		return l
	}
	l := p.newLimit(d)
	p.asked.Store(l)
	return l
}

// Exceeded counts an attempt that passed its limit, publishes the event and
// returns the caller's error. entered says whether the function was entered,
// workDone whether it has returned, and cause is the error that it returned.
// ctx is the caller's. It is for package pipeline.
func (p *Policy) Exceeded(ctx context.Context, limit time.Duration, entered, workDone bool, cause error) *Error {
	p.timedOut.Add(1)
	if p.scope.Listening() {
		p.scope.Publish(ctx, Exceeded{Meta: p.scope.Meta(kind, p.id), Limit: limit, WorkDone: workDone})
	}
	return &Error{Instance: p.id, Limit: limit, Cause: cause, waiting: !entered}
}

// Expired is Exceeded for an attempt that is not awaited any more. It leaves the
// event to tell, which the caller calls after it has answered; nil: nobody
// listens. It is for package pipeline.
func (p *Policy) Expired(ctx context.Context, limit time.Duration, entered bool) (err *Error, tell func()) {
	p.timedOut.Add(1)
	if p.scope.Listening() {
		e := Exceeded{Meta: p.scope.Meta(kind, p.id), Limit: limit}
		tell = func() { p.scope.Publish(ctx, e) }
	}
	return &Error{Instance: p.id, Limit: limit, waiting: !entered}, tell
}

// Do calls fn on this goroutine with a context that ends at the limit. It
// returns fn's error if fn returned in time; an [Error] with fn's error as its
// cause if it did not; and ctx's error, without calling fn, if ctx has ended. A
// panic of fn and runtime.Goexit pass through. Do panics if ctx or fn is nil.
func (p *Policy) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	switch {
	case p == nil || p.scope == nil:
		panic("timeout: Do on a nil or zero Policy: make it with New")
	case ctx == nil:
		panic("timeout: Do: ctx is nil")
	case fn == nil:
		panic("timeout: Do: fn is nil")
	}
	if ctx.Err() != nil {
		return scope.Ended(ctx)
	}
	l := p.For(ctx)
	if l == nil {
		return fn(ctx)
	}
	c := callctx.New(ctx, l.Plan)
	returned := false
	defer func() {
		if !returned { // a panic or Goexit goes on; nothing may stay armed
			c.Finish()
		}
	}()
	l.Arm(c)
	err := fn(c) //nolint:contextcheck // c is the context, below ctx
	returned = true
	if c.Finish() == callctx.Expired {
		return p.Exceeded(ctx, l.D, true, true, err)
	}
	return err
}
