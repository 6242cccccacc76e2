package wheel

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

// chunk is how many entries that are due together share a goroutine. A goroutine
// costs some 500 ns to start, which is nothing against 256 expiries.
const chunk = 256

// slice is how long the scheduler lets a goroutine run (runtime.forcePreemptNS).
// One that took no task for less than this may just have been preempted.
const slice = int64(10 * time.Millisecond)

// round is what a tick has found due. It calls back in two steps: first all
// entries expire, then what they returned is called.
type round[E any, P Entry[E]] struct {
	wheel *Wheel[E, P]
	due   []due[E]
	left  atomic.Int64 // entries that have not expired yet

	// afters is a stack of what to call in the second step. Whoever opens
	// it, or pushes after that, takes all there is: push then look at open, open
	// then take.
	afters atomic.Pointer[after]
	open   atomic.Bool
}

type after struct {
	f    func()
	next *after
}

// launch hands what is due to fresh goroutines. For the first chunk it returns
// what the goroutine that runs the tick shall do when the tick is over: it is a
// timer's, as fresh as any, and under load each start of another one costs the
// callers a turn of the scheduler.
func (w *Wheel[E, P]) launch() (rest func()) {
	if len(w.tick.due) == 0 {
		return nil
	}
	r := &round[E, P]{wheel: w, due: w.tick.due}
	w.tick.due = nil
	r.left.Store(int64(len(r.due)))
	stuck := r.unlock
	if len(r.due) == 1 {
		stuck = nil // nobody waits
	}
	for lo := 0; lo < len(r.due); lo += chunk {
		part := r.due[lo:min(lo+chunk, len(r.due))]
		c := &crew[E, P]{wheel: w, size: int64(len(part)), stuck: stuck, task: func(i int64) { r.expire(&part[i]) }}
		if rest == nil {
			rest = c.work
		} else {
			w.spawn(c.work)
		}
	}
	return rest
}

// expire lets one entry expire. d is cleared: a round does not keep alive what
// has expired.
func (r *round[E, P]) expire(d *due[E]) {
	e, slot := d.e, d.slot
	*d = due[E]{}
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
		r.unlock()
	}
}

// unlock begins the second step: all have expired, or one is stuck and must not
// hold up what the others want done.
func (r *round[E, P]) unlock() {
	r.open.Store(true)
	w := r.wheel
	top := r.afters.Swap(nil)
	for top != nil {
		var part []func()
		for ; top != nil && len(part) < chunk; top = top.next {
			part = append(part, top.f)
		}
		c := &crew[E, P]{wheel: w, size: int64(len(part)), task: func(i int64) {
			f := part[i]
			part[i] = nil
			returned := false
			defer func() {
				if !returned {
					w.caught(recover())
				}
			}()
			f()
			returned = true
		}}
		w.spawn(c.work)
	}
}

// caught reports a panic. A nil value is runtime.Goexit's: the crew's watch
// finds somebody to go on.
func (w *Wheel[E, P]) caught(v any) {
	if v != nil && w.onPanic != nil {
		w.onPanic(v, debug.Stack())
	}
}

// crew is a number of tasks and the goroutines that work on them: one, unless it
// gets stuck. Each takes the next task and none is taken twice.
type crew[E any, P Entry[E]] struct {
	wheel *Wheel[E, P]
	size  int64
	taken atomic.Int64
	task  func(i int64) // does not panic
	stuck func()        // hears of it; may be nil
}

func (c *crew[E, P]) work() {
	// Not before a goroutine has begun: when a million are due, most wait for
	// their turn, which is no reason to start more.
	c.watch(-1)
	for c.one() {
	}
}

func (c *crew[E, P]) one() bool {
	i := c.taken.Add(1) - 1
	if i < c.size {
		c.task(i)
	}
	return i < c.size
}

// watch looks again after a tick. If no task was taken in between, the last one
// is blocked, and each of the rest gets a goroutine of its own: a task that
// blocks delays the others by two ticks, or by two slices of the scheduler.
// Nothing stops the timer: it retains nothing but the crew, and looks a few
// times at most.
func (c *crew[E, P]) watch(before int64) {
	if c.size == 1 && c.stuck == nil {
		return
	}
	d := max(c.wheel.tickLen(), slice)
	c.wheel.afterFunc(time.Duration(d), func() {
		taken := c.taken.Load()
		switch {
		case taken > c.size: // whoever found no task left has counted too
		case taken != before:
			c.watch(taken)
		default:
			if c.stuck != nil {
				c.stuck()
			}
			for range c.size - taken {
				c.wheel.spawn(func() { c.one() })
			}
		}
	})
}
