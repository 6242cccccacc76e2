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
	deadline = max(even(deadline), 2)
	if !P(e).WheelStamp().CompareAndSwap(0, deadline) {
		return
	}
	if seg, b := l.block(slot); seg != nil {
		seg.lower(b, deadline, 0)
	}
	lower(&l.low, deadline)
	switch {
	case w.hot.coarse.Load() <= 0:
		w.armQuiet(e, deadline)
	case !w.hot.busy.Load():
		w.hot.busy.Store(true)
	}
}

// block returns the segment and the block in which slot lies. It is nil if the
// segment is gone; then so is the entry.
//
// The address is compared with those of the segments, of which there are a few;
// no pointer is made from it.
func (l *Level[E, P]) block(slot *atomic.Pointer[E]) (*segment[E], uint32) {
	t := l.table.Load()
	if t == nil {
		return nil, 0
	}
	at := uintptr(unsafe.Pointer(slot))
	for _, s := range t.segs {
		first := uintptr(unsafe.Pointer(&s.slots[0]))
		if i := (at - first) / unsafe.Sizeof(*slot); at >= first && i < uintptr(len(s.slots)) {
			return s, uint32(i >> blockBits)
		}
	}
	return nil, 0
}
