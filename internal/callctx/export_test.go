package callctx

import "unsafe"

// CauseKey is what context.Cause asks a context for.
var CauseKey = causeKey

// Size is what a Context takes.
const Size = unsafe.Sizeof(Context{})

// HasEnd reports whether c has an end that all agree on.
func (c *Context) HasEnd() bool {
	w := c.watch.Load()
	return w != nil && w.end.Load() != nil
}
