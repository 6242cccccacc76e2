package bulkhead

import (
	"context"
	"errors"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
)

// Enter is [Policy.Acquire] for package pipeline: it waits at most maxWait (0:
// not at all, below: as long as ctx allows) instead of Config.MaxWait, which
// belongs to the layer that made the instance, and takes a free slot without
// looking at ctx, which the pipeline has looked at. The end of ctx is ctx.Err()
// alone: ctx may be an attempt's, and its cause is not the caller's.
func (p *Policy) Enter(ctx context.Context, maxWait time.Duration) error {
	if p.take() {
		return nil
	}
	if err := p.mayWait(ctx, maxWait); err != nil {
		return err
	}
	return p.wait(ctx, maxWait)
}

// EnterAsync is [Policy.Enter] without blocking, for package pipeline. If
// entered, the caller holds a slot. If err is not nil, it was refused as by Enter.
// Otherwise w stands in the queue, and its wake is called exactly once, with no
// lock held, when it is settled: granted, and the caller holds a slot; or refused
// with w.Err(), also when it has waited for maxWait. That may be before EnterAsync
// returns. Only if [Policy.Leave] takes w out before, is its wake never called.
//
// At the end of maxWait, wake runs on the goroutine of the timer: on a manual clock
// that is who moves it. Otherwise it has one of its own.
//
// w must be fresh, and may be used for one call only.
func (p *Policy) EnterAsync(ctx context.Context, maxWait time.Duration, w *waitq.Waiter) (entered bool, err error) {
	if p.take() {
		return true, nil
	}
	if err := p.mayWait(ctx, maxWait); err != nil {
		return false, err
	}
	p.scope.Lodge(w, nil)
	since := p.since(maxWait)
	if entered, err = p.join(ctx, w, true); entered || err != nil || maxWait < 0 {
		return entered, err
	}
	p.bound(ctx, w, maxWait, since)
	return false, nil
}

// bound gives w, which EnterAsync has queued, its timer.
func (p *Policy) bound(ctx context.Context, w *waitq.Waiter, maxWait time.Duration, since int64) {
	returned := false
	defer func() {
		if !returned {
			p.abandon(w)
		}
	}()
	timer := p.scope.AfterFunc(maxWait, func() {
		p.expire(w, maxWait, since, func() { p.tellAndWake(ctx, w) })
	})
	p.mu.Lock()
	_, waits := p.async[w]
	if waits {
		p.async[w] = timer
	}
	p.mu.Unlock()
	if !waits {
		timer.Stop() // it was settled, or has left, in the meantime
	}
	returned = true
}

// Leave takes w, which EnterAsync has queued, out of the queue, and reports
// whether it did. After false w was settled before, by a grant, a refusal or an
// earlier Leave: if w.State() is waitq.Granted, the caller holds a slot.
func (p *Policy) Leave(w *waitq.Waiter) bool {
	var timer clock.Timer
	p.mu.Lock()
	left := w.Leave()
	if left {
		timer, _ = p.remove(w)
		p.unmark()
	}
	p.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	return left
}

// wait is Enter when there is no free slot and the caller may wait.
func (p *Policy) wait(ctx context.Context, maxWait time.Duration) error {
	w, ready := waitq.NewChan()
	p.scope.Lodge(w, nil)
	since := p.since(maxWait)
	if entered, err := p.join(ctx, w, false); entered || err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned {
			p.abandon(w)
		}
	}()
	err := p.await(ctx, w, ready, maxWait, since)
	returned = true
	if err != nil && p.Leave(w) {
		return err
	}
	// It was settled, perhaps at the very moment at which ctx ended: that is its
	// fate then, and the slot is the caller's.
	if w.State() == waitq.Granted {
		return nil
	}
	err = w.Err()
	if errors.Is(err, ErrFull) {
		p.tell(ctx)
	}
	return err
}

// await blocks until w is settled or ctx ends.
func (p *Policy) await(ctx context.Context, w *waitq.Waiter, ready <-chan struct{}, maxWait time.Duration, since int64) error {
	if maxWait > 0 {
		timer := p.scope.AfterFunc(maxWait, func() { p.expire(w, maxWait, since, w.Wake) })
		defer timer.Stop()
	}
	return p.scope.Wait(ctx, ready)
}

// abandon takes w out of the queue, or gives its slot back, for a caller that
// will not come back: foreign code has panicked or ended the goroutine while w
// was waiting. It may be ctx, a clock, or anything that a manual clock calls while
// the wait drives it.
func (p *Policy) abandon(w *waitq.Waiter) {
	if !p.Leave(w) && w.State() == waitq.Granted {
		p.Release()
	}
}

// mayWait refuses those who need not try to get in line, without the lock.
func (p *Policy) mayWait(ctx context.Context, maxWait time.Duration) error {
	set := p.settings.Load()
	queue := set.config.Queue
	if maxWait == 0 || queue == 0 {
		return p.refuse(ctx, set.full)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// The line is full now, hence nobody may pass it: this refusal is right even
	// if the slot was freed since it was looked at.
	if queue > 0 && p.waiting.Load() >= int64(queue) {
		return p.refuse(ctx, set.full)
	}
	return nil
}

// since is when a wait of at most maxWait begins. It is read before the timer is
// armed, so that nobody is told of a wait shorter than maxWait. A wait without a
// bound reads no clock.
func (p *Policy) since(maxWait time.Duration) int64 {
	if maxWait < 0 {
		return 0
	}
	return p.scope.Now()
}

// join puts w at the end of the queue, unless a slot has become free.
func (p *Policy) join(ctx context.Context, w *waitq.Waiter, async bool) (entered bool, err error) {
	p.mu.Lock()
	for {
		s := p.load()
		if s.free() {
			if !p.swap(s, s+oneInUse) {
				continue
			}
			p.admitted++ // not in the word: its field may be at its end
			p.mu.Unlock()
			return true, nil
		}
		set := p.settings.Load()
		queue := set.config.Queue
		if p.closed {
			p.mu.Unlock()
			return false, scope.ErrClosed
		}
		if queue >= 0 && p.queue.Len() >= queue {
			p.mu.Unlock()
			return false, p.refuse(ctx, set.full)
		}
		// Marking fails if somebody went out after the load. Once it succeeds,
		// everybody who goes out has to come for the lock.
		if s.isMarked() || p.swap(s, s|marked) {
			break
		}
	}
	p.queue.Push(w)
	p.waiting.Store(int64(p.queue.Len()))
	if async {
		if p.async == nil {
			p.async = make(map[*waitq.Waiter]clock.Timer)
		}
		p.async[w] = nil
	}
	p.mu.Unlock()
	return false, nil
}

// grant gives the free slots of s, a marked state, to the first in the queue, and
// returns the state after that, unmarked if nobody is left. The caller holds p.mu
// and stores what it returns; nobody sees anything in between.
func (p *Policy) grant(s word, b *batch) word {
	for s.free() {
		w := p.queue.Front()
		if w == nil {
			break
		}
		timer, async := p.remove(w)
		b.stop(timer)
		if w.Grant() { // else it is gone, and its turn goes to the next
			b.add(w, async)
			s += oneInUse
			p.admitted++
		}
	}
	if p.queue.Len() == 0 {
		s &^= marked
	}
	return s
}

// expire is w's timer: it has waited as long as it may, since the given reading of
// the clock, and is refused, unless it was settled before. Then wake wakes it.
func (p *Policy) expire(w *waitq.Waiter, maxWait time.Duration, since int64, wake func()) {
	waited := maxWait
	defer func() { // also if the clock panics, or ends the goroutine
		if p.refuseWaiter(w, waited) {
			wake()
		}
	}()
	waited = time.Duration(p.scope.Now() - since)
}

// refuseWaiter refuses w after a wait, and reports false if it was settled before.
// After true the caller must wake it.
func (p *Policy) refuseWaiter(w *waitq.Waiter, waited time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.settings.Load()
	if !w.Refuse(&Error{Instance: p.id, Limit: set.full.Limit, Queue: set.full.Queue, Waited: waited}) {
		return false
	}
	p.rejected.Line()[0].Add(1)
	p.remove(w)
	p.unmark()
	return true
}

// tellAndWake is for a waiter from EnterAsync that its timer has refused. The
// refusal is told before the wake, in which the call may go on to other events.
// Both happen here: the goroutine is the timer's own, or that of who moves a manual
// clock, who finds everything done then that was due.
func (p *Policy) tellAndWake(ctx context.Context, w *waitq.Waiter) {
	told := false
	defer func() {
		if !told { // the listener or the clock has ended the goroutine, and w waits still
			go w.Wake()
		}
	}()
	p.tell(ctx)
	told = true
	w.Wake()
}

// close refuses everybody who waits, now and from now on.
func (p *Policy) close() {
	var b batch
	p.mu.Lock()
	p.closed = true
	for w := p.queue.Front(); w != nil; w = p.queue.Front() {
		timer, async := p.remove(w)
		b.stop(timer)
		if w.Refuse(scope.ErrClosed) {
			b.add(w, async)
		}
	}
	p.unmark()
	p.mu.Unlock()
	b.done()
}

// remove takes w out of the queue, and reports whether it came by EnterAsync, with
// its timer, if it has one by now. The caller holds p.mu.
func (p *Policy) remove(w *waitq.Waiter) (timer clock.Timer, async bool) {
	p.queue.Remove(w)
	p.waiting.Store(int64(p.queue.Len()))
	timer, async = p.async[w]
	delete(p.async, w)
	if len(p.async) == 0 {
		p.async = nil // a map never shrinks
	}
	return timer, async
}

// unmark takes the mark away when the last one has left the queue without a
// slot. The caller holds p.mu.
func (p *Policy) unmark() {
	if p.queue.Len() == 0 {
		p.state.And(^uint64(marked))
	}
}
