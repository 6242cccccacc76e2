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

	mu    sync.Mutex
	timer clock.Timer
	over  bool
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
	c.Hold(inside, p.end) // before c has its slot: who finds it there finds its watch
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

// begin sets the deadline and its timer, once, unless the context has ended.
func (p *private) begin(now, deadline int64) {
	c := p.slot.Load()
	if deadline == Never || c == nil || c == callctx.Firing {
		return
	}
	s := p.scope
	p.mu.Lock()
	if p.over || p.begun.Load() {
		p.mu.Unlock()
		return
	}
	c.WheelStamp().Store(deadline)
	p.begun.Store(true)
	p.mu.Unlock()
	// The clock may be the user's code, and call back here: with no lock held.
	t := s.clk.AfterFunc(until(now, deadline), func() {
		expire(c, &p.slot, s.soon)
		c.Tell()
	})
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

// end is called when the context has ended, and once more when the attempt
// returns, if that was before: then nothing is left of it, although another
// goroutine may be on its way here still.
func (p *private) end() {
	p.mu.Lock()
	t := p.timer
	p.over = true
	p.mu.Unlock()
	if t != nil {
		t.Stop()
	}
	p.scope.mu.Lock()
	delete(p.scope.privates, p)
	p.scope.mu.Unlock()
}

// soon calls f after all timers that are due at this instant. A manual clock
// calls its events in the order in which they were set. In a synctest bubble
// they run at once, and time goes on only when all are done.
func (s *Scope) soon(f func()) {
	var d time.Duration
	if s.system {
		d = 1
	}
	s.clk.AfterFunc(d, f)
}
