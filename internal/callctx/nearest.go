package callctx

import (
	"context"
	"time"
)

// nearestKey finds the innermost Context that a context is derived from. Package
// clock looks with the same key, which it may not import: an unnamed interface is
// the same type wherever it is written.
var nearestKey any = (*interface{ EndDerived() bool })(nil)

func nearest(ctx context.Context) *Context {
	c, _ := ctx.Value(nearestKey).(*Context)
	return c
}

// EndDerived reports whether c has ended. Then it tells all that were derived
// from c, on this goroutine, and before that those above: the news that a
// caller's context has ended is on its way on another one. What was derived
// through foreign code, such as a value, hears of it there all the same.
func (c *Context) EndDerived() bool {
	if up := nearest(c.parent); up != nil {
		up.EndDerived()
	}
	if c.ended() == nil {
		return false
	}
	c.Tell()
	return true
}

// tie is how long ago a deadline above may have passed for the two to have been
// due together: a few of the longest ticks.
const tie = 200 * time.Millisecond

// above expires the Context that c is below, if there is one whose deadline has
// passed as well, and lets the news come down to c. It returns what must wait, as
// WheelExpire does.
//
// The caller's context is foreign code: one that panics has nothing above.
func (c *Context) above() (after func()) {
	defer func() { _ = recover() }()
	up := nearest(c.parent)
	if up == nil || up.slot == nil || up.plan.Overdue == nil {
		return nil
	}
	over := up.plan.Overdue(up)
	if over < 0 {
		return nil
	}
	after = up.WheelExpire(up.slot)
	if over < tie && up.EndDerived() && c.parent.Err() == nil {
		up.plan.Hear(c.parent) // what is between them may be foreign
	}
	return after
}

// both is a function that calls f and then, if there is one, g.
func both(f, g func()) func() {
	return func() {
		f()
		if g != nil {
			g()
		}
	}
}
