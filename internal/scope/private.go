package scope

import (
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
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

// hold gives c a place of its own, without a deadline yet.
func (s *Scope) hold(c *callctx.Context) *private {
	p := &private{scope: s}
	onEnd := c.Hold() // before c has its slot
	c.WheelStamp().Store(Never)
	p.slot.Store(c)
	c.Armed(&p.slot)
	s.mu.Lock()
	s.privates[p] = struct{}{}
	s.mu.Unlock()
	onEnd(p.end)
	return p
}

// begin sets the timer, unless the context has ended.
func (p *private) begin(deadline int64) {
	c := p.slot.Load()
	if c == nil || c == callctx.Firing {
		return
	}
	c.WheelStamp().Store(deadline)
	if deadline == Never {
		return
	}
	s := p.scope
	d := time.Duration(deadline - s.Now())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.begun.Store(true)
	p.timer = s.clk.AfterFunc(d, func() { expire(c, &p.slot, s.soon) })
}

// end is called once, when the context has ended.
func (p *private) end() {
	p.mu.Lock()
	t := p.timer
	p.over, p.timer = true, nil
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
