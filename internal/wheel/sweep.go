package wheel

import "time"

// The sweep is a slow second round through all blocks, a few of them each tick.
// It fixes deadlines before the ring forgets the ticks that they refer to,
// counts what is in use, and gives back what a peak has left.

const (
	// sweepTicks is within how many ticks the sweep has been everywhere.
	sweepTicks = ringLen / 2

	// quietQuota is how many blocks of a segment one tick of a quiet wheel
	// looks at: some 100 µs' worth. Such ticks are rare.
	quietQuota = 4096

	// minPause and maxPause are how long a quiet wheel that could be smaller
	// waits before it looks again. The pause doubles while nothing changes, as
	// when a few long calls hold a large segment. A wheel that is as small as it
	// can be does not wake up for this.
	minPause = int64(time.Second)
	maxPause = 64 * minPause
)

// pass is the sweep's state in a segment.
type pass[E any] struct {
	cursor int       // the next block
	live   int       // slots in use in the blocks before it
	table  *table[E] // the level's when the pass began
	pins   int64     // the segment's then
	seen   bool      // a scan has seen an entry since
}

// chores is the sweep's state in a level.
type chores[E any] struct {
	table *table[E] // at the last sweep
	peak  int       // the most entries that a pass has counted since
	since int64     // this time
}

// sweepAll does a tick's share of the sweep. It returns when a quiet wheel should
// tick again for its sake.
func (w *Wheel[E, P]) sweepAll(v view, ticking bool) int64 {
	at := int64(far)
	changed := false
	for i := range w.levels {
		l := &w.levels[i]
		t := l.table.Load()
		if t == nil {
			continue
		}
		for _, seg := range t.segs {
			w.sweep(l, t, seg, v, ticking)
		}
		t = l.table.Load()
		if t != l.chores.table {
			changed, l.chores.table = true, t
		}
		if ticking || len(t.segs) == 1 && t.cur.blocks() == w.minBlocks {
			continue
		}
		at = min(at, v.n+max(w.tick.pause, minPause))
		for _, seg := range t.segs {
			if seg.pass.cursor != 0 { // go through with it
				at = v.n + v.tick
			}
		}
	}
	if changed {
		w.tick.pause = minPause
	} else if at < far && at > v.n+v.tick {
		w.tick.pause = min(2*max(w.tick.pause, minPause), maxPause)
	}
	return at
}

// sweep does a tick's share of one segment.
func (w *Wheel[E, P]) sweep(l *Level[E, P], t *table[E], seg *segment[E], v view, ticking bool) {
	quota := (seg.blocks() + sweepTicks - 1) / sweepTicks
	if !ticking {
		quota = min(quietQuota, seg.blocks())
	}
	p := &seg.pass
	long := v.long(l.max)
	for ; quota > 0; quota-- {
		if p.cursor == 0 {
			*p = pass[E]{table: t, pins: seg.pins.Load()}
		}
		p.live += w.sweepBlock(seg, p.cursor, v, long)
		if p.cursor++; p.cursor == seg.blocks() {
			p.cursor = 0
			if w.passed(l, t, seg, v) {
				return
			}
		}
	}
}

// sweepBlock returns how many slots of a block are in use. In a long level it
// fixes the deadlines of entries that have come since its last visit; the fresh
// bit spares it reading entries which it knows. It clears the bit, then reads
// the slots; arms fill the slot, then look whether the bit is set.
func (w *Wheel[E, P]) sweepBlock(seg *segment[E], b int, v view, long bool) (live int) {
	word := &seg.bounds[b]
	visit := long && word.Load()&fresh != 0
	if visit {
		word.And(^fresh)
	}
	again := false
	slots := seg.block(b)
	for i := range slots {
		e := slots[i].Load()
		if e == nil {
			continue
		}
		live++
		if visit && e != w.firing && !w.fix(e, v) {
			again = true
		}
	}
	if again {
		word.Or(fresh)
	}
	return live
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

// passed is called when a pass through seg is complete: it drops an empty
// segment that has been replaced, and replaces the current one after a second
// with little in it. true: the table has changed.
func (w *Wheel[E, P]) passed(l *Level[E, P], t *table[E], seg *segment[E], v view) bool {
	p, c := &seg.pass, &l.chores
	if seg != t.cur {
		return p.table == t && p.live == 0 && !p.seen && l.drop(t, seg)
	}
	if c.since == 0 {
		c.since = v.n
	}
	c.peak = max(c.peak, p.live)
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

// drop takes seg, which a complete pass has found empty, out of table t. No
// armed entry is lost by it, and none is out of Each's sight at any time:
//
// An arm publishes its entry in a segment that was current when it began, and
// then looks at the table again. If it is still the same, the entry stays: then
// seg was current after the publication. The table has been t since before the
// pass began (the compare-and-swap below says so; t cannot be another table at
// the same address as long as we hold it), and seg is not current in t; so the
// publication came before the pass, and the pass would have seen the entry.
//
// If the table has changed, the arm pins seg, and stays if it may. If it pinned
// before the pass began, the pass would have seen the entry; if later, our
// compare-and-swap on pins fails. If it finds seg gone it takes its entry back
// and goes elsewhere. A tick cannot have handed it out before: it would have seen
// it after the pass had begun (seen), or before, and then so would the pass.
func (l *Level[E, P]) drop(t *table[E], seg *segment[E]) bool {
	if !seg.pins.CompareAndSwap(seg.pass.pins, gone) {
		return false
	}
	if l.table.CompareAndSwap(t, t.without(seg)) {
		return true
	}
	// Another arm has grown the level. Those who found seg gone meanwhile went
	// elsewhere; those who come now may stay.
	seg.pins.Store(seg.pass.pins + 1)
	return false
}
