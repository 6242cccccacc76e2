package circuitbreaker

import (
	"math/bits"
	"sync/atomic"
)

// tally is what a window holds.
type tally struct{ samples, failed, slow int64 }

// failureRatio is the share of failures, 0 for an empty window.
func (t tally) failureRatio() float64 {
	if t.samples == 0 {
		return 0
	}
	return float64(t.failed) / float64(t.samples)
}

// window keeps the samples of one closed generation. The methods are safe for
// concurrent use and take no lock. now is the scope's time; a count window does
// not look at it.
type window interface {
	add(failed, slow bool, now int64) tally // adds a sample and counts
	count(now int64) tally
	recount(now int64) tally // as count, but never above what was written
}

func newWindow(c *Config) window {
	if c.TimeWindow > 0 {
		return newTimeWindow(c.TimeWindow)
	}
	return newCountWindow(c.Window)
}

// sameWindow reports whether a window made for a serves b as well.
func sameWindow(a, b *Config) bool {
	return a.TimeWindow == b.TimeWindow && (a.TimeWindow > 0 || a.Window == b.Window)
}

// countWindow is a ring of the last size samples, one bit each for "failed" and
// "slow", with the sums of the bits beside them.
//
// A sample takes the next place in the ring with one atomic addition, and then
// writes its bits there. Each bit operation tells whether it changed the bit,
// and only then is the sum moved: no sample is lost or counted twice, whatever
// the interleaving, and when nobody writes, the sums are exact. Two samples that
// are a whole ring apart and meet at one place may be written in either order;
// that is all the approximation there is. A good sample over a good one, the
// usual case, is one addition and three loads.
//
// While others write, a sum may be ahead of the bits or behind them by as many
// samples as there are writers between their bit and their sum. Behind does no
// harm (see count); ahead could open a breaker that should stay closed, so that
// whoever is about to open it counts the bits themselves.
type countWindow struct {
	size  int64
	taken atomic.Int64 // samples so far: the next place is taken % size
	sums  atomic.Int64 // failed + slow<<32: both move in one addition

	failed, slow []atomic.Uint32
}

func newCountWindow(size int) *countWindow {
	words := (size + 31) / 32
	return &countWindow{
		size:   int64(size),
		failed: make([]atomic.Uint32, words),
		slow:   make([]atomic.Uint32, words),
	}
}

func (w *countWindow) add(failed, slow bool, _ int64) tally {
	place := uint32((w.taken.Add(1) - 1) % w.size)
	moved := put(w.failed, place, failed) + put(w.slow, place, slow)<<32
	if moved != 0 {
		w.sums.Add(moved)
	}
	return w.count(0)
}

// put writes one bit and returns by how much the sum of the bits changed. A bit
// that is right already is not written: that load is the write's place in the
// order of things.
func put(words []atomic.Uint32, place uint32, on bool) int64 {
	word, mask := &words[place/32], uint32(1)<<(place%32)
	switch {
	case on == (word.Load()&mask != 0):
		return 0
	case on:
		if word.Or(mask)&mask == 0 {
			return 1
		}
	default:
		if word.And(^mask)&mask != 0 {
			return -1
		}
	}
	return 0
}

// count reads the sums before the number of samples, and a writer moves the
// number before the sums: so a failure that is seen has its sample seen too,
// and of several writers at once the last one sees all of it. Whatever the
// others found, that one opens the breaker if it must be.
func (w *countWindow) count(int64) tally {
	sums := w.sums.Load()
	// A writer that clears a bit may move the sum before the one that had set
	// it: a half can be below zero for a moment, and then it has borrowed from
	// the other.
	failed := int64(int32(sums))
	slow := (sums - failed) >> 32
	samples := min(w.taken.Load(), w.size)
	return tally{
		samples: samples,
		failed:  min(max(failed, 0), samples),
		slow:    min(max(slow, 0), samples),
	}
}

// recount counts the bits. The last of several writers finds in them what it
// finds in the sums, so that nothing which must open the breaker is missed.
func (w *countWindow) recount(int64) tally {
	t := tally{failed: ones(w.failed), slow: ones(w.slow)}
	t.samples = min(w.taken.Load(), w.size)
	return t
}

func ones(words []atomic.Uint32) (n int64) {
	for i := range words {
		n += int64(bits.OnesCount32(words[i].Load()))
	}
	return n
}
