// Package stripe counts without contention: a [Set] spreads its counters over
// several cache lines, and each call adds to the line that its goroutine's
// stack address selects. Not for values that a call must read back: a sum is
// only a sum of moments.
//
// # Guarantees
//
//	what                                             proved by
//	no add is lost                                   TestSumsAreExactWhenIdle
//	sums never go back from one reading to the next  TestSumsAreMonotone
//	what is rarely counted costs little until then   TestRareIsMadeOnce
package stripe

import (
	"runtime"
	"sync/atomic"
)

// Counters is the number of counters in a line: eight words, one cache line.
const Counters = 8

// Line is one stripe: a set of counters that share a cache line. A call adds
// all its counts to one line.
type Line [Counters]atomic.Uint64

// Set is a number of lines. Make it with [New]; it is safe for concurrent use, and
// copies count together.
type Set struct {
	lines []Line
}

// lineCount is a power of two of about four lines a processor: with a line
// chosen by hash, two goroutines that run at once share one in a quarter of the
// cases and less. 32 lines (2 KiB) bound what ten thousand instances cost.
var lineCount = func() int {
	n := 4
	for n < 4*runtime.GOMAXPROCS(0) && n < 32 {
		n *= 2
	}
	return n
}()

// New returns a set of zeroed counters.
//
// The lines are aligned to cache lines because their number is a power of two:
// the allocator places such sizes at multiples of themselves.
func New() Set { return Set{lines: make([]Line, lineCount)} }

// Line returns the stripe for the calling goroutine.
func (s *Set) Line() *Line {
	return &s.lines[Hint()&uint32(len(s.lines)-1)]
}

// Sums is Sum for all counters, one line after the other, so that each is
// fetched once. The sums are not of one moment: see Sum.
func (s *Set) Sums() (n [Counters]uint64) {
	for l := range s.lines {
		for i := range n {
			n[i] += s.lines[l][i].Load()
		}
	}
	return n
}

// Sum adds up counter i over all lines. Each counter only grows, so a later Sum
// is never below an earlier one. To keep "finished ≤ started" in a snapshot,
// read what ends before what begins.
func (s *Set) Sum(i int) uint64 {
	var n uint64
	for l := range s.lines {
		n += s.lines[l][i].Load()
	}
	return n
}
