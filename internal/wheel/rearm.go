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
	// First the deadline, then the bounds, then look who is going to read them:
	// as in Arm. A tick that has read the entry before found nothing due and
	// set its bounds accordingly; lowering them afterwards corrects that.
	deadline = max(even(deadline), 2)
	if !P(e).WheelStamp().CompareAndSwap(0, deadline) {
		return
	}
	l.lower(e, slot, deadline, 0)
}

// Begin is Rearm with what [Wheel.Start] returned just now: it reads no clock
// while the wheel ticks. The second call for an entry has no effect.
func (l *Level[E, P]) Begin(e *E, slot *atomic.Pointer[E], start, bound int64) {
	if start < 0 {
		l.Rearm(e, slot, bound)
		return
	}
	// As in Arm, with the start in the place of the entry.
	if P(e).WheelBegin(start) {
		l.lower(e, slot, bound, fresh)
	}
}

// lower makes bound a lower bound of the block that slot lies in, and of those
// above it, and sees to it that somebody looks at them.
func (l *Level[E, P]) lower(e *E, slot *atomic.Pointer[E], bound, bit int64) {
	if seg, b := l.block(slot); seg != nil {
		seg.lower(b, bound, bit)
	}
	lower(&l.low, bound)
	w := l.wheel
	switch {
	case w.hot.coarse.Load() <= 0:
		w.armQuiet(e, bound)
	case !w.hot.busy.Load() && bound < far:
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
