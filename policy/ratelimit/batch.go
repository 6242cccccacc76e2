package ratelimit

import (
	"errors"

	"resilience4cata.dev/go/internal/waitq"
)

// batch is the waiters that were settled under the lock and have to be woken
// once it was released. They are out of the policy's queue and belong to the
// batch alone. The zero value is empty.
type batch struct {
	inline waitq.Queue // blocked in Enter: waking is closing a channel
	async  waitq.Queue // from EnterAsync: waking runs code of others
	tells  []func()    // of async, in the same order
}

// add puts a settled waiter into the batch; tell is nil for one from Enter.
func (b *batch) add(w *waitq.Waiter, tell func()) {
	if tell == nil {
		b.inline.Push(w)
		return
	}
	b.async.Push(w)
	b.tells = append(b.tells, tell)
}

// wake wakes the waiters, in their order. If the goroutine is ours, nobody is
// kept waiting by code that a wake runs on it. Otherwise, and if there are more
// of them, each gets its own; but on another clock than the system's all run
// here: who moves a manual clock finds everything done that was due.
//
// Refusals of those from EnterAsync are told here, the others by Enter.
func (p *Policy) wake(b *batch, ours bool) {
	for w := b.inline.Pop(); w != nil; w = b.inline.Pop() {
		w.Wake()
	}
	for b.async.Len() > 0 {
		p.wakeAsync(b, ours)
	}
}

// wakeAsync wakes the first of those from EnterAsync, and all others if that ends
// the goroutine.
func (p *Policy) wakeAsync(b *batch, ours bool) {
	w, tell := b.async.Pop(), b.tells[0]
	b.tells = b.tells[1:]
	woken, finished := false, false
	defer func() {
		if finished {
			return
		}
		if !woken { // the listener did it
			go w.Wake()
		}
		p.wake(b, ours)
	}()
	if w.State() == waitq.Refused && errors.Is(w.Err(), ErrLimited) {
		tell()
	}
	woken = true
	if p.scope.System() && (!ours || b.async.Len() > 0) {
		go w.Wake()
	} else {
		w.Wake()
	}
	finished = true
}
