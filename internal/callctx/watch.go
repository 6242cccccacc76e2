package callctx

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"
)

// watch is made when somebody wants to hear of a context's end: it has the
// channel, the link to the caller's context, and those who asked to be called.
//
// Its end is decided by a compare-and-swap, without the lock. Telling comes
// after that, at most once, and may be another goroutine's: the one that ended
// it, or the call when it returns.
type watch struct {
	ch  chan struct{}
	end atomic.Pointer[End] // nil while live; set once

	aside atomic.Pointer[Aside] // nil for most; written under mu

	progress atomic.Uint32 // how far the telling is; it only goes up

	mu sync.Mutex
	told
}

// A watch is at most 64 bytes, a size class of the allocator.
const _ = uint(64 - unsafe.Sizeof(watch{}))

// Aside is what a context has besides if its deadline is not on the wheel, or its
// done channel not everybody's.
type Aside struct {
	// Inside reports whether the caller is in the synctest bubble in which the
	// channel was made; nil: it was made in none, or in the one that all are in.
	// What was made in a bubble must not be touched from outside, which the runtime
	// answers by ending the process. Those outside decide and leave the telling to
	// the bubble's own.
	Inside func() bool

	// Stop stops a private timer, and may be called again and again; or nil.
	Stop func()
}

// touchable reports whether the caller may touch what the watch has made.
func (w *watch) touchable() bool {
	a := w.aside.Load()
	return a == nil || a.Inside == nil || a.Inside()
}

// stop stops the private timer, if there is one.
func (w *watch) stop() {
	if a := w.aside.Load(); a != nil && a.Stop != nil {
		a.Stop()
	}
}

// How far the telling of an end is. Written under mu.
const (
	toldNobody  uint32 = iota
	toldReaders        // the channel is closed
	toldAll            // and all who asked to be called were, or are being
)

// told is what happens after an end.
type told struct {
	unlink func() bool // takes us off the caller's context
	first  func()      // most contexts have one child at most
	more   map[*byte]func()
}

// call calls them all, and w's stop before them. The caller's context, which is
// foreign code, comes last, so that it holds up nobody; but it comes.
func (t *told) call(w *watch) {
	if t.unlink != nil {
		defer t.unlink()
	}
	w.stop()
	if t.first != nil {
		t.first()
	}
	for _, f := range t.more {
		f()
	}
}

// settled returns a watch that has ended from the start.
func settled(end *End) *watch {
	w := &watch{ch: closed}
	w.end.Store(end)
	w.progress.Store(toldAll)
	return w
}

var closed = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// settle ends w, unless it has ended, sees to it that all are told, and reports
// whether this call ended it.
func (w *watch) settle(end *End) bool {
	won := w.end.CompareAndSwap(nil, end)
	w.tell()
	return won
}

// tell closes the channel of a watch that has ended and calls those who asked,
// unless that was done.
func (w *watch) tell() {
	if w.isOver() || !w.touchable() {
		return
	}
	w.mu.Lock()
	if w.isOver() {
		w.mu.Unlock()
		return
	}
	w.close(toldAll)
	t := w.told
	w.told = told{}
	w.mu.Unlock()
	t.call(w)
}

// hush stops the private timer of a watch that has ended, also if it was another
// goroutine that told of the end, and may be at it still.
func (w *watch) hush() {
	if w.touchable() {
		w.stop()
	}
}

// shut closes the channel of a watch that has ended, and leaves the rest to
// those who tell: it is for readers, who should not have to run foreign code.
func (w *watch) shut() {
	if w.progress.Load() != toldNobody || !w.touchable() {
		return
	}
	w.mu.Lock()
	if w.progress.Load() == toldNobody {
		w.close(toldReaders)
	}
	w.mu.Unlock()
}

// close closes the channel, unless that was done, and notes how far it is then.
func (w *watch) close(progress uint32) {
	if w.progress.Load() == toldNobody {
		close(w.ch)
	}
	w.progress.Store(progress)
}

func (w *watch) isOver() bool { return w.progress.Load() == toldAll }

// look returns the context's watch; it makes one if there is none.
func (c *Context) look() *watch {
	if w := c.watch.Load(); w != nil {
		return w
	}
	if c.ended() != nil {
		return c.watch.Load()
	}
	var a *Aside
	// Before the channel is made: the deadline must be kept by somebody who may
	// close it.
	if c.plan.Watch != nil {
		a = c.plan.Watch(c)
	}
	w, made := c.install(a)
	if !made && a != nil && a.Stop != nil {
		a.Stop()
	}
	return w
}

// install makes the context's watch, if there is none. It calls the caller's
// context, which is foreign code, with no lock held.
func (c *Context) install(a *Aside) (_ *watch, made bool) {
	w := &watch{ch: make(chan struct{})} // no result variable: that would be captured by reference, an allocation
	if a != nil {
		w.aside.Store(a)
	}
	if !c.watch.CompareAndSwap(nil, w) {
		return c.watch.Load(), false
	}
	// The call may have finished before it could see our watch. An expiry can't
	// have passed us: it settles the watch that it finds before it frees the
	// slot. And whoever ends w from now on tells it.
	if c.end() != nil {
		w.tell()
		return w, true
	}
	if c.parent.Done() != nil {
		w.link(context.AfterFunc(c.parent, func() { w.settle(ParentEnded) }))
	}
	return w, true
}

// link says how to take w off the caller's context.
func (w *watch) link(unlink func() bool) {
	w.mu.Lock()
	late := w.isOver()
	if !late {
		w.unlink = unlink
	}
	w.mu.Unlock()
	if late {
		unlink()
	}
}

// Hold gives a context whose deadline is kept by a private timer its watch, if
// it has none, and has a.Stop, which is not nil, called once the context has ended:
// at once, if it has already. Nobody else may use a.
func (c *Context) Hold(a *Aside) {
	w := c.watch.Load()
	if w == nil && c.ended() == nil {
		if _, made := c.install(a); made {
			return
		}
	}
	w = c.watch.Load()
	w.mu.Lock()
	late := w.isOver()
	if !late {
		a.Inside = nil // the channel is where it was made
		if before := w.aside.Load(); before != nil {
			a.Inside = before.Inside
		}
		w.aside.Store(a)
	}
	w.mu.Unlock()
	if late {
		a.Stop()
	}
}

// Observe makes the done channel, and so moves the deadline to where it may be
// closed, before somebody waits for something else that the deadline ends.
func (c *Context) Observe() { c.look() }

// Tell sees to it that all hear of the end of a context that has ended, and
// reports whether there is nobody left to tell. It is for timers of a synctest
// bubble: whoever ended the context outside could not.
func (c *Context) Tell() (over bool) {
	w := c.watch.Load()
	if w == nil {
		return true
	}
	if w.end.Load() == nil {
		return false
	}
	w.tell()
	return true
}

// AfterFunc arranges for f to be called after the context has ended, and
// returns how to take that back. The standard library looks for this method
// when a context is derived from one that is not its own; without it, each
// derived context would cost a goroutine. It never calls f itself when the
// context has ended already, since the standard library holds the child's lock
// meanwhile.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	w := c.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isOver() {
		go f()
		return func() bool { return false }
	}
	if w.first == nil {
		w.first = f
		stopped := false // guarded by w.mu: a second stop must not take back a later f
		return func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if stopped || w.first == nil {
				return false
			}
			stopped, w.first = true, nil
			return true
		}
	}
	if w.more == nil {
		w.more = map[*byte]func(){}
	}
	id := new(byte)
	w.more[id] = f
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, waiting := w.more[id]
		delete(w.more, id)
		return waiting
	}
}
