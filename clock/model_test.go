package clock_test

import (
	"slices"
	"time"
)

// model is the obvious clock: integers, a list that is searched from end to
// end, and for each Advance the distance that it still has to cover itself.
type model struct {
	now    time.Duration
	events []*modelEvent // in arming order
	slept  time.Duration // moved by anything but Advance, ever
}

type modelEvent struct {
	at time.Duration
	f  func()
}

func (m *model) afterFunc(d time.Duration, f func()) *modelEvent {
	e := &modelEvent{at: m.now + max(d, 0), f: f}
	m.events = append(m.events, e)
	return e
}

func (m *model) stop(e *modelEvent) bool {
	i := slices.Index(m.events, e)
	if i < 0 {
		return false
	}
	m.events = slices.Delete(m.events, i, i+1)
	return true
}

// first is the earliest event, the first armed among equals; nil without one.
func (m *model) first() *modelEvent {
	var first *modelEvent
	for _, e := range m.events {
		if first == nil || e.at < first.at {
			first = e
		}
	}
	return first
}

// pass moves to the first event at or before limit and takes it out, or to the
// limit, and says how far that was.
func (m *model) pass(limit time.Duration) (e *modelEvent, moved time.Duration) {
	before := m.now
	if e = m.first(); e != nil && e.at <= limit {
		m.stop(e)
		limit = e.at
	} else {
		e = nil
	}
	m.now = max(m.now, limit)
	return e, m.now - before
}

func (m *model) advance(d time.Duration) {
	if d < 0 {
		return
	}
	slept := m.slept
	for {
		e, moved := m.pass(m.now + d - (m.slept - slept))
		if d -= moved; e == nil {
			return
		}
		e.f()
	}
}

func (m *model) set(to time.Duration) {
	if to >= m.now {
		m.sleep(to-m.now, func() bool { return false }, true)
	}
}

// sleep reports whether it was interrupted.
func (m *model) sleep(d time.Duration, ended func() bool, zeroCalls bool) bool {
	if ended() || d <= 0 && !zeroCalls {
		return ended()
	}
	for target := m.now + d; ; {
		e, moved := m.pass(target)
		m.slept += moved
		if e == nil {
			return ended()
		}
		if e.f(); ended() {
			return true
		}
	}
}

// drive reports whether it was interrupted; it must not run out of events.
func (m *model) drive(until, ended func() bool) bool {
	for !until() {
		if ended() {
			return true
		}
		e, moved := m.pass(m.first().at)
		m.slept += moved
		e.f()
	}
	return false
}
