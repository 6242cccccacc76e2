package callctx

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// Context is the context of one attempt. Make it with [New], or embed one and
// call Init; then arm it (see Start and Armed) if it has a deadline. Its
// methods of context.Context are safe for concurrent use, for ever.
type Context struct {
	parent context.Context
	plan   *Plan
	slot   *atomic.Pointer[Context] // nil: it has no slot
	watch  atomic.Pointer[watch]    // nil: nobody has looked yet
	stamp  atomic.Int64             // the wheel's: deadline once fixed
	start  int64                    // the wheel's: when it was armed
	info   atomic.Pointer[Info]     // nil: the first attempt, without an owner
}

// 64 bytes are one cache line and a size class of the allocator.
const _ = uint(64 - unsafe.Sizeof(Context{}))

var _ context.Context = (*Context)(nil)

// Firing is what the wheel's side puts into a slot while it settles a context.
var Firing = new(Context)

// New returns a context without a deadline.
func New(parent context.Context, plan *Plan) *Context {
	return &Context{parent: parent, plan: plan}
}

// Init makes c, a zero Context, what New returns.
func (c *Context) Init(parent context.Context, plan *Plan) {
	c.parent, c.plan = parent, plan
}

// Parent is the caller's context.
func (c *Context) Parent() context.Context { return c.parent }

// Plan is the plan that c was made with.
func (c *Context) Plan() *Plan { return c.plan }

// Own gives c an owner. Call it before c is armed and before anybody sees it.
func (c *Context) Own(in *Info) { c.info.Store(in) }

// Start sets when c was armed, in the wheel's terms. Call it before the context
// is put into its slot.
func (c *Context) Start(start int64) { c.start = start }

// Armed tells c its slot. Call it before anybody but the wheel sees c.
func (c *Context) Armed(slot *atomic.Pointer[Context]) { c.slot = slot }

// Slot is where c lies, or lay; nil if it has no deadline.
func (c *Context) Slot() *atomic.Pointer[Context] { return c.slot }

// WheelStart, WheelLimit and WheelStamp are for the wheel.

// WheelStart is what Start was given.
func (c *Context) WheelStart() int64 { return c.start }

// WheelLimit is the plan's limit.
func (c *Context) WheelLimit() int64 { return int64(c.plan.Limit) }

// WheelStamp is where the wheel keeps the deadline once it is fixed.
func (c *Context) WheelStamp() *atomic.Int64 { return &c.stamp }

// live reports whether c is still in its slot.
func (c *Context) live() bool {
	p := c.slot.Load()
	for p == Firing { // it is being settled: a matter of instructions
		runtime.Gosched()
		p = c.slot.Load()
	}
	return p == c
}

// end returns how c ended, or nil while it is live.
//
// Once there is a watch, it alone is asked, so that answers never change. While
// there is none: an expiry installs one before it frees the slot, so "not in
// the slot and still no watch" means that the call has finished.
func (c *Context) end() *End {
	if w := c.watch.Load(); w != nil {
		return w.end.Load()
	}
	if c.slot == nil || c.live() {
		return nil
	}
	if w := c.watch.Load(); w != nil {
		return w.end.Load()
	}
	return Canceled
}

// Err is nil while the attempt runs; [context.DeadlineExceeded] after our
// deadline; the caller's own error after the caller's context ended; and
// [context.Canceled] after the attempt has returned or was cancelled.
func (c *Context) Err() error {
	e := c.end()
	if e == nil {
		// Nobody need be registered with the parent as long as all who care ask.
		if c.parent.Err() == nil {
			return nil
		}
		// From here on the answer is fixed.
		if !c.watch.CompareAndSwap(nil, parentWatch) {
			c.watch.Load().settle(ParentEnded)
		}
		e = c.end()
	}
	if e.parent {
		return c.parent.Err()
	}
	return e.err
}

// Done returns a channel that is closed when the context ends. The first call
// makes the channel and registers with the caller's context.
func (c *Context) Done() <-chan struct{} { return c.look().ch }

// Deadline is the earlier of the caller's deadline and the attempt's own. The
// first call may read the clock; later ones agree with it, and the timeout never
// fires before it.
func (c *Context) Deadline() (time.Time, bool) {
	parent, ok := c.parent.Deadline()
	if c.plan.Deadline == nil || c.slot == nil {
		return parent, ok
	}
	own, has := c.plan.Deadline(c)
	if !has || ok && parent.Before(own) {
		return parent, ok
	}
	return own, true
}

// Value answers for the parent, and, once the context has ended, for its cause.
func (c *Context) Value(key any) any {
	switch key {
	case attemptKey:
		if c.plan.Retrying {
			return c
		}
	case idempotencyKey:
		return c.keyValue()
	default:
		if e := c.end(); e != nil && e.tomb != nil {
			if v := e.tomb.Value(key); v != nil {
				return v
			}
		}
	}
	return c.parent.Value(key)
}

// String names the context as the standard library names its own.
func (c *Context) String() string { return "resilience4cata.Attempt" }

// Finish ends the context because the attempt has returned, and reports who
// decided. It must be called for every context, by whoever runs the attempt.
func (c *Context) Finish() Verdict {
	if c.slot == nil {
		if c.watch.CompareAndSwap(nil, finishedWatch) {
			return InTime
		}
		w := c.watch.Load()
		if w.settle(Canceled) || w.end.Load().parent {
			return InTime
		}
		return w.end.Load().verdict()
	}
	if c.slot.CompareAndSwap(c, nil) {
		if w := c.watch.Load(); w != nil {
			w.settle(Canceled)
		}
		return InTime
	}
	c.live() // let the other side settle it
	return c.watch.Load().end.Load().verdict()
}

// Cancel ends the context from our side, with the given end, unless it has
// ended already. It reports whether this call ended it.
func (c *Context) Cancel(end *End) bool {
	if c.slot == nil {
		return c.look().settle(end)
	}
	return c.CancelIn(c.slot, end)
}

// CancelIn is Cancel for those who found c in the given slot and may not read
// its own idea of it, as the wheel's visitors do.
func (c *Context) CancelIn(slot *atomic.Pointer[Context], end *End) bool {
	return slot.CompareAndSwap(c, Firing) && c.settleIn(slot, settled(end)) == end
}

// settleIn ends c, whose slot the caller has marked, and frees the slot. Where
// nobody has looked, shared becomes the context's watch. It returns how c ended:
// that the caller's context ended may have been seen before.
//
// Those who must be told are told after the slot is free: they are foreign code,
// and who looks at a marked slot waits for it.
func (c *Context) settleIn(slot *atomic.Pointer[Context], shared *watch) *End {
	end := shared.end.Load()
	if c.watch.CompareAndSwap(nil, shared) {
		slot.Store(nil)
		return end
	}
	w := c.watch.Load()
	told, _ := w.close(end)
	slot.Store(nil)
	told.tell()
	return w.end.Load()
}

// WheelExpire is called when the deadline has passed, on a goroutine that
// belongs to nobody, with the slot in which c was found. It returns what must
// wait until all that were due with c have expired; nil: nothing.
func (c *Context) WheelExpire(slot *atomic.Pointer[Context]) (after func()) {
	// The caller's context is foreign code: ask it before the slot is marked.
	// It may end between the question and the decision; then both happened at
	// once, and ours won.
	shared := c.plan.expired
	if c.parentHasEnded() {
		shared = parentWatch
	}
	if !slot.CompareAndSwap(c, Firing) {
		return nil
	}
	end := c.settleIn(slot, shared)
	if in := c.info.Load(); in != nil && in.Owner != nil {
		return in.Owner.Ended(c, end.verdict())
	}
	return nil
}

// parentHasEnded asks the caller's context. One that panics has not ended.
func (c *Context) parentHasEnded() (ended bool) {
	defer func() {
		if recover() != nil {
			ended = false
		}
	}()
	return c.parent.Err() != nil
}
