package stripe

import "sync/atomic"

// Rare is a set of counters of which most instances count nothing, such as
// refusals: the lines are made when they are needed. The zero value is ready to
// use, and safe for concurrent use.
type Rare struct{ set atomic.Pointer[Set] }

// Line returns the stripe for the calling goroutine.
func (r *Rare) Line() *Line {
	s := r.set.Load()
	if s == nil {
		set := New()
		r.set.CompareAndSwap(nil, &set)
		s = r.set.Load()
	}
	return s.Line()
}

// Sum adds up counter i over all lines, as [Set.Sum] does.
func (r *Rare) Sum(i int) uint64 {
	if s := r.set.Load(); s != nil {
		return s.Sum(i)
	}
	return 0
}
