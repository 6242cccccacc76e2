package bulkhead

import (
	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/waitq"
)

// batch is what has to be done for waiters that were granted, or refused by a
// close, once the lock was released: wakes and timers are code of others. The
// waiters are out of the policy's queue and belong to the batch alone until it
// wakes them. The zero value is empty.
type batch struct {
	inline waitq.Queue // blocked in Enter: waking is closing a channel
	fresh  waitq.Queue // from EnterAsync: each on a goroutine of its own
	timers []clock.Timer
}

func (b *batch) add(w *waitq.Waiter, async bool) {
	if async {
		b.fresh.Push(w)
	} else {
		b.inline.Push(w)
	}
}

// stop takes a waiter's timer, or nil.
func (b *batch) stop(t clock.Timer) {
	if t != nil {
		b.timers = append(b.timers, t)
	}
}

// done wakes the waiters and stops the timers.
func (b *batch) done() {
	for w := b.inline.Pop(); w != nil; w = b.inline.Pop() {
		w.Wake()
	}
	for w := b.fresh.Pop(); w != nil; w = b.fresh.Pop() {
		go w.Wake()
	}
	for _, t := range b.timers {
		t.Stop()
	}
}
