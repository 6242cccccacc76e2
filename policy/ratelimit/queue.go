package ratelimit

import (
	"context"
	"math"
	"time"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
)

// Everything here is what a call does under the lock. Whoever takes the lock
// seals the word of the bucket, so that the lock-free path comes here as well,
// and the state is p.tat. Those who wait have their permits reserved in it: with
// k of them the first is due when TAT-(k-1)·cost-fill has come, and the others
// follow at intervals of cost. So the place of one who leaves is given back by
// subtracting one cost, and nobody's due time has to be written down.
//
// Clocks are the user's code, and they are read and armed in here: deferred
// functions give the lock back, and wake those who have their permits, also where
// one panics.

// lock seals the bucket and returns it.
func (p *Policy) lock() *bucket {
	p.mu.Lock()
	b := p.current.Load()
	if tat := b.tat.Swap(sealed); tat != sealed {
		p.tat = tat
	}
	return b
}

// unlock gives the word back to the lock-free path, unless all calls have to
// come here.
func (p *Policy) unlock() {
	if p.queue.Len() == 0 && p.shift == 0 && !p.closed {
		p.current.Load().tat.Store(p.tat)
	}
	p.mu.Unlock()
}

// settle does something under the lock, and wakes those whose wait it has ended.
// ours is as for [Policy.wake].
func (p *Policy) settle(ours bool, do func(woken *batch)) {
	var woken batch
	p.lock()
	defer func() {
		p.unlock()
		p.wake(&woken, ours)
	}()
	do(&woken)
}

// due is when the next permit is, in the bucket's time: for the first in the
// queue, or for the next to come if it is empty.
func (p *Policy) due(b *bucket) int64 {
	return p.tat - b.fill + b.cost - int64(p.queue.Len())*b.cost
}

// locate returns the bucket and a reading of the clock in its time, which stays
// within the reach of the bucket: one that has been left behind is replaced by
// the same that begins now.
//
// A clock that went back mints nothing, as TAT never goes back with it: that is
// also why the wait until the old time is reached again has to be paid. A wait
// that shows a clock further back than tolerance is not paid: then the bucket's
// time goes on, by a shift of the clock, from the latest instant at which it is
// known to have been (when it began, or when it was empty), until the clock
// itself has caught up. All calls take the lock meanwhile.
//
// Differences of readings wrap around, so that any two of them will do.
func (p *Policy) locate(now int64) (b *bucket, at int64) {
	b = p.current.Load()
	p.shift = p.behind(b, now)
	t := now + p.shift - b.base
	if t > b.reach {
		b = p.rebase(b, t)
		return b, 0
	}
	if !p.plausible(b, t) {
		t = max(0, p.due(b)-b.cost) / b.scale
		p.shift = b.base + t - now
	}
	return b, t * b.scale
}

// behind is by how much the clock is behind the bucket still: not at all once it
// has caught up.
func (p *Policy) behind(b *bucket, now int64) (shift int64) {
	if p.shift != 0 && p.plausible(b, now-b.base) {
		return 0
	}
	return p.shift
}

// plausible reports whether the time t after b's base can have come after all
// that has happened, but for the tolerance.
func (p *Policy) plausible(b *bucket, t int64) bool {
	return t > b.reach || t >= -b.reach && p.due(b)-t*b.scale <= b.slack
}

// rebase replaces b by the same bucket that begins t later.
func (p *Policy) rebase(b *bucket, t int64) *bucket {
	next := newBucket(b.config, b.base+t)
	if p.tat/b.scale < t {
		p.tat = 0 // full; those who wait are all due
	} else {
		p.tat -= t * b.scale
	}
	p.current.Store(next)
	return next
}

// admission is what enter has decided.
type admission struct {
	waiter *waitq.Waiter   // queued, or nil
	ready  <-chan struct{} // closed when that is settled, if enter has made it
	wait   time.Duration   // 0: a permit was taken; else how long it would take
	err    error           // ErrClosed
}

// enter takes a permit for a call, or queues it if the wait ends by latest: by w
// if that comes from EnterAsync, else by a waiter of its own.
func (p *Policy) enter(ctx context.Context, latest int64, w *waitq.Waiter) (a admission) {
	var woken batch
	p.lock()
	returned := false
	defer func() {
		if !returned && a.waiter != nil && p.remove(a.waiter) { // no timer: nobody would come for it
			p.tat -= p.current.Load().cost
		}
		p.unlock()
		p.wake(&woken, false)
	}()
	if p.closed {
		returned = true
		return admission{err: scope.ErrClosed}
	}
	// Read under the lock: a reading that is older than what others have done
	// meanwhile makes the wait too long.
	now := p.scope.Now()
	shift := p.shift
	b, at := p.locate(now)
	if p.grant(b, at, &woken) || p.shift != shift || p.unattended() {
		p.arm(b, at)
	}
	if short := max(p.tat, at) - b.fill + b.cost - at; short <= 0 {
		p.tat = max(p.tat, at) + b.cost
	} else {
		a.wait = b.duration(short)
		if fits(now, a.wait, latest) && short <= maxQueue-b.cost {
			if a.waiter = w; w == nil {
				a.waiter, a.ready = waitq.NewChan()
			} else {
				p.remember(ctx, w)
			}
			p.scope.Lodge(a.waiter, p.visit)
			a.waiter.Max = latest
			p.queue.Push(a.waiter)
			p.tat += b.cost // it is above at: the wait is above 0
			if p.queue.Len() == 1 || p.timer == nil {
				p.arm(b, at)
			}
		}
	}
	returned = true
	return a
}

// latest is the last instant at which a wait may end that begins now. It is
// asked before the lock is taken: a context is code of others.
func (p *Policy) latest(ctx context.Context, now int64, maxWait time.Duration, until int64) int64 {
	if maxWait <= 0 {
		return math.MinInt64 // and not now: the clock may go back until the lock is taken
	}
	latest := add(now, maxWait)
	if until != 0 {
		latest = min(latest, until-1)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := deadline.Sub(p.scope.At(now))
		// One that has passed although ctx lives is of another clock: the real one,
		// where the scope's is manual.
		if left >= 0 || p.scope.System() || ctx.Err() != nil {
			latest = min(latest, add(now, max(0, left))-1)
		}
	}
	return latest
}

// fits reports whether a wait that begins now ends by latest.
func fits(now int64, wait time.Duration, latest int64) bool { return add(now, wait) <= latest }

// add is now+d, or the latest instant if that is beyond it.
func add(now int64, d time.Duration) int64 {
	if d > 0 && now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}

// remember marks w as one from EnterAsync.
func (p *Policy) remember(ctx context.Context, w *waitq.Waiter) {
	if p.async == nil {
		p.async = make(map[*waitq.Waiter]func())
	}
	p.async[w] = func() { p.tell(ctx) }
}

// remove takes w out of the queue and reports false if it was not in it.
func (p *Policy) remove(w *waitq.Waiter) bool {
	delete(p.async, w)
	if len(p.async) == 0 {
		p.async = nil // a map never shrinks
	}
	return p.queue.Remove(w)
}

// grant gives their permits to those who are due, and reports whether there was
// somebody.
func (p *Policy) grant(b *bucket, at int64, woken *batch) (some bool) {
	for p.queue.Len() > 0 && p.due(b) <= at {
		some = true
		w := p.queue.Front()
		tell := p.async[w]
		p.remove(w)
		if w.Grant() {
			woken.add(w, tell)
			p.admit()
		} else { // it is gone, and its turn goes to the next
			p.tat -= b.cost
		}
	}
	return some
}

// arm sets the timer for the first in the queue, which is not due yet, instead
// of the one that is set.
//
// In a foreign synctest bubble it leaves the one that is set: a timer of the
// bubble ends with it, and must not be touched by others, while those outside
// rely on theirs. It may go off before the next is due, which costs a tick.
func (p *Policy) arm(b *bucket, at int64) {
	if p.queue.Len() == 0 {
		p.disarm()
		return
	}
	wait := b.duration(p.due(b) - at)
	if p.scope.Visited() != 0 {
		p.scope.AfterFunc(wait, p.visit)
		return
	}
	armed := p.armed + 1
	timer := p.scope.AfterFunc(wait, func() { p.tick(armed) })
	p.disarm() // not before: if the clock panics, the timer that is set is better than none
	p.timer = timer
}

// unattended reports whether somebody waits and no timer is set, because a clock
// has panicked. Those of a foreign synctest bubble look after themselves.
func (p *Policy) unattended() bool {
	return p.timer == nil && p.queue.Len() > 0 && p.scope.Visited() == 0
}

// visit is the tick of those who wait in a foreign synctest bubble.
func (p *Policy) visit() {
	p.settle(true, func(woken *batch) {
		b, at := p.locate(p.scope.Now())
		if p.grant(b, at, woken) {
			p.arm(b, at)
		}
	})
}

// disarm takes the timer back.
func (p *Policy) disarm() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.armed++
}

// tick is the timer: the first in the queue is due.
func (p *Policy) tick(armed uint64) {
	p.settle(true, func(woken *batch) {
		if armed != p.armed {
			return
		}
		p.timer = nil
		served := false
		defer func() {
			if !served { // the clock has panicked: once more, and not at once
				b := p.current.Load()
				p.arm(b, p.due(b)-int64(again)*b.scale)
			}
		}()
		b, at := p.locate(p.scope.Now())
		p.grant(b, at, woken)
		p.arm(b, at) // also if nobody was due: the clock may have gone back
		served = true
	})
}

// again is how long a tick whose clock panics puts off what it was to do.
const again = time.Millisecond

// close refuses everybody who waits, now and from now on.
func (p *Policy) close() {
	p.settle(false, func(woken *batch) {
		p.closed = true
		for w := p.queue.Front(); w != nil; w = p.queue.Front() {
			tell := p.async[w]
			p.remove(w)
			if w.Refuse(scope.ErrClosed) {
				woken.add(w, tell)
			}
		}
		p.disarm()
	})
}
