package wheel

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// levels below the last hold limits under 4^i ms: 1 ms, 4 ms, … 3 days; the
	// one before the last all longer ones, the last entries without a deadline.
	levels    = 17
	held      = levels - 1
	longest   = held - 1
	minBlocks = 4

	// probes is how many random cache lines an arm looks at before it holds the
	// segment for full. At 95 % occupancy all eight slots of a line are taken
	// with probability 2/3, of twelve lines with 1 %.
	probes   = 12
	lineLen  = 8 // slots of a cache line of 64 bytes
	growth   = 4
	shrinkAt = 16
)

// levelOf returns the index of the level for a limit in nanoseconds.
func levelOf(limit int64) int {
	if limit == Never {
		return held
	}
	ms := uint64(max(limit, 0)) / uint64(time.Millisecond)
	return min((bits.Len64(ms)+1)/2, longest)
}

// maxLimit is the upper end of a level's limits.
func maxLimit(level int) int64 {
	if level >= longest {
		return Never
	}
	return int64(time.Millisecond) << (2 * level)
}

// Level holds the entries whose limits are of one magnitude. Callers keep the
// pointer: it is good for as long as the wheel.
type Level[E any, P Entry[E]] struct {
	wheel *Wheel[E, P]
	table atomic.Pointer[table[E]] // nil until the first arm

	// low is a lower bound of all the groups' bounds: a tick passes over a
	// level with nothing due.
	low atomic.Int64

	max int64 // the largest limit here

	chores chores[E] // the tick's

	// A level's words are read by every arm; the neighbor's must not be on the
	// same lines.
	_ [64]byte
}

// Arm puts e into a slot, where it is due after its deadline, and returns the
// slot. The owner disarms by slot.CompareAndSwap(e, nil); success is the
// decision that e did not expire. bound is what [Wheel.Start] returned, or
// [Never]. What WheelStart and WheelLimit read must have been set before.
//
// The entry may expire, or be found by [Wheel.Each], before Arm returns.
func (l *Level[E, P]) Arm(e *E, bound int64) *atomic.Pointer[E] {
	w := l.wheel
	for {
		t := l.table.Load()
		if t == nil {
			t = l.first()
		}
		// Claim and publish in one.
		seg, h := t.cur, hint()
		b := uint32(h>>32) & seg.mask
		s := &seg.slots[uint(b)<<blockBits|uint(h>>(64-blockBits))]
		if s.Load() != nil || !s.CompareAndSwap(nil, e) {
			t, b, s = l.probe(t, e)
			seg = t.cur
		}
		// Publish, then lower the block's bound, then the group's, then the
		// level's, then look whether somebody is going to look at them. The tick
		// goes the other way: it resets the level's bound, then reads the groups';
		// resets a group's, then reads the blocks'; resets a block's, then reads
		// the slots. Atomics are sequentially consistent, so of the two at each
		// step one sees the other. Deadlines of one limit rise, so nearly always
		// these are three loads.
		if seg.above(b, bound) {
			seg.lower(b, bound, fresh)
		}
		if l.low.Load() > bound {
			lower(&l.low, bound)
		}
		if !l.kept(t) {
			// No tick has seen the entry there. Take it back, unless a visitor
			// has taken it.
			if s.CompareAndSwap(e, nil) {
				continue
			}
			return s
		}
		if w.hot.coarse.Load() <= 0 {
			w.armQuiet(e, bound)
		} else if !w.hot.busy.Load() && bound < far {
			w.hot.busy.Store(true)
		}
		return s
	}
}

// kept reports whether an entry that was published in t's current segment may
// stay there. If not, the segment has been dropped: see drop.
func (l *Level[E, P]) kept(t *table[E]) bool { return l.table.Load() == t || t.cur.pin() }

// first makes the level's first table.
func (l *Level[E, P]) first() *table[E] {
	s := newSegment[E](l.wheel.minBlocks)
	l.table.CompareAndSwap(nil, &table[E]{cur: s, segs: []*segment[E]{s}})
	return l.table.Load()
}

// probe finds another slot, mostly at random, and grows the level if there is none. From the
// same hint all would follow the same path, and a goroutine that starts
// thousands of futures has one hint: past the first line only chance spreads
// them.
//
//go:noinline
func (l *Level[E, P]) probe(t *table[E], e *E) (_ *table[E], block uint32, slot *atomic.Pointer[E]) {
	for {
		seg := t.cur
		for n := range probes {
			h := rand.Uint64()
			if n == 0 {
				// The neighbors of the slot that was taken are in the cache, and
				// one of them is free more often than not.
				h = hint()
			}
			b := uint32(h>>32) & seg.mask
			line := uint(b)<<blockBits | uint(h>>(64-blockBits))&^(lineLen-1)
			for i := range uint(lineLen) {
				s := &seg.slots[line|i]
				if s.Load() == nil && s.CompareAndSwap(nil, e) {
					return t, b, s
				}
			}
		}
		t = l.grow(t)
	}
}

// grow makes the current segment four times as large, if t is still the table.
// Whoever loses the compare-and-swap drops what it made.
func (l *Level[E, P]) grow(t *table[E]) *table[E] {
	if now := l.table.Load(); now != t {
		return now
	}
	if l.table.CompareAndSwap(t, t.with(t.cur.blocks()*growth)) {
		l.wheel.wakeForChores()
	}
	return l.table.Load()
}
