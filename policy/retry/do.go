package retry

import (
	"context"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
)

// Do calls fn until it succeeds, on the caller's goroutine, and returns nil, or
// what the package comment says of errors. fn gets a context of its own for each
// attempt, which [Attempt] and [IdempotencyKey] answer for and which ends with
// MaxDuration. If ctx has ended before the call, fn is not called. A panic of fn
// and runtime.Goexit pass through. A nil ctx or fn panics.
func (p *Policy) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	switch {
	case p == nil || p.instance == nil:
		panic("retry: Do on a nil or zero Policy: make it with New")
	case ctx == nil:
		panic("retry: Do: ctx is nil")
	case fn == nil:
		panic("retry: Do: fn is nil")
	}
	if p.scope.Closed() {
		return scope.ErrClosed
	}
	if ctx.Err() != nil {
		return scope.Ended(ctx)
	}
	r := p.Begin()
	var prev *callctx.Context
	for {
		c := callctx.New(ctx, p.plan)
		if prev != nil {
			c.Follow(prev, r.Attempt)
		}
		kind, err := p.attempt(&r, c, fn) //nolint:contextcheck // c is the context, below ctx
		if err == nil && kind == Returned {
			return nil
		}
		delay, stop := p.Next(ctx, &r, kind, err, ByRules)
		if stop == nil {
			stop = p.Pause(ctx, &r, delay)
		}
		if stop != nil {
			return p.Fail(ctx, &r, stop)
		}
		prev = c
	}
}

// attempt calls fn once, with c, which it ends on every way out.
func (p *Policy) attempt(r *Run, c *callctx.Context, fn func(ctx context.Context) error) (kind Kind, err error) {
	if r.deadline != 0 {
		p.scope.ArmUntil(c, nil, r.deadline)
	}
	r.Entered = true
	returned := false
	defer func() {
		if !returned { // a panic or Goexit, which goes on
			c.Finish()
		}
	}()
	err = fn(c)
	returned = true
	if c.Finish() == callctx.Expired {
		return OutOfTime, err
	}
	return Returned, err
}
