package callctx

import (
	"context"
	"sync"
	"sync/atomic"
)

// watch is made when somebody wants to hear of a context's end: it has the
// channel, the link to the caller's context, and those who asked to be called.
type watch struct {
	ch  chan struct{}
	end atomic.Pointer[End] // nil while live; set once

	mu sync.Mutex
	told
}

// told is what happens after an end.
type told struct {
	unlink func() bool // takes us off the caller's context
	stop   func()      // stops a private timer
	first  func()      // most contexts have one child at most
	more   map[*byte]func()
}

func (t told) tell() {
	if t.stop != nil {
		t.stop()
	}
	if t.unlink != nil {
		t.unlink()
	}
	if t.first != nil {
		t.first()
	}
	for _, f := range t.more {
		f()
	}
}

var closed = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// settled returns a watch that has ended from the start.
func settled(end *End) *watch {
	w := &watch{ch: closed}
	w.end.Store(end)
	return w
}

// look returns the context's watch; it makes one if there is none.
func (c *Context) look() *watch {
	if w := c.watch.Load(); w != nil {
		return w
	}
	w := &watch{}
	// Before the channel is made: the deadline must be kept by somebody who may
	// close it.
	if c.slot != nil && c.plan.Watch != nil {
		w.stop = c.plan.Watch(c)
	}
	w.ch = make(chan struct{})
	// The lock keeps a settle out until the link is there to be undone. Nobody
	// else can hold it yet, and context.AfterFunc never calls back at once.
	w.mu.Lock()
	if !c.watch.CompareAndSwap(nil, w) {
		w.mu.Unlock()
		if w.stop != nil {
			w.stop()
		}
		return c.watch.Load()
	}
	if c.parent.Done() != nil {
		w.unlink = context.AfterFunc(c.parent, func() { w.settle(ParentEnded) })
	}
	w.mu.Unlock()
	// The call may have finished after we saw that nobody had looked and before
	// it could see our watch. An expiry can't have passed us: it settles the
	// watch that it finds before it frees the slot.
	if c.slot != nil && !c.live() && w.end.Load() == nil {
		w.settle(Canceled)
	}
	return w
}

// Hold gives a context whose deadline is kept by a private timer its watch. Call
// it before c has its slot. The returned function says how to stop the timer: it
// stops it at once when the context has ended meanwhile.
func (c *Context) Hold() (timer func(stop func())) {
	w := c.look()
	return func(stop func()) {
		w.mu.Lock()
		over := w.end.Load() != nil
		if !over {
			w.stop = stop
		}
		w.mu.Unlock()
		if over {
			stop()
		}
	}
}

// close ends w and reports whether this call did it; then the caller must tell
// those who are returned.
func (w *watch) close(end *End) (told, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.end.CompareAndSwap(nil, end) {
		return told{}, false
	}
	t := w.told
	w.told = told{}
	close(w.ch)
	return t, true
}

// settle ends w, tells everybody, and reports whether this call did it.
func (w *watch) settle(end *End) bool {
	t, won := w.close(end)
	t.tell()
	return won
}

// Observe makes the done channel, and so moves the deadline to where it may be
// closed, before somebody waits for something else that the deadline ends.
func (c *Context) Observe() { c.look() }

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
	if w.end.Load() != nil {
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
