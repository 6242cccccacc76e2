package callctx

import (
	"context"
	"math"
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
	stamp  atomic.Int64             // the wheel's: deadline once fixed; see finished
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

// finished is the stamp of a context without a slot whose attempt has returned.
// To the wheel it would be a deadline that never comes and has been dealt with.
const finished = -math.MaxInt64

// live reports whether c is still in its slot, or, without one, has not finished.
func (c *Context) live() bool {
	if c.slot == nil {
		return c.stamp.Load() != finished
	}
	p := c.slot.Load()
	for p == Firing { // it is being settled: a matter of instructions
		runtime.Gosched()
		p = c.slot.Load()
	}
	return p == c
}

// end returns how c ended, or nil while it is live. It does not ask the parent.
//
// Answers never change: they come from the watch, which is set once, whose end
// is set once. Who finds c out of its slot without an end knows that the attempt
// has returned, for an expiry leaves an end before it frees the slot; and fixes
// that, before anybody else can leave another answer.
func (c *Context) end() *End {
	w := c.watch.Load()
	if w == nil {
		if c.live() {
			return nil
		}
		if c.watch.CompareAndSwap(nil, finishedWatch) {
			return finishedEnd
		}
		w = c.watch.Load()
	}
	if e := w.end.Load(); e != nil || c.live() {
		return e
	}
	w.end.CompareAndSwap(nil, finishedEnd)
	return w.end.Load()
}

// ended is end for those who tell others: it asks the parent, too, and after it
// has returned an end, the done channel is closed.
func (c *Context) ended() *End {
	e := c.end()
	if e == nil {
		// Nobody need be registered with the parent as long as all who care ask.
		if c.parent.Err() == nil {
			return nil
		}
		if !c.watch.CompareAndSwap(nil, parentWatch) {
			c.watch.Load().end.CompareAndSwap(nil, ParentEnded)
		}
		e = c.end()
	}
	c.watch.Load().shut()
	return e
}

// Err is nil while the attempt runs; [context.DeadlineExceeded] after our
// deadline; the caller's own error after the caller's context ended; and
// [context.Canceled] after the attempt has returned or was cancelled. Once it is
// not nil, the channel of Done is closed.
func (c *Context) Err() error {
	e := c.ended()
	switch {
	case e == nil:
		return nil
	case !e.parent:
		return e.err
	}
	if err := c.parent.Err(); err != nil {
		return err
	}
	return context.Canceled // a foreign context that has changed its mind
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
	case nearestKey:
		return c
	case attemptKey:
		if c.plan.Retrying {
			return c
		}
	case idempotencyKey:
		return c.keyValue()
	case causeKey:
		if e := c.ended(); e != nil && e.tomb != nil {
			return e.tomb.Value(key)
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
		c.stamp.Store(finished) // first this, then the look: who makes a watch does the reverse
		w := c.watch.Load()
		if w == nil || w.settle(finishedEnd) || w.end.Load().parent {
			return InTime
		}
		return w.end.Load().verdict()
	}
	// Who was told the deadline may have kept to it by himself, and is back before
	// the wheel has come round.
	if c.stamp.Load() != 0 && c.plan.Passed != nil && c.plan.Passed(c) {
		if after := c.WheelExpire(c.slot); after != nil {
			after()
		}
	}
	if c.slot.CompareAndSwap(c, nil) {
		if w := c.watch.Load(); w != nil && !w.settle(finishedEnd) {
			w.hush()
		}
		return InTime
	}
	e := c.end()
	w := c.watch.Load()
	w.tell() // unless whoever ended it has done so
	w.hush()
	return e.verdict()
}

// Cancel ends the context from our side, with the given end, unless it has
// ended already. It reports whether this call ended it.
func (c *Context) Cancel(end *End) bool {
	if c.slot == nil {
		w := c.look()
		return c.end() == nil && w.settle(end) // the attempt may have returned and found no watch
	}
	return c.slot.CompareAndSwap(c, Firing) && c.settleIn(c.slot, settled(end)) == end
}

// EndIn is Cancel for those who found c in the given slot and may not read its own
// idea of it, as the wheel's visitors do. It decides, and calls nobody: the timer
// of c is stopped by [Context.Hush], and who waits hears by [Context.Tell].
func (c *Context) EndIn(slot *atomic.Pointer[Context], end *End) bool {
	if !slot.CompareAndSwap(c, Firing) {
		return false
	}
	return c.decideIn(slot, settled(end)).end.Load() == end
}

// Hush stops the private timer of a context that has ended. That is the user's
// code where the clock is.
func (c *Context) Hush() {
	if w := c.watch.Load(); w != nil && w.end.Load() != nil {
		w.hush()
	}
}

// settleIn ends c, whose slot the caller has marked, and tells of it. It returns
// how c ended: that the caller's context ended may have been seen before.
//
// Those who must be told are told after the slot is free: they are foreign code,
// and who looks at a marked slot waits for it.
func (c *Context) settleIn(slot *atomic.Pointer[Context], shared *watch) *End {
	w := c.decideIn(slot, shared)
	w.tell()
	return w.end.Load()
}

// decideIn ends c, whose slot the caller has marked, frees the slot, and returns
// c's watch: where nobody has looked, shared becomes that.
func (c *Context) decideIn(slot *atomic.Pointer[Context], shared *watch) *watch {
	if c.watch.CompareAndSwap(nil, shared) {
		slot.Store(nil)
		return shared
	}
	w := c.watch.Load()
	w.end.CompareAndSwap(nil, shared.end.Load())
	slot.Store(nil)
	return w
}

// WheelExpire is called when the deadline has passed, on a goroutine that
// belongs to nobody, with the slot in which c was found. It returns what must
// wait until all that were due with c have expired; nil: nothing.
func (c *Context) WheelExpire(slot *atomic.Pointer[Context]) (after func()) {
	in := c.info.Load()
	shared := c.plan.expired
	if in != nil {
		if o, ok := in.Owner.(Replanner); ok && o.Replanned() != nil {
			shared = o.Replanned().expired
		}
	}
	var up func()
	asked := false
	defer func() {
		if asked {
			return
		}
		// The caller's context has ended the goroutine. Nobody else will come for c:
		// it expires all the same.
		after := c.expireAs(slot, in, shared)
		if up != nil {
			after = both(up, after)
		}
		if after != nil {
			go after()
		}
	}()
	// The caller's context is foreign code: ask it before the slot is marked.
	// It may end between the question and the decision; then both happened at
	// once, and ours won.
	up = c.above() // its deadline came first, whichever the wheel finds first
	if c.parentHasEnded() {
		shared = parentWatch
	}
	asked = true
	after = c.expireAs(slot, in, shared)
	if up != nil {
		after = both(up, after)
	}
	return after
}

// expireAs decides the expiry, once.
func (c *Context) expireAs(slot *atomic.Pointer[Context], in *Info, shared *watch) (after func()) {
	if !slot.CompareAndSwap(c, Firing) {
		return nil
	}
	end := c.settleIn(slot, shared)
	if in != nil && in.Owner != nil {
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
