package clock

import (
	"context"
	"time"
)

// Passive marks the clock so that Sleep and Wait park instead of moving it, and
// returns it: clock.NewManual(t).Passive(). Then one goroutine, the test's,
// moves the clock for all others, and the result does not depend on scheduling:
// AwaitSleepers, Advance, and so on. Call it before the clock is used.
func (m *Manual) Passive() *Manual {
	m.passive.Store(true)
	return m
}

// AwaitSleepers blocks until at least n goroutines are parked in Sleep or in a
// wait of the library, or until ctx ends (ctx.Err()). Enough sleepers win over
// an ended ctx.
//
// A goroutine counts no more from the moment that wakes it (the end of its sleep
// or of its context, the close of its ready channel), not only when it gets to
// run: after Advance has ended a sleep, AwaitSleepers waits for the next one.
// Only a Wait that a value wakes counts until it runs. On a clock that is not
// Passive only waits with no event pending park.
func (m *Manual) AwaitSleepers(ctx context.Context, n int) error {
	needContext(ctx, "AwaitSleepers")
	return m.await(ctx, slept, func() bool { return m.sleepers(n) >= n })
}

// AwaitTimers blocks until at least n events are pending, sleeps on a passive
// clock included, or until ctx ends (ctx.Err()). Enough events win over an ended
// ctx.
func (m *Manual) AwaitTimers(ctx context.Context, n int) error {
	needContext(ctx, "AwaitTimers")
	return m.await(ctx, armed, func() bool { return m.Pending() >= n })
}

// await blocks until the condition holds; it looks again after every change of
// a kind in on.
func (m *Manual) await(ctx context.Context, on change, holds func() bool) error {
	w := m.watch(on)
	defer m.unwatch(w)
	end := ending{ctx: ctx}
	for !holds() {
		if err := end.err(); err != nil {
			return err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// parked is one goroutine that waits in Sleep or Wait for another one to move
// the clock. ready, granted and membership of m.parked are guarded by m.mu.
type parked struct {
	end     *ending
	ready   <-chan struct{} // what Wait waits for; nil in Sleep
	granted bool            // ready came, and sleepers received it in Wait's place
	wake    chan struct{}   // holds one token: look again
}

// newParked makes the record, and its channel, anew for each call: a channel
// belongs to the synctest bubble that made it and must not outlive it.
func newParked(end *ending, ready <-chan struct{}) *parked {
	return &parked{end: end, ready: ready, wake: make(chan struct{}, 1)}
}

// park counts p among the sleepers. The caller holds m.mu.
func (m *Manual) park(p *parked) {
	if m.parked == nil {
		m.parked = make(map[*parked]struct{})
	}
	m.parked[p] = struct{}{}
	m.notify(slept)
}

// unpark stops counting p and reports whether its ready has come.
func (m *Manual) unpark(p *parked) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.parked, p)
	return p.granted
}

// parkFor is Sleep on a passive clock.
func (m *Manual) parkFor(end *ending, d time.Duration) error {
	p := newParked(end, nil)
	var due error // why the context had ended at the end of the sleep; published by p.wake

	m.mu.Lock()
	e := m.arm(later(m.now, d), true, func() {
		defer func() { // also if the context panics: that is not the sleeper's to wait for
			m.unpark(p)
			poke(p.wake)
		}()
		due = end.err()
	})
	m.park(p)
	m.announce()
	m.mu.Unlock()

	select {
	case <-p.wake:
		return due
	case <-end.ctx.Done():
	}
	if !e.Stop() {
		// The end of the sleep is being called, or was, and has decided.
		<-p.wake
		return due
	}
	m.unpark(p)
	return errNow(end.ctx)
}

// sleepers counts the goroutines that are parked and that nothing has woken yet:
// one whose context has ended, or whose ready has come, is only waiting to be
// scheduled. With fewer than enough records it does not look closer.
func (m *Manual) sleepers(enough int) int {
	m.mu.Lock()
	if n := len(m.parked); n < enough {
		m.mu.Unlock()
		return n
	}
	records := make([]*parked, 0, len(m.parked))
	for p := range m.parked {
		select {
		case <-p.ready:
			// Closed, as a rule. But it may be the one value that ready yields,
			// sent before Wait got to its select: so this receive counts as
			// Wait's own, which looks at granted on every way on.
			p.granted = true
			delete(m.parked, p)
			poke(p.wake)
		default:
			records = append(records, p)
		}
	}
	m.mu.Unlock()

	n := 0
	for _, p := range records { // a context is foreign code: no lock
		if p.end.err() == nil {
			n++
		}
	}
	return n
}
