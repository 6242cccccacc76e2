package wheel

import (
	"sync/atomic"
	"unsafe"
)

const (
	RingLen    = ringLen
	HotLen     = unsafe.Sizeof(hot{})
	DistrustNS = distrust
)

// Spawn replaces how the wheel starts goroutines and what a tick's own does in
// the end.
func (w *Wheel[E, P]) Spawn(f func(func())) { w.spawn, w.finally = f, f }

// TickNow runs a tick out of turn.
func (w *Wheel[E, P]) TickNow() { w.enter() }

// WantTicks is what many arms at once do.
func (w *Wheel[E, P]) WantTicks() {
	if w.want.CompareAndSwap(false, true) {
		w.rouse()
	}
}

// CountNow makes the next tick begin a census.
func (w *Wheel[E, P]) CountNow() { w.tick.countAt = 0 }

// Count makes a whole census out of turn. Nothing else may tick meanwhile.
func (w *Wheel[E, P]) Count() {
	w.CountNow()
	w.TickNow()
	for w.tick.counting {
		w.TickNow()
	}
}

// TickLen is the length of a tick in nanoseconds.
func (w *Wheel[E, P]) TickLen() int64 { return w.tickLen() }

// Ticks is the number of ticks that have begun.
func (w *Wheel[E, P]) Ticks() int64 { return w.hot.seq.Load() }

// Gen is the number of chains that were given up.
func (w *Wheel[E, P]) Gen() int64 { return w.chain.gen.Load() }

// HotGap is the distance of the hot words from what lies before and after them.
func (w *Wheel[E, P]) HotGap() (before, after uintptr) {
	return unsafe.Offsetof(w.hot) - unsafe.Offsetof(w.minBlocks) - unsafe.Sizeof(w.minBlocks),
		unsafe.Offsetof(w.burst) - unsafe.Offsetof(w.hot) - unsafe.Sizeof(w.hot)
}

// LevelOf is the index of the level for a limit.
func LevelOf(limit int64) int { return levelOf(limit) }

// MaxLimit is the upper end of a level.
func MaxLimit(level int) int64 { return maxLimit(level) }

// Slots is how many slots the level has, in all its segments.
func (l *Level[E, P]) Slots() int {
	n := 0
	if t := l.table.Load(); t != nil {
		for _, s := range t.segs {
			n += len(s.slots)
		}
	}
	return n
}

// Segments is how many segments the level has.
func (l *Level[E, P]) Segments() int {
	if t := l.table.Load(); t != nil {
		return len(t.segs)
	}
	return 0
}

// Replace makes a segment of the given number of blocks the current one, as
// growing and shrinking do.
func (l *Level[E, P]) Replace(blocks int) bool {
	t := l.table.Load()
	return t != nil && t.cur.blocks() != blocks && l.table.CompareAndSwap(t, t.with(blocks))
}

// Blocks is the size of the current segment.
func (l *Level[E, P]) Blocks() int { return l.table.Load().cur.blocks() }

// ForceScan makes the next tick compare the bounds of all the level's blocks.
func (l *Level[E, P]) ForceScan() {
	for _, s := range l.table.Load().segs {
		for g := range s.groups {
			s.groups[g].Store(1)
		}
	}
	l.low.Store(1)
}

// Stale is an arm that was interrupted after it had loaded the table.
func (l *Level[E, P]) Stale() (publish func(e *E) *atomic.Pointer[E], kept func() bool) {
	t := l.table.Load()
	return func(e *E) *atomic.Pointer[E] {
		s := &t.cur.slots[0]
		s.CompareAndSwap(nil, e)
		return s
	}, func() bool { return l.kept(t) }
}
