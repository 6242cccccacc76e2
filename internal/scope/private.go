package scope

import (
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/wheel"
)

// private is the place of a context whose deadline is a timer of the scope's
// clock: exact, and one allocation more.
type private struct {
	scope *Scope
	slot  atomic.Pointer[callctx.Context]
	begun atomic.Bool
	aside callctx.Aside // the context's

	mu    sync.Mutex
	timer clock.Timer
	over  bool

	// Guarded by the scope's mu; nil: it is in no moment.
	moment     *moment
	prev, next *private
}

// hold gives c a place of its own, without a deadline yet. now is a reading of
// the clock: it tells whether this is a foreign bubble.
func (s *Scope) hold(c *callctx.Context, now int64) *private {
	p := &private{scope: s}
	c.Start(wheel.Refused)
	c.WheelStamp().Store(Never)
	var inside func() bool
	if s.foreign(now) {
		inside = s.inside(c)
	}
	p.aside = callctx.Aside{Inside: inside, Stop: p.end}
	c.Hold(&p.aside) // before c has its slot: who finds it there finds its watch
	p.slot.Store(c)
	c.Armed(&p.slot)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		s.privates[p] = struct{}{}
	}
	return p
}

// context is p's, nil if it has ended or is just being ended.
func (p *private) context() *callctx.Context {
	if c := p.slot.Load(); c != callctx.Firing {
		return c
	}
	return nil
}

// begin sets the deadline and its timer, once, unless the context has ended.
func (p *private) begin(now, deadline int64) {
	c := p.context()
	if deadline == Never || c == nil {
		return
	}
	s := p.scope
	if !p.fix(c, deadline) {
		return
	}
	fire := func() {
		expire(c, &p.slot, s.soon)
		c.Tell()
	}
	if !s.ordered {
		fire = func() { p.pass(deadline) }
	}
	// The clock may be the user's code, and call back here: with no lock held.
	t := s.clk.AfterFunc(until(now, deadline), fire)
	p.mu.Lock()
	over := p.over
	if !over {
		p.timer = t
	}
	p.mu.Unlock()
	if over {
		t.Stop()
	}
}

// fix tells c its deadline, unless it has one or has ended.
func (p *private) fix(c *callctx.Context, deadline int64) bool {
	s := p.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.begun.Load() {
		return false
	}
	c.WheelStamp().Store(deadline)
	p.begun.Store(true)
	if !s.ordered { // end takes it out: it sets over first
		s.join(p, deadline)
	}
	return true
}

// end is called when the context has ended, and once more when the attempt
// returns, if that was before: then nothing is left of it, although another
// goroutine may be on its way here still.
func (p *private) end() {
	p.mu.Lock()
	t := p.timer
	p.over = true
	p.mu.Unlock()
	p.scope.mu.Lock()
	delete(p.scope.privates, p)
	p.leave()
	p.scope.mu.Unlock()
	if t != nil { // last: the clock may be the user's code, and panic
		t.Stop()
	}
}

// soon calls f after all timers that are due at this instant. A manual clock
// calls its events in the order in which they were set. In a synctest bubble
// they run at once, and time goes on only when all are done. Other clocks promise
// nothing: see moment.
func (s *Scope) soon(f func()) {
	var d time.Duration
	if s.system {
		d = 1
	}
	s.clk.AfterFunc(d, f)
}
