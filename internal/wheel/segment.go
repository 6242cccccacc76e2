package wheel

import (
	"math"
	"slices"
	"sync/atomic"
)

const (
	blockBits = 6
	blockLen  = 1 << blockBits // slots of a block: eight cache lines

	// fresh is the lowest bit of a block's word; the rest is the bound, rounded
	// down to even. It says that entries may have come into the block since the
	// tick's chores last fixed deadlines there.
	fresh = 1

	groupBits = 6
	groupLen  = 1 << groupBits // blocks of a group

	// gone in a segment's pins: the segment has been taken out of its table.
	// Far from zero on both sides, so that no number of pins crosses it.
	gone = math.MinInt64 / 2
)

// segment is a power of two of blocks.
type segment[E any] struct {
	mask  uint32
	slots []atomic.Pointer[E]

	// bounds has one word for each block: see fresh. Packed: they are written
	// about once per timeout and read by every arm.
	bounds []atomic.Int64

	// groups has a lower bound for each 64 blocks' words, so that a tick with
	// something due in a large segment looks at a cache line instead of at a
	// hundred kilobytes of bounds.
	groups []atomic.Int64

	// pins counts the entries that came to stay although the segment was no
	// longer the current one.
	pins atomic.Int64

	// The tick's.
	fixing int // the block whose deadlines are fixed next
	count  count[E]
}

func newSegment[E any](blocks int) *segment[E] {
	s := &segment[E]{
		mask:   uint32(blocks - 1),
		slots:  make([]atomic.Pointer[E], blocks*blockLen),
		bounds: make([]atomic.Int64, blocks),
		groups: make([]atomic.Int64, (blocks+groupLen-1)>>groupBits),
	}
	for i := range s.bounds {
		s.bounds[i].Store(far)
	}
	for i := range s.groups {
		s.groups[i].Store(far)
	}
	return s
}

func (s *segment[E]) blocks() int { return len(s.bounds) }

func (s *segment[E]) block(b int) []atomic.Pointer[E] {
	return s.slots[b<<blockBits : (b+1)<<blockBits]
}

// lower makes bound a lower bound of block b, and sets bit in its word. The
// slots come first, then the block, then its group: see Level.Arm.
func (s *segment[E]) lower(b uint32, bound, bit int64) {
	lowerBlock(&s.bounds[b], bound, bit)
	lower(&s.groups[b>>groupBits], bound)
}

// above reports whether lower has something to do for an entry that arrives with
// bound. It is small enough to be inlined, and nearly always says no.
func (s *segment[E]) above(b uint32, bound int64) bool {
	v := s.bounds[b].Load()
	return v&^fresh > bound || v&fresh == 0 || s.groups[b>>groupBits].Load() > bound
}

// pin keeps the segment in its table; false: too late.
func (s *segment[E]) pin() bool { return s.pins.Add(1) > 0 }

// table is the set of a level's segments, immutable. New entries go into cur.
type table[E any] struct {
	cur  *segment[E]
	segs []*segment[E] // cur among them
}

// with returns a table whose current segment has the given number of blocks. It
// takes a segment of this size that is still there, if it can be pinned, so that
// there is at most one of each size, whatever long-lived entry holds it.
func (t *table[E]) with(blocks int) *table[E] {
	for _, s := range t.segs {
		if s.blocks() == blocks && s != t.cur && s.pin() {
			return &table[E]{cur: s, segs: t.segs}
		}
	}
	s := newSegment[E](blocks)
	return &table[E]{cur: s, segs: append(slices.Clone(t.segs), s)}
}

// without returns the table without s, which is not its current segment.
func (t *table[E]) without(s *segment[E]) *table[E] {
	segs := make([]*segment[E], 0, len(t.segs)-1)
	for _, x := range t.segs {
		if x != s {
			segs = append(segs, x)
		}
	}
	return &table[E]{cur: t.cur, segs: segs}
}

// lower makes b a lower bound.
func lower(word *atomic.Int64, b int64) {
	for {
		v := word.Load()
		if v <= b || word.CompareAndSwap(v, b) {
			return
		}
	}
}

// lowerBlock is lower for a block's word; it sets bit too.
func lowerBlock(word *atomic.Int64, b, bit int64) {
	for {
		v := word.Load()
		want := min(v, b)&^fresh | v&fresh | bit
		if v == want || word.CompareAndSwap(v, want) {
			return
		}
	}
}
