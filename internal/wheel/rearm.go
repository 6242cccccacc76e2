package wheel

import (
	"sync/atomic"
	"unsafe"
)

// Rearm gives a deadline, in wheel time, to an entry that was armed in this
// level without one (with the start -Never). It may be called while the entry is
// in its slot or after; for an entry that has left its slot it does nothing that
// matters, and for one that has a deadline, or whose owner has stored Never as
// its stamp, it does nothing at all.
func (l *Level[E, P]) Rearm(e *E, slot *atomic.Pointer[E], deadline int64) {
	if deadline >= far {
		return
	}
	w := l.wheel
	// First the deadline, then the bounds, then look who is going to read them:
	// as in Arm. A tick that has read the entry before found nothing due and
	// set its bounds accordingly; lowering them afterwards corrects that.
	if !P(e).WheelStamp().CompareAndSwap(0, max(deadline, 1)) {
		return
	}
	if word := l.bound(slot); word != nil {
		lowerBlock(word, deadline, 0)
	}
	lower(&l.low, deadline)
	switch {
	case w.hot.coarse.Load() <= 0:
		w.armQuiet(e, deadline)
	case !w.hot.busy.Load():
		w.hot.busy.Store(true)
	}
}

// bound returns the word of the block in which slot lies. It is nil if the
// segment is gone; then so is the entry.
//
// The address is compared with those of the segments, of which there are a few;
// no pointer is made from it.
func (l *Level[E, P]) bound(slot *atomic.Pointer[E]) *atomic.Int64 {
	t := l.table.Load()
	if t == nil {
		return nil
	}
	at := uintptr(unsafe.Pointer(slot))
	for _, s := range t.segs {
		first := uintptr(unsafe.Pointer(&s.slots[0]))
		if i := (at - first) / unsafe.Sizeof(*slot); at >= first && i < uintptr(len(s.slots)) {
			return &s.bounds[i>>blockBits]
		}
	}
	return nil
}
