package wheel

import (
	"runtime/debug"
	"sync/atomic"
)

// round is what a tick has found due. It calls back in two steps: first all
// entries expire, then what they returned is called. A crew works on each.
type round[E any, P Entry[E]] struct {
	wheel *Wheel[E, P]
	due   []due[E]
	taken atomic.Int64 // entries that somebody has taken
	left  atomic.Int64 // entries that have not expired yet

	// afters is a stack of what to call in the second step. Whoever opens it, or
	// pushes after that, calls the second crew: push then look at open, open then
	// call.
	afters atomic.Pointer[after]
	open   atomic.Bool

	first, second crew
}

type after struct {
	f    func()
	next *after
}

// launch has what is due expire on fresh goroutines: no more than there are
// processors, since a million that are due together are work, not waiting. It
// returns what the goroutine that runs the tick shall do when the tick is over:
// it is a timer's, as fresh as any, and under load each start of another one
// costs the callers a turn of the scheduler.
func (w *Wheel[E, P]) launch() (rest func()) {
	n := len(w.tick.due)
	if n == 0 {
		return nil
	}
	r := &round[E, P]{wheel: w, due: w.tick.due}
	w.tick.due = nil
	r.left.Store(int64(n))
	r.second.init(w.spawn, w.afterFunc, w.tickLen, r.callOne, func() bool { return r.afters.Load() == nil }, nil)
	if n == 1 { // nobody waits for it
		return func() { r.expireOne() }
	}
	r.first.init(w.spawn, w.afterFunc, w.tickLen, r.expireOne, func() bool { return r.taken.Load() >= int64(n) }, r.unlock)
	return r.first.begin(n)
}

// expireOne lets one entry expire. It is cleared: a round does not keep alive
// what has expired.
func (r *round[E, P]) expireOne() bool {
	i := r.taken.Add(1) - 1
	if i >= int64(len(r.due)) {
		return false
	}
	e, slot := r.due[i].e, r.due[i].slot
	r.due[i] = due[E]{}
	returned := false
	defer func() {
		if !returned {
			r.wheel.caught(recover())
			// It may have panicked before it decided. Leave nothing behind.
			slot.CompareAndSwap(e, nil)
		}
		if r.left.Add(-1) == 0 {
			r.unlock()
		}
	}()
	if f := P(e).WheelExpire(slot); f != nil {
		r.push(f)
	}
	returned = true
	return true
}

func (r *round[E, P]) push(f func()) {
	a := &after{f: f}
	for {
		a.next = r.afters.Load()
		if r.afters.CompareAndSwap(a.next, a) {
			break
		}
	}
	if r.open.Load() {
		r.second.call()
	}
}

// unlock begins the second step: all have expired, or one is stuck and must not
// hold up what the others want done.
func (r *round[E, P]) unlock() {
	r.open.Store(true)
	if r.afters.Load() != nil {
		r.second.call()
	}
}

// callOne calls one of the second step.
func (r *round[E, P]) callOne() bool {
	a := r.afters.Load()
	for a != nil && !r.afters.CompareAndSwap(a, a.next) {
		a = r.afters.Load()
	}
	if a == nil {
		return false
	}
	if a.next != nil {
		r.second.call()
	}
	returned := false
	defer func() {
		if !returned {
			r.wheel.caught(recover())
		}
	}()
	a.f()
	returned = true
	return true
}

// caught reports a panic. A nil value is runtime.Goexit's.
func (w *Wheel[E, P]) caught(v any) {
	if v != nil && w.onPanic != nil {
		w.onPanic(v, debug.Stack())
	}
}
