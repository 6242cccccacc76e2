package wheel

import (
	"sync/atomic"
	"time"
)

const (
	// quietAfter is how many ticks in a row may pass without an arm.
	quietAfter = 2

	// distrust is how long the wheel stays quiet after a late tick: a few turns
	// of a crowded scheduler.
	distrust = int64(100 * time.Millisecond)
)

// tickState belongs to the running tick.
type tickState[E any] struct {
	last  int64 // the time of the latest tick
	idle  int   // ticks in a row without an arm
	trust int64 // ticks may be punctual again from this time on
	due   []due[E]

	// The census: see there.
	counting bool
	countAt  int64 // when the next one begins
	pause    int64 // from one to the next
}

// due is an entry to expire.
type due[E any] struct {
	e    *E
	slot *atomic.Pointer[E]
}

// leap is how far the clock may move between two ticks that the chain's timer is
// still trusted: see chain.gen. Any length will do that is short beside the 26
// years between a bubble's clock and ours; each longer pause costs a new timer.
const leap = int64(time.Minute)

// runTick is one tick. It never waits for anybody. It returns what is left to be
// done by whoever ran it, or nil: see launch.
func (w *Wheel[E, P]) runTick() (rest func()) {
	w.hot.wakeAt.Store(Never) // before any bound is read: see chain
	if w.lost() {
		w.want.Store(false) // the next burst asks anew
		return nil
	}
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
		w.tick.countAt = min(w.tick.countAt, w.tick.last+minPause)
	}

	// Count, then read the clock: whoever has seen a lower number started
	// before the time read.
	k := w.hot.seq.Load() + 1
	w.hot.seq.Store(k)
	n := w.now()
	if n < w.tick.last || n-w.tick.last > leap {
		w.chain.gen.Add(1)
	}
	n = max(n, w.tick.last, 1)
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
	w.fixAll(v)
	chores := w.census(v)
	if w.want.Load() && w.tick.trust > n { // see stays
		chores = min(chores, w.tick.trust)
	}
	rest = w.launch()
	switch {
	case stay:
		w.next(n+tick, max(n+tick-w.now(), tick/4))
	case min(low, chores) < far:
		at := min(low, chores)
		w.next(at, max(at-n, 0)+tick/2)
	}
	return rest
}

// lost reports whether this tick runs in a synctest bubble that is not the
// wheel's. It must not take that one's time, which no later one would reach: as
// time never goes back here, nothing would be due any more.
//
// Those who arm in a bubble start no timers there, as they find that its clock is
// before the wheel. Only one that has slept for more than the years since 2000 is
// not found out so. Its arms are lost, too, but for a tick of others: there is
// nobody to run them.
func (w *Wheel[E, P]) lost() bool {
	return !w.bubble && w.now()-w.tick.last > leap && Bubbled(time.Now())
}

// Bubbled reports whether now, a reading of the system's clock, comes from a
// synctest bubble: there time begins at midnight UTC 2000-01-01, a date at which
// no machine that runs this can really be, and has no monotonic part.
func Bubbled(now time.Time) bool {
	return now.Year() < 2010 || now == now.Round(0)
}

// stays decides whether the wheel ticks from now on.
//
// On a crowded machine, where ticks come late, a deadline that takes two of them
// is late twice; a quiet wheel's is late once. So after a late tick the wheel
// stays quiet for a while, however frequent the calls.
func (w *Wheel[E, P]) stays(tick int64) bool {
	n := w.now()
	ticking := w.hot.coarse.Load() > 0
	if ticking && n-w.tick.last > tick+tick/4+slice/2 {
		w.tick.trust = n + distrust
		return false
	}
	if w.want.Load() {
		if n < w.tick.trust {
			return false // still wanted then: no arm asks again, runTick does
		}
		w.want.Store(false)
		w.tick.idle = 0
		return true
	}
	if w.hot.busy.Load() {
		w.hot.busy.Store(false)
		w.tick.idle = 0
	} else {
		w.tick.idle++
	}
	return ticking && w.tick.idle < quietAfter
}

// view is what a tick knows: its number, its time, and the length of a tick.
type view struct{ k, n, tick int64 }

// long reports whether deadlines of a level must be fixed by the chores, because its
// entries may outlive the ring's memory of the tick they refer to. An eighth of
// the ring leaves room for ticks out of turn, and for a tick that has just
// become shorter.
func (v view) long(limit int64) bool { return limit/v.tick > ringLen/8 }

// scan hands out what is due in a level and returns a lower bound of the rest.
func (w *Wheel[E, P]) scan(l *Level[E, P], v view) int64 {
	if low := l.low.Load(); low > v.n {
		return low
	}
	l.low.Store(Never) // before any group's bound is read
	low := int64(far)
	long := v.long(l.max)
	for _, seg := range l.table.Load().segs {
		for g := range seg.groups {
			bound := seg.groups[g].Load()
			if bound <= v.n {
				bound = w.scanGroup(seg, g, v, long)
			}
			low = min(low, bound)
		}
	}
	if low < far {
		lower(&l.low, low)
	}
	return low
}

// scanGroup looks at the due blocks of a group and sets the group's bound anew.
func (w *Wheel[E, P]) scanGroup(seg *segment[E], g int, v view, long bool) int64 {
	seg.groups[g].Store(far) // before any block's bound is read
	low := int64(far)
	first := g << groupBits
	for b := first; b < min(first+groupLen, len(seg.bounds)); b++ {
		// One comparison for nearly all: low is never below v.n+1. A fresh bit
		// makes it at worst fail in vain.
		bound := seg.bounds[b].Load()
		if bound > low {
			continue
		}
		if bound &^= fresh; bound <= v.n {
			bound = w.scanBlock(seg, b, v, long)
		}
		low = min(low, bound)
	}
	if low < far {
		lower(&seg.groups[g], low)
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
		seg.count.seen = true
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
