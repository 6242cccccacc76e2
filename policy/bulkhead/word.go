package bulkhead

// word is the whole state that a call without a wait touches, so that coming in
// is one compare-and-swap and going out is one, and so that a reader sees slots
// and limit of one instant:
//
//	bit 63       marked    somebody waits: whoever goes out takes the lock
//	bits 50..62  admitted  the youngest admissions; the rest is in Policy.admitted
//	bits 25..49  limit     at most maxSlots
//	bits 0..24   in use
//
// The limit is in the word because a compare-and-swap that succeeds then proves
// that the limit it was compared with is still in force: no call slips in under
// a limit that SetLimit has just taken away.
//
// A marked state has no free slot: whatever frees one while somebody waits hands
// it over in the same store. So one look at the slots tells a newcomer both that
// there is none and that he must not pass.
//
// The highest admitted bit is a flag, carryDue. With it set nobody comes in
// before it was moved to Policy.admitted, so the field never runs over. That is
// one short critical section in 4096 admissions.
type word uint64

const (
	slotBits = 25
	maxSlots = 1<<slotBits - 1 // 33,554,431: more calls at once need some 5 GB for their futures alone

	oneInUse    word = 1
	limitShift       = slotBits
	admitShift       = 2 * slotBits
	oneAdmitted word = 1 << admitShift
	carryDue    word = 1 << 62
	marked      word = 1 << 63

	// carried is what the flag carryDue stands for.
	carried = uint64(carryDue) >> admitShift
)

func (s word) inUse() int       { return int(s & maxSlots) }
func (s word) free() bool       { return s&maxSlots < s>>limitShift&maxSlots }
func (s word) isMarked() bool   { return s&marked != 0 }
func (s word) admitted() uint64 { return uint64(s &^ marked >> admitShift) }

// withLimit returns s with the limit n, saturated.
func (s word) withLimit(n int) word {
	return s&^(maxSlots<<limitShift) | word(min(n, maxSlots))<<limitShift
}
