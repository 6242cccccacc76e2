package pipeline

import (
	"sync/atomic"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
)

// step is where in the layers an attempt stands.
type step uint8

const (
	atBreaker  step = iota
	atLimiter       // the breaker has let it in
	atDeadline      // it has its permit
	atBulkhead      // its deadline is set
	atFunction      // it has its slot
)

// advance takes an attempt from a step on through the layers, in their order. It
// reports over if the attempt has ended, with its result; else it waits, runs
// elsewhere, or was given up.
func (c *call[T]) advance(a *attempt[T], at step, fn task[T], own bool) (v T, how ending, over bool, err error) {
	l, m, ctx := c.layers, c.more.Load(), c.ctx()
	if at == atBreaker {
		if m != nil && !c.turn(m, a) {
			return v, returned, false, nil
		}
		if l.Breaker != nil {
			permit, err := l.Breaker.Enter(ctx)
			if err != nil {
				return v, refused, true, err
			}
			if !c.probing(m, newProbe(c.scope(), permit)) {
				return v, returned, false, nil
			}
		}
		at = atLimiter
	}
	if at == atLimiter {
		if l.Limiter != nil {
			granted, err := c.limit(a, m, fn)
			if err != nil {
				how, err = refusal(ctx, err)
				return v, how, true, err
			}
			if !granted {
				return v, returned, false, nil
			}
		}
		at = atDeadline
	}
	var place scope.Place
	begun := true
	if at == atDeadline {
		var ok bool
		if place, begun, ok = c.arm(a, m, fn); !ok {
			return v, outOfTime, true, nil
		}
		// Closing looks for attempts after it has closed the scope; we have armed
		// ours and now look at the scope. One of us ends the call.
		if c.scope().Closed() {
			c.stop(scope.ErrClosed, closed, closedEnd, nil)
		}
		if !c.future.is(pending) { // ended from outside while the slot was not known
			a.drop()
			return v, returned, false, nil
		}
		at = atBulkhead
	}
	if at == atBulkhead {
		if l.Bulkhead != nil {
			granted, err := c.bulk(a, m, place, &begun)
			if err != nil {
				if !a.returned(v, err, refused) {
					return v, returned, false, nil
				}
				how, err = refusal(ctx, err)
				return v, how, true, err
			}
			if !granted {
				return v, returned, false, nil
			}
		}
	}
	// atFunction
	if !a.enter() {
		a.free()
		return v, returned, false, nil
	}
	switch {
	case fn.stage != nil:
		return c.stage(a, place, begun, fn.stage)
	case own:
		return c.run(a, fn.run)
	default:
		go a.goRun(fn.run)
		return v, returned, false, nil
	}
}

// turn makes a the attempt under way, unless the call has ended.
func (c *call[T]) turn(m *more[T], a *attempt[T]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !c.future.is(pending) {
		return false
	}
	m.cur = a
	return true
}

// probing notes what the breaker waits for, unless the call has ended: then the
// breaker has it back.
func (c *call[T]) probing(m *more[T], b *probe) bool {
	m.mu.Lock()
	live := c.future.is(pending)
	if live {
		m.t.probe = b
	}
	m.mu.Unlock()
	if !live {
		b.ignored()
	}
	return live
}

// arm makes a's context, with its deadline: at once for a function that runs,
// later for a stage. It reports false if MaxDuration is over.
func (c *call[T]) arm(a *attempt[T], m *more[T], fn task[T]) (place scope.Place, begun, ok bool) {
	local := try{layers: c.layers}
	t := &local
	if m != nil {
		t = &m.t
	}
	d, ok := t.deadline(c.ctx(), c.scope())
	if !ok {
		return place, true, false
	}
	plan := d.plan(t)
	if plan == nil {
		plan = c.layers.Attempts
	}
	a.Init(c.ctx(), plan)
	a.Info.Owner = a
	a.Own(&a.Info)
	begun = fn.stage == nil
	switch {
	case begun && (d.limit != nil || d.until != 0):
		d.arm(&a.Context, c.layers, c.scope())
	case d.limit != nil:
		place = d.limit.Reserve(&a.Context)
	case d.until != 0:
		place = c.scope().Reserve(&a.Context, c.layers.Cut.Level)
	default:
		place = c.scope().Reserve(&a.Context, nil)
	}
	if m != nil {
		m.mu.Lock()
		m.armed = a
		m.mu.Unlock()
		if c.first.flags.Load()&observed != 0 {
			a.Observe()
		}
	}
	return place, begun, true
}

// drop ends an attempt that has its context and will not be entered.
func (a *attempt[T]) drop() {
	a.flags.Or(givenUp)
	a.Finish()
	a.free()
}

// queue is a limiter or a bulkhead that can be waited for.
type queue interface {
	Leave(w *waitq.Waiter) bool
}

// parked is an attempt that waits in a queue, without a goroutine.
type parked[T any] struct {
	waitq.Waiter
	call *call[T]
	a    *attempt[T]
	q    queue
	next step
	own  bool
	// turns counts those who have done their part: the driver, once it has noted
	// where the attempt waits, and who settles the waiter. The second goes on.
	turns atomic.Int32
}

func (c *call[T]) park(a *attempt[T], q queue, next step, own bool) *parked[T] {
	p := &parked[T]{call: c, a: a, q: q, next: next, own: own}
	p.Init(p.wake)
	return p
}

// limit asks the limiter. Without error and grant, the attempt waits.
func (c *call[T]) limit(a *attempt[T], m *more[T], fn task[T]) (granted bool, err error) {
	l := c.layers
	if l.LimiterWait == 0 {
		var until int64
		if m != nil {
			until = m.t.until()
		}
		return true, l.Limiter.Enter(c.ctx(), 0, until)
	}
	p := c.park(a, l.Limiter, atDeadline, c.mine(fn))
	granted, err = l.Limiter.EnterAsync(c.ctx(), l.LimiterWait, m.t.until(), &p.Waiter)
	if granted || err != nil {
		return granted, err
	}
	return p.wait(m)
}

// bulk asks the bulkhead. Without error and grant, the attempt waits; then the
// deadline of a stage begins.
func (c *call[T]) bulk(a *attempt[T], m *more[T], place scope.Place, begun *bool) (granted bool, err error) {
	l := c.layers
	if l.BulkheadWait == 0 {
		if err := l.Bulkhead.Enter(c.ctx(), 0); err != nil {
			return false, err
		}
		a.flags.Or(holding)
		return true, nil
	}
	p := c.park(a, l.Bulkhead, atFunction, true)
	granted, err = l.Bulkhead.EnterAsync(c.ctx(), l.BulkheadWait, &p.Waiter)
	if granted {
		a.flags.Or(holding)
	}
	if granted || err != nil {
		return granted, err
	}
	if !*begun {
		if !p.begin(place) {
			return false, nil
		}
		*begun = true
	}
	granted, err = p.wait(m)
	if granted {
		a.flags.Or(holding)
	}
	return granted, err
}

// begin starts the deadline of a stage that waits for its slot. If the clock panics
// there, that ends the call, and begin reports false.
func (p *parked[T]) begin(place scope.Place) (begun bool) {
	defer func() {
		if begun {
			return
		}
		value := recover()
		// Who grants the slot wakes us, once. The second of us two frees it, and must
		// not go on with it: so this comes first.
		p.a.flags.Or(givenUp)
		if !p.q.Leave(&p.Waiter) && p.turns.Add(1) == 2 && p.State() == waitq.Granted {
			p.call.layers.Bulkhead.Release()
		}
		p.a.Finish()
		p.call.broke(p.a, value)
	}()
	p.call.beginStage(p.a, place)
	return true
}

// wait notes that the attempt waits, or takes it back out of the queue if the
// call has ended. If the waiter was settled meanwhile, that is the answer.
func (p *parked[T]) wait(m *more[T]) (granted bool, err error) {
	m.mu.Lock()
	waits := p.call.future.is(pending) && p.a.flags.Load()&givenUp == 0
	if waits {
		m.parked = p
	}
	m.mu.Unlock()
	if !waits {
		p.q.Leave(&p.Waiter)
	}
	if p.turns.Add(1) < 2 {
		return false, nil
	}
	p.unpark(m)
	return p.answer()
}

// wake is called by whoever grants or refuses.
func (p *parked[T]) wake() {
	if p.turns.Add(1) < 2 {
		return
	}
	c := p.call
	m := c.more.Load()
	p.unpark(m)
	_, err := p.answer()
	if err == nil { // granted: who has left is not woken
		givenUpInQueue := false
		if p.next == atFunction {
			givenUpInQueue = p.a.flags.Or(holding)&givenUp != 0
		}
		if givenUpInQueue || !c.future.is(pending) {
			p.a.free()
			return
		}
		c.drive(p.a, p.next, m.function(), p.own)
		return
	}
	var zero T
	if p.next == atFunction && !p.a.returned(zero, err, refused) {
		return
	}
	how, err := refusal(c.ctx(), err)
	if next := c.settle(p.a, zero, err, how); next != nil {
		fn := m.function()
		c.drive(next, atBreaker, fn, c.mine(fn))
	}
}

func (p *parked[T]) unpark(m *more[T]) {
	m.mu.Lock()
	if m.parked == p {
		m.parked = nil
	}
	m.mu.Unlock()
}

func (p *parked[T]) answer() (granted bool, err error) {
	if p.State() == waitq.Refused {
		return false, p.Err()
	}
	return p.State() == waitq.Granted, nil
}

// leave takes a out of the queue that it waits in, if it does.
func (c *call[T]) leave(m *more[T], a *attempt[T]) {
	m.mu.Lock()
	p := m.parked
	if p != nil && p.a == a {
		m.parked = nil
	} else {
		p = nil
	}
	m.mu.Unlock()
	if p != nil {
		p.q.Leave(&p.Waiter)
	}
}
