package callctx

import "context"

// nearestKey finds the innermost Context that a context is derived from. Package
// clock looks with the same key, which it may not import: an unnamed interface is
// the same type wherever it is written.
var nearestKey any = (*interface{ EndDerived() bool })(nil)

func nearest(ctx context.Context) *Context {
	c, _ := ctx.Value(nearestKey).(*Context)
	return c
}

// EndDerived reports whether c or a Context above it has ended. Then it tells
// all that were derived from c, on this goroutine: the news that the caller's
// context has ended is on its way on another one. What was derived through
// foreign code, such as a value, hears of it there all the same.
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

// above expires the Context that c is below, if there is one whose deadline has
// passed as well. It returns what must wait, as WheelExpire does.
//
// The caller's context is foreign code: one that panics has nothing above.
func (c *Context) above() (after func()) {
	defer func() { _ = recover() }()
	up := nearest(c.parent)
	if up == nil || up.slot == nil || up.plan.Deadline == nil || up.plan.Passed == nil {
		return nil
	}
	if _, ok := up.plan.Deadline(up); !ok || !up.plan.Passed(up) { // asking fixes it
		return nil
	}
	return up.WheelExpire(up.slot)
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
