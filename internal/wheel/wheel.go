package wheel

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// Wheel keeps the deadlines of records of type E. Make it with [New]; all
// methods are safe for concurrent use, and none takes a lock. It needs no
// closing: a wheel with nothing pending holds no timer and no goroutine.
type Wheel[E any, P Entry[E]] struct {
	now       func() int64
	afterFunc func(time.Duration, func()) Timer
	spawn     func(func()) // starts a goroutine
	finally   func(func()) // calls
	firing    *E
	onPanic   func(any, []byte)
	base      time.Time // Time(1); zero if Config.Now was given
	minBlocks int
	bubble    bool // made in a synctest bubble

	_   [128]byte
	hot hot
	_   [128]byte

	// Written by arms while the wheel is quiet.
	burst   atomic.Int64 // arms
	burstAt atomic.Int64 // when burst was last a multiple of burstLen
	want    atomic.Bool  // arms are frequent: tick

	chain  chain
	ring   ring
	levels [levels]Level[E, P]

	tick tickState[E]
}

// hot is what every call reads. All of it is written a few times a tick at most,
// so it may share cache lines with itself, but with nothing else.
type hot struct {
	// coarse is the time of the last tick, or -1: the wheel is quiet and calls
	// read the clock.
	coarse atomic.Int64

	// seq is the number of the latest tick that has begun. A tick begins by
	// counting itself, then reads the clock.
	seq atomic.Int64

	// shortest is the shortest limit in use.
	shortest atomic.Int64

	// wakeAt is the time from which on deadlines are looked at by a wake-up that
	// has been arranged; Never: none has, or a tick is on its way. See chain.
	wakeAt atomic.Int64

	busy atomic.Bool // something was armed since the last tick
}

// New returns a quiet wheel without limits in use: its tick is 50 ms.
func New[E any, P Entry[E]](c Config[E]) *Wheel[E, P] {
	w := &Wheel[E, P]{
		now:       c.Now,
		afterFunc: c.AfterFunc,
		spawn:     func(f func()) { go f() },
		finally:   func(f func()) { f() },
		firing:    c.Firing,
		onPanic:   c.OnPanic,
		minBlocks: minBlocks,
		bubble:    Bubbled(time.Now()),
	}
	if w.now == nil {
		base := time.Now()
		w.base = base
		w.now = func() int64 { return int64(time.Since(base)) + 1 }
	}
	if w.afterFunc == nil {
		w.afterFunc = func(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
	}
	// A segment has at least a block a processor, lest those that run at once
	// meet on the same cache lines.
	for w.minBlocks < runtime.GOMAXPROCS(0) {
		w.minBlocks *= 2
	}
	w.hot.coarse.Store(-1)
	w.hot.shortest.Store(Never)
	w.hot.wakeAt.Store(Never)
	for i := range w.levels {
		l := &w.levels[i]
		l.wheel, l.max = w, maxLimit(i)
		l.low.Store(Never)
	}
	return w
}

// Use says that a limit is in use. The tick is a sixteenth of the shortest one,
// between 1 ms and 50 ms. Start with a shorter limit has the same effect.
// Limits of zero and less are ignored.
func (w *Wheel[E, P]) Use(limit time.Duration) {
	for limit > 0 {
		v := w.hot.shortest.Load()
		if v <= int64(limit) {
			return
		}
		if w.hot.shortest.CompareAndSwap(v, int64(limit)) {
			// A wake-up may have been arranged at the old tick's leisure. A tick
			// that runs reads the length first, so ask for it before wakeAt: if
			// none runs yet, the next one knows the new length.
			if tickOf(int64(limit)) < tickOf(v) &&
				(w.chain.run.Load() != idle || w.hot.wakeAt.Load() != Never) {
				w.rouse()
			}
			return
		}
	}
}

// SetShortest makes limit the shortest one in use, also if shorter ones were:
// after a reload. Zero and less: none is in use.
func (w *Wheel[E, P]) SetShortest(limit time.Duration) {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	if old := w.hot.shortest.Load(); int64(limit) < old {
		w.Use(limit)
		return
	}
	w.hot.shortest.Store(int64(limit))
}

// tickOf is the tick for the shortest limit in use.
func tickOf(shortest int64) int64 {
	return min(max(shortest/16, int64(time.Millisecond)), int64(50*time.Millisecond))
}

func (w *Wheel[E, P]) tickLen() int64 { return tickOf(w.hot.shortest.Load()) }

// Level returns the level for entries with the given limit in nanoseconds;
// Never for those without a deadline.
func (w *Wheel[E, P]) Level(limit int64) *Level[E, P] { return &w.levels[levelOf(limit)] }

// Start begins to measure limit, in nanoseconds. The caller keeps start in the
// record for WheelStart and hands bound, which the deadline is not before, to
// [Level.Arm].
//
// A start of zero or more is the number of a tick: the deadline is the time of
// the tick after it plus limit. A negative one is the exact deadline, negated:
// the wheel is quiet, and Start has read the clock. [Refused]: the wheel is
// quiet and the caller in a foreign bubble (see [Wheel.Foreign]); then the entry
// must not be armed.
func (w *Wheel[E, P]) Start(limit int64) (start, bound int64) {
	if limit < w.hot.shortest.Load() {
		w.Use(time.Duration(limit))
	}
	// coarse before seq: what coarse holds was published by tick seq or an
	// earlier one, so the tick after seq reads the clock later than coarse, and
	// later than now: bound is a lower bound, and the deadline is never early.
	if c := w.hot.coarse.Load(); c > 0 {
		return w.hot.seq.Load(), later(c, limit)
	}
	n := w.now()
	if n <= 0 {
		return Refused, 0
	}
	bound = later(n, limit)
	return -bound, bound
}

// Deadline returns the deadline of e in wheel time, or Never. The first call
// may read the clock; from then on the deadline is fixed: later calls return the
// same, and e does not expire before it.
//
// In a foreign bubble the answer for an entry of the current tick is an estimate
// and fixes nothing.
func (w *Wheel[E, P]) Deadline(e *E) int64 {
	p := P(e)
	for {
		switch v := p.WheelStamp().Load(); {
		case v > 0:
			return v
		case v < 0:
			return -v
		}
		start := p.WheelStart()
		if start < 0 {
			return exact(start)
		}
		n, ok := w.ring.after(start, &w.hot.seq)
		if !ok {
			// The tick that e waits for is to come. The clock is past e's start
			// and will do, if all agree on it.
			if n = w.now(); n <= 0 {
				return later(max(w.hot.coarse.Load(), 0), p.WheelLimit())
			}
		}
		if d := later(n, p.WheelLimit()); p.WheelStamp().CompareAndSwap(0, d) {
			return d
		}
	}
}

// Tell is Deadline for somebody who may act on the answer: it leaves a mark, so
// that [Told] knows later that the stamp is a promise.
func (w *Wheel[E, P]) Tell(e *E) int64 {
	p := P(e)
	for {
		d := w.Deadline(e)
		v := p.WheelStamp().Load()
		switch {
		case d >= far || v < 0 || v == d && d&told != 0:
			return d
		case v == 0 && p.WheelStart() >= 0: // a foreign bubble's estimate
			return d
		case v != 0 && v != d: // somebody else was faster
			continue
		}
		if p.WheelStamp().CompareAndSwap(v, d|told) {
			return d | told
		}
	}
}

// Told reports whether a stamp is a deadline that somebody was told and that has
// not been handed out to expire.
func Told(stamp int64) bool { return stamp > 0 && stamp < far && stamp&told != 0 }

// Time converts wheel time for a wheel on the real clock. Never and what is
// near it become a time some 292 years ahead.
func (w *Wheel[E, P]) Time(ns int64) time.Time { return w.base.Add(time.Duration(ns - 1)) }

// Now reads the wheel's clock; zero or less in a foreign bubble.
func (w *Wheel[E, P]) Now() int64 { return w.now() }

// Foreign reports whether the caller is in a synctest bubble in which the wheel
// was not made. It reads the clock: a bubble's begins in the year 2000, before
// the wheel.
func (w *Wheel[E, P]) Foreign() bool { return w.now() <= 0 }

// Ticking reports whether the wheel ticks. If not, it is quiet: there is at most
// one timer, for the earliest deadline.
func (w *Wheel[E, P]) Ticking() bool { return w.hot.coarse.Load() > 0 }

// Each calls f with every entry that is armed and with its slot. Entries that
// are armed before Each begins and stay armed are found; of others some. None is
// found twice while it stays. f may disarm the entry.
func (w *Wheel[E, P]) Each(f func(e *E, slot *atomic.Pointer[E])) {
	for i := range w.levels {
		t := w.levels[i].table.Load()
		if t == nil {
			continue
		}
		for _, seg := range t.segs {
			for k := range seg.slots {
				if e := seg.slots[k].Load(); e != nil && e != w.firing {
					f(e, &seg.slots[k])
				}
			}
		}
	}
}

// Pending returns the number of armed entries that have a deadline. It looks
// through all slots.
func (w *Wheel[E, P]) Pending() int {
	n := 0
	w.Each(func(e *E, _ *atomic.Pointer[E]) {
		switch v := P(e).WheelStamp().Load(); {
		case v == Never:
		case v == 0 && P(e).WheelStart() <= -Never:
		default:
			n++
		}
	})
	return n
}
