package clock

import (
	"container/heap"
	"context"
	"time"
)

// Sleep moves the clock by d on behalf of a dependency that takes so long. It
// calls each due event in order, on this goroutine, and stops at the instant
// at which ctx ends: the clock then stands at the deadline of the event that
// ended it, and Sleep returns ctx.Err(). An event that is due exactly at the
// end of the sleep and ends ctx wins, too. Otherwise it returns nil with the
// clock at now+d, or later if others moved it.
//
// So a function that calls Sleep(ctx, 5*time.Second) under a timeout of two
// seconds is interrupted with the clock at exactly two seconds, on one
// goroutine. A ctx that ended before the call returns its error and does not
// move the clock; d <= 0 returns ctx.Err() and calls nothing.
//
// That holds for a context that the function has derived from its own, too. The
// news of the end may come to it on another goroutine; Sleep, like Drive, Wait
// and the Await methods, waits for that, a few milliseconds of real time at most.
//
// On a Passive clock Sleep parks until somebody else moves the clock; it is a
// pending event at now+d meanwhile. The context's state at that instant decides
// between nil and ctx.Err(), however late the goroutine is scheduled.
func (m *Manual) Sleep(ctx context.Context, d time.Duration) error {
	needContext(ctx, "Sleep")
	end := &ending{ctx: ctx}
	if err := end.err(); err != nil || d <= 0 {
		return err
	}
	if m.passive.Load() {
		return m.parkFor(end, d)
	}
	j := &journey{target: later(m.Now(), d)}
	for e := m.step(j); e != nil; e = m.step(j) {
		m.fire(e)
		if err := end.err(); err != nil {
			return err
		}
	}
	return end.err() // another goroutine may have ended it
}

// Drive moves the clock from event to event, calling each on this goroutine,
// until the condition holds (nil) or ctx ends (ctx.Err()). It looks at the
// condition before the first and after each event, then at ctx, and never moves
// the clock without an event. until is called with no lock held and must not
// be nil.
//
// With no event pending Drive parks. It looks again when an event is armed or
// has been called, when the clock was moved, and when ctx ends; it cannot see a
// condition change by any other means.
//
// Drive moves a Passive clock as well. It does not wait there for the goroutines
// that it wakes: where that matters, call AwaitSleepers or AwaitTimers in the
// condition.
func (m *Manual) Drive(ctx context.Context, until func() bool) error {
	needContext(ctx, "Drive")
	if until == nil {
		panic("clock: nil until in Drive")
	}
	// Watching starts before the first look at the condition: a change in
	// between leaves a token in the channel.
	w := m.watch(armed | moved)
	defer m.unwatch(w)
	end := ending{ctx: ctx}
	for {
		select {
		case <-w.wake: // what this goroutine did itself is no news
		default:
		}
		if until() {
			return nil
		}
		if err := end.err(); err != nil {
			return err
		}
		if e := m.take(nil); e != nil {
			m.fire(e)
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
}

// Wait blocks until ready is closed or yields a value (nil) or ctx ends
// (ctx.Err()); ready is asked first, so it wins when both hold. A nil ready
// never comes. A ready that yields a value belongs to this call alone and yields
// one; a channel that is closed may be shared.
//
// It is how a wait of unknown length, for a permit or a slot, takes part in the
// clock's time: like Drive it moves the clock from event to event on this
// goroutine, and parks while none is pending until another goroutine arms one.
// It never moves the clock without an event. On a Passive clock it only parks.
// Parked, it counts for AwaitSleepers.
func (m *Manual) Wait(ctx context.Context, ready <-chan struct{}) error {
	needContext(ctx, "Wait")
	var p *parked
	for {
		select {
		case <-ready:
			return nil
		default:
		}
		if p == nil {
			p = newParked(&ending{ctx: ctx}, ready)
		}
		if err := p.end.err(); err != nil {
			return err
		}
		if e := m.take(p); e != nil {
			m.fire(e)
			continue
		}
		select {
		case <-ready:
			m.unpark(p)
			return nil
		case <-p.wake:
		case <-ctx.Done():
		}
		if m.unpark(p) {
			return nil
		}
	}
}

// take moves the clock to its next event, however far that is, and takes it out
// for firing. Without one, or if p is given and the clock is passive, it parks p
// and returns nil: both under one lock, so that an event armed in between is
// either seen here or wakes p.
func (m *Manual) take(p *parked) *event {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 || p != nil && m.passive.Load() {
		if p != nil {
			m.park(p)
		}
		return nil
	}
	e := heap.Pop(&m.queue).(*event)
	m.moveTo(e.at)
	return e
}
