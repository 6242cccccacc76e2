package wheel

import "sync/atomic"

// quietAfter is how many ticks in a row may pass without an arm.
const quietAfter = 2

// tickState belongs to the running tick.
type tickState[E any] struct {
	last  int64 // the time of the latest tick
	idle  int   // ticks in a row without an arm
	pause int64 // how long a quiet wheel waits between chores
	due   []due[E]
}

// due is an entry to expire.
type due[E any] struct {
	e    *E
	slot *atomic.Pointer[E]
}

// runTick is one tick. It never waits for anybody.
func (w *Wheel[E, P]) runTick() {
	w.hot.wakeAt.Store(Never) // before any bound is read: see chain
	tick := w.tickLen()
	stay := w.stays(tick)
	if !stay && w.hot.coarse.Load() > 0 {
		// Going quiet. Arms read coarse after they have lowered the bounds, so
		// either they see this, or we see their bounds. Before this tick counts
		// itself: a call that gets its number from Start then sees that the
		// wheel is quiet when it arms, and fixes its deadline itself, as it may
		// be long until the next tick.
		w.hot.coarse.Store(-1)
		w.tick.pause = minPause
	}

	// Count, then read the clock: whoever has seen a lower number started
	// before the time read.
	k := w.hot.seq.Load() + 1
	w.hot.seq.Store(k)
	n := max(w.now(), w.tick.last, 1)
	w.tick.last = n
	w.ring.publish(k, n)
	if stay {
		w.hot.coarse.Store(n) // after the number: see Start
	}

	v := view{k: k, n: n, tick: tick}
	low := int64(far)
	for i := range w.levels {
		low = min(low, w.scan(&w.levels[i], v))
	}
	chores := w.sweepAll(v, stay)
	w.launch()
	switch {
	case stay:
		w.next(n+tick, max(n+tick-w.now(), tick/4))
	case min(low, chores) < far:
		at := min(low, chores)
		w.next(at, max(at-n, 0)+tick/2)
	}
}

// stays decides whether the wheel ticks from now on.
func (w *Wheel[E, P]) stays(tick int64) bool {
	if w.want.Load() {
		w.want.Store(false)
		w.tick.idle = 0
		return true
	}
	if w.hot.coarse.Load() <= 0 {
		return false
	}
	if w.hot.busy.Load() {
		w.hot.busy.Store(false)
		w.tick.idle = 0
	} else {
		w.tick.idle++
	}
	// Where ticks come late, exact deadlines and a timer of the runtime's are
	// more punctual.
	return w.tick.idle < quietAfter && w.now()-w.tick.last <= 2*tick
}

// view is what a tick knows: its number, its time, and the length of a tick.
type view struct{ k, n, tick int64 }

// long reports whether the sweep must fix deadlines of a level, because its
// entries may outlive the ring's memory of the tick they refer to. An eighth of
// the ring leaves room for ticks out of turn, and for a tick that has just
// become shorter.
func (v view) long(limit int64) bool { return limit/v.tick > ringLen/8 }

// scan hands out what is due in a level and returns a lower bound of the rest.
func (w *Wheel[E, P]) scan(l *Level[E, P], v view) int64 {
	if low := l.low.Load(); low > v.n {
		return low
	}
	l.low.Store(Never) // before any block's bound is read
	low := int64(far)
	long := v.long(l.max)
	for _, seg := range l.table.Load().segs {
		for b := range seg.bounds {
			bound := seg.bounds[b].Load() &^ fresh
			if bound <= v.n {
				bound = w.scanBlock(seg, b, v, long)
			}
			low = min(low, bound)
		}
	}
	if low < far {
		lower(&l.low, low)
	}
	return low
}

// scanBlock looks at every entry of a block and sets the block's bound anew.
func (w *Wheel[E, P]) scanBlock(seg *segment[E], b int, v view, long bool) int64 {
	seg.bounds[b].Store(far) // before any slot is read
	bound, bit := int64(far), int64(0)
	slots := seg.block(b)
	for i := range slots {
		e := slots[i].Load()
		if e == nil || e == w.firing {
			continue
		}
		seg.pass.seen = true
		d, loose := w.look(e, &slots[i], v, long)
		bound = min(bound, d)
		if loose {
			bit = fresh
		}
	}
	if bound < far || bit != 0 {
		lowerBlock(&seg.bounds[b], bound, bit)
	}
	return bound
}

// look hands e out if it is due and returns a lower bound of its deadline if
// not. loose: its deadline still refers to a tick's time.
//
// Handing out negates the stamp, so no later tick does it again: the entry stays
// in its slot until its goroutine runs, which may be a while if a million are
// due. The compare-and-swap also settles it with Deadline: whichever fixes the
// deadline first, the other follows.
func (w *Wheel[E, P]) look(e *E, slot *atomic.Pointer[E], v view, long bool) (bound int64, loose bool) {
	p := P(e)
	stamp := p.WheelStamp()
	for {
		s := stamp.Load()
		if s < 0 || s >= far {
			return far, false
		}
		d := s
		if s == 0 {
			start := p.WheelStart()
			loose = start >= 0
			switch {
			case start >= v.k: // its tick is the next one
				return later(v.n, p.WheelLimit()), true
			case loose:
				n, _ := w.ring.after(start, &w.hot.seq)
				d = later(n, p.WheelLimit())
			default:
				d = exact(start)
			}
			if d >= far {
				return far, false
			}
		}
		switch {
		case d <= v.n:
			if stamp.CompareAndSwap(s, -d) {
				w.tick.due = append(w.tick.due, due[E]{e, slot})
				return far, false
			}
		case s == 0 && loose && long:
			if stamp.CompareAndSwap(0, d) {
				return d, false
			}
		default:
			return d, s == 0 && loose
		}
	}
}
