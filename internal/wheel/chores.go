package wheel

import "time"

// A tick has two chores beside what is due. It fixes deadlines before the ring
// forgets the ticks that they refer to: a share of the blocks each time, of which
// it reads one word and rarely more. And now and then it counts what is in use,
// and gives back what a peak has left.

const (
	// sweepTicks is within how many ticks fixing has been everywhere.
	sweepTicks = ringLen / 2

	// A census takes some two seconds, so that no tick is held up by it: no
	// tick counts in more than countQuota blocks, a third of a millisecond's worth.
	censusTime = int64(2 * time.Second)
	countQuota = 512

	// A current segment of so many blocks is counted by samples: one block in so
	// many.
	sampleFrom = 256
	sampleStep = 8

	// minPause and maxPause are how long a wheel that could be smaller waits
	// from one census to the next. The pause doubles while nothing changes, as
	// when a few long calls hold a large segment. A wheel that is as small as it
	// can be does not count, and when it is quiet does not wake up for this.
	minPause = int64(time.Second)
	maxPause = 64 * minPause
)

// count is a census of one segment.
type count[E any] struct {
	table *table[E] // the level's when it began; nil: there is none
	pins  int64     // the segment's then
	next  int       // the next block
	live  int       // slots in use in the blocks before it
	seen  bool      // a scan has seen an entry since
}

// chores is what the census keeps about a level.
type chores[E any] struct {
	table *table[E] // at the end of the last one
	peak  int       // the most entries that one has counted since
	since int64     // this time
}

// fixAll does a tick's share of fixing deadlines, in levels where that matters.
func (w *Wheel[E, P]) fixAll(v view) {
	for i := range w.levels {
		l := &w.levels[i]
		t := l.table.Load()
		if t == nil || !v.long(l.max) {
			continue
		}
		for _, seg := range t.segs {
			for range (seg.blocks() + sweepTicks - 1) / sweepTicks {
				w.fixBlock(seg, seg.fixing, v)
				if seg.fixing++; seg.fixing == seg.blocks() {
					seg.fixing = 0
				}
			}
		}
	}
}

// fixBlock fixes the deadlines of entries that have come into a block since its
// last visit: the fresh bit says whether there are any. It clears the bit, then
// reads the slots; arms fill the slot, then look whether the bit is set.
func (w *Wheel[E, P]) fixBlock(seg *segment[E], b int, v view) {
	word := &seg.bounds[b]
	if word.Load()&fresh == 0 {
		return
	}
	word.And(^fresh)
	again := false
	slots := seg.block(b)
	for i := range slots {
		if e := slots[i].Load(); e != nil && e != w.firing && !w.fix(e, v) {
			again = true
		}
	}
	if again {
		word.Or(fresh)
	}
}

// fix fixes the deadline of e; false: the tick that it refers to is to come.
func (w *Wheel[E, P]) fix(e *E, v view) bool {
	p := P(e)
	if p.WheelStamp().Load() != 0 {
		return true
	}
	start := p.WheelStart()
	if start < 0 {
		return true
	}
	if start >= v.k {
		return false
	}
	n, _ := w.ring.after(start, &w.hot.seq)
	p.WheelStamp().CompareAndSwap(0, later(n, p.WheelLimit()))
	return true
}

// census does a tick's share of the counting. It returns when a quiet wheel
// should tick again for its sake.
func (w *Wheel[E, P]) census(v view) int64 {
	c := &w.tick
	begins := !c.counting && v.n >= c.countAt
	left, minimal := false, true
	for i := range w.levels {
		l := &w.levels[i]
		t := l.table.Load()
		if t == nil || len(t.segs) == 1 && t.cur.blocks() == w.minBlocks {
			continue
		}
		minimal = false
		if t != l.chores.table {
			c.countAt = min(c.countAt, v.n+minPause)
		}
		for _, seg := range t.segs {
			if begins {
				seg.count = count[E]{table: t, pins: seg.pins.Load()}
			}
			if seg.count.table == nil { // it came after the beginning
				continue
			}
			if !w.countOn(seg, seg == t.cur, v) {
				left = true
			} else if w.counted(l, t, seg, v) {
				break
			}
		}
	}
	switch {
	case minimal:
		c.counting, c.pause, c.countAt = false, minPause, v.n+minPause
		return far
	case left:
		c.counting = true
		return v.n + v.tick
	case begins || c.counting:
		c.counting = false
		c.pause = min(2*max(c.pause, minPause), maxPause)
		if w.changed() {
			c.pause = minPause
		}
		c.countAt = v.n + c.pause
	}
	return c.countAt
}

// changed reports whether a level has another table than after the last census.
func (w *Wheel[E, P]) changed() (changed bool) {
	for i := range w.levels {
		l := &w.levels[i]
		if t := l.table.Load(); t != l.chores.table {
			changed, l.chores.table = true, t
		}
	}
	return changed
}

// countOn does a tick's share of counting a segment and reports whether that is
// the last one. In the current segment every eighth block stands for the others:
// entries are put at random. Of another one it matters only whether it is empty.
func (w *Wheel[E, P]) countOn(seg *segment[E], current bool, v view) (done bool) {
	c := &seg.count
	step := 1
	if current && seg.blocks() >= sampleFrom {
		step = sampleStep
	}
	quota := min(1+int(int64(seg.blocks()/step)*v.tick/censusTime), countQuota)
	for ; quota > 0 && c.next < seg.blocks(); quota-- {
		slots := seg.block(c.next)
		for i := range slots {
			if slots[i].Load() != nil {
				c.live += step
			}
		}
		if c.live > 0 && !current {
			return true
		}
		c.next += step
	}
	return c.next >= seg.blocks()
}

// counted is called when seg is counted: it drops an empty segment that has been
// replaced, and replaces the current one after a second with little in it. true:
// the table has changed.
func (w *Wheel[E, P]) counted(l *Level[E, P], t *table[E], seg *segment[E], v view) bool {
	n, c := seg.count, &l.chores
	seg.count = count[E]{}
	if seg != t.cur {
		return n.table == t && n.live == 0 && !n.seen && l.drop(t, seg, n.pins)
	}
	if c.since == 0 {
		c.since = v.n
	}
	c.peak = max(c.peak, n.live)
	if v.n-c.since < minPause {
		return false
	}
	peak := c.peak
	c.peak, c.since = 0, v.n
	if seg.blocks() == w.minBlocks || peak*shrinkAt > len(seg.slots) {
		return false
	}
	// It should be far from both the next shrinking and the next growing.
	blocks := w.minBlocks
	for blocks*blockLen < peak*growth {
		blocks *= growth
	}
	return l.table.CompareAndSwap(t, t.with(blocks))
}

// drop takes seg, which a census has found empty, out of table t. pins is what
// it found there. No armed entry is lost by it, and none is out of Each's sight
// at any time:
//
// An arm publishes its entry in a segment that was current when it began, and
// then looks at the table again. If it is still the same, the entry stays: then
// seg was current after the publication. The table has been t since before the
// census began (the compare-and-swap below says so; t cannot be another table at
// the same address as long as we hold it), and seg is not current in t; so the
// publication came before the census, which would have seen the entry.
//
// If the table has changed, the arm pins seg, and stays if it may. If it pinned
// before the census began, that would have seen the entry; if later, our
// compare-and-swap on pins fails. If it finds seg gone it takes its entry back
// and goes elsewhere. A tick cannot have handed it out before: it would have seen
// it after the census had begun (seen), or before, and then so would the census.
func (l *Level[E, P]) drop(t *table[E], seg *segment[E], pins int64) bool {
	if !seg.pins.CompareAndSwap(pins, gone) {
		return false
	}
	if l.table.CompareAndSwap(t, t.without(seg)) {
		return true
	}
	// Another arm has grown the level. Those who found seg gone meanwhile went
	// elsewhere; those who come now may stay.
	seg.pins.Store(pins + 1)
	return false
}
