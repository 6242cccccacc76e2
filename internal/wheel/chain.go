package wheel

import (
	"sync/atomic"
	"time"
)

const (
	// burstLen arms within one tick make a quiet wheel tick.
	burstLen = 32

	// overdue is how long after its time a wake-up is given up for lost: a
	// machine that slept, a bubble that ended with its timers. It is more than
	// 200 ms and several ticks of the longest, so that a busy machine does not
	// reach it often; where it does, one timer too many is started.
	overdue = int64(250 * time.Millisecond)

	// States of chain.run.
	idle     = 0
	running  = 1
	runAgain = 2
)

// chain is how the wheel is woken: a chain of timer callbacks, each of which
// runs a tick and arranges for the next. There is no lock and no goroutine.
//
// hot.wakeAt is the whole truth about what is arranged. Whoever lowers it by a
// compare-and-swap to x owes a timer that calls back for x. A callback for x
// that finds another value has been superseded and returns: either somebody owes
// an earlier one, or a tick is on its way. A tick first stores Never, then reads
// the bounds, then lowers wakeAt to what it found.
//
// No wake is lost. An arm lowers the bounds, then loads wakeAt. If it sees a
// value above its bound, or Never, it arranges. If it sees x at or below its
// bound, then the tick that resets x has not done so yet, so it reads the bounds
// after they were lowered: by x's own callback, by that of one which superseded
// x, or because it is just beginning. And a callback that finds a tick running
// (see enter) makes it run once more.
//
// Two timers may call back for the same x, one of them a leftover; that is a
// tick too many, which is harmless.
type chain struct {
	run atomic.Int32

	// The chain's own timer, reset only by ticks, of which one runs at a time.
	// Arms start timers of their own for one call each: resetting somebody
	// else's would need a lock.
	timer Timer
	at    atomic.Int64 // what timer calls back for

	// gen counts the chains that were given up: a wake-up is overdue, or the
	// clock has leapt. A tick of a new generation makes a new timer and never
	// touches the old one, which may belong to a bubble that has ended (to reset
	// that is a fatal error). The old timer's callback returns at once.
	gen      atomic.Int64
	timerGen int64
}

// armQuiet is the end of Arm when the wheel is quiet. The entry is published and
// the bounds are lowered.
//
//go:noinline
func (w *Wheel[E, P]) armQuiet(e *E, bound int64) {
	if bound >= far {
		return
	}
	p := P(e)
	if p.WheelStart() >= 0 {
		// The wheel went quiet since Start. The tick whose time would be e's
		// start may be long in coming, so fix the deadline now. (Had that tick
		// begun already, it would be the one that e gets.)
		w.Deadline(e)
	}
	if at := w.hot.wakeAt.Load(); at > bound {
		w.arrange(bound)
	} else if bound-p.WheelLimit()-at > overdue {
		// The first operand is about now.
		if n := w.now(); n-at > overdue && w.hot.wakeAt.CompareAndSwap(at, n) {
			w.chain.gen.Add(1)
			w.callAt(n, 0)
		}
	}
	if w.burst.Add(1)%burstLen == 0 {
		n := w.now()
		if n > 0 && n-w.burstAt.Swap(n) < w.tickLen() && w.want.CompareAndSwap(false, true) {
			w.rouse()
		}
	}
}

// arrange sees to it that a tick reads the bounds soon after at: within half a
// tick, for the sake of others that are due then.
func (w *Wheel[E, P]) arrange(at int64) {
	n := w.now()
	if n <= 0 {
		return // a foreign bubble, whose timers must not drive the chain
	}
	if w.claim(at) {
		w.callAt(at, later(max(at-n, 0), w.tickLen()/2))
	}
}

// claim lowers wakeAt to at; false: it is not above.
func (w *Wheel[E, P]) claim(at int64) bool {
	for {
		v := w.hot.wakeAt.Load()
		if v <= at {
			return false
		}
		if w.hot.wakeAt.CompareAndSwap(v, at) {
			return true
		}
	}
}

// rouse makes a tick run at once. Unlike claim it may raise wakeAt: those who
// rely on an earlier wake-up are served by this one.
func (w *Wheel[E, P]) rouse() {
	n := w.now()
	if n <= 0 {
		return
	}
	if at := w.hot.wakeAt.Swap(n); n-at > overdue {
		w.chain.gen.Add(1)
	}
	w.callAt(n, 0)
}

// wakeForChores lets a quiet wheel look soon whether it can shrink.
func (w *Wheel[E, P]) wakeForChores() {
	if n := w.now(); n > 0 && !w.Ticking() {
		w.arrange(n + minPause)
	}
}

// callAt starts a timer that calls back for at after d.
func (w *Wheel[E, P]) callAt(at, d int64) {
	w.afterFunc(time.Duration(d), func() {
		if w.hot.wakeAt.Load() == at {
			w.enter()
		}
	})
}

// next is arrange for the tick itself, by the chain's own timer.
func (w *Wheel[E, P]) next(at, d int64) {
	c := &w.chain
	if !w.claim(at) {
		return
	}
	c.at.Store(at)
	if gen := c.gen.Load(); c.timer == nil || c.timerGen != gen {
		c.timerGen = gen
		c.timer = w.afterFunc(time.Duration(d), func() {
			if c.gen.Load() == gen && w.hot.wakeAt.Load() == c.at.Load() {
				w.enter()
			}
		})
		return
	}
	c.timer.Reset(time.Duration(d))
}

// enter runs ticks, one at a time. Whoever finds one running leaves it a request
// to run again. The request cannot be lost: the runner goes idle only by a
// compare-and-swap that fails if there is one.
func (w *Wheel[E, P]) enter() {
	c := &w.chain
	for !c.run.CompareAndSwap(idle, running) {
		if c.run.CompareAndSwap(running, runAgain) || c.run.Load() == runAgain {
			return
		}
	}
	for {
		rest := w.runTick()
		if c.run.CompareAndSwap(running, idle) {
			if rest != nil {
				w.finally(rest)
			}
			return
		}
		if rest != nil {
			w.spawn(rest)
		}
		c.run.Store(running)
	}
}
