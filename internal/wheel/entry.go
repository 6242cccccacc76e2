package wheel

import (
	"math"
	"sync/atomic"
	"time"
)

// Never as a stamp or a bound: not due by this wheel, ever. Its negation as a
// start is an entry without a deadline, held only so that [Wheel.Each] finds it.
const Never = math.MaxInt64

// Refused is the start that [Wheel.Start] returns in a foreign synctest bubble.
// Such an entry must not be armed.
const Refused = math.MinInt64

// far is the latest deadline that an entry can have, some 292 years from the
// wheel's beginning. Sums saturate to it. It is even: see fresh.
const far = Never - 1

// Entry is what the wheel asks of the records it carries; E is the record's
// struct type. An entry is armed once in its life and never reused: the wheel
// tells entries apart by address, which the garbage collector makes safe as long
// as somebody refers to the old one.
type Entry[E any] interface {
	*E

	// WheelStart is the start that Wheel.Start returned, or -Never. It is
	// immutable once the entry is armed.
	WheelStart() int64

	// WheelLimit is the time from start to deadline in nanoseconds. Immutable.
	WheelLimit() int64

	// WheelStamp is where the deadline is kept once it is fixed.
	//
	//	0      not fixed yet
	//	> 0    the deadline in wheel time, odd if somebody was told (see
	//	       Wheel.Tell); Never: not due by the wheel
	//	< 0    the same, negated: the entry was handed out to expire
	//
	// The owner may store Never at any time and must leave all else to
	// Wheel.Deadline and Level.Rearm.
	WheelStamp() *atomic.Int64

	// WheelExpire is called at most once, after the deadline, on a goroutine
	// that belongs to nobody, which other entries may share: it should not
	// block. The entry decides by its own compare-and-swap on slot whether it
	// expires or had finished before. On success it puts Config.Firing into the
	// slot, settles, and stores nil; nothing in between may panic.
	//
	// What it returns, if not nil, is called once all entries that were due in
	// the same tick have expired; it may block.
	WheelExpire(slot *atomic.Pointer[E]) (after func())
}

// Timer is what the wheel needs of a timer that was made by Config.AfterFunc.
// *[time.Timer] has it.
type Timer interface {
	// Reset lets the timer call its function after d instead of whenever it
	// was to call it, also if it has called it already.
	Reset(d time.Duration) bool
}

// Config is what a wheel is made of. The zero value is a wheel on the real
// clock.
type Config[E any] struct {
	// Now reads a clock that never goes back, in nanoseconds; it starts above
	// zero. Nil: the monotonic clock since New.
	Now func() int64

	// AfterFunc calls f on a goroutine of its own after d. Nil: time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) Timer

	// Firing is the record that entries put into their slot while they settle
	// there. It is never an armed entry. Nil if they do not use one.
	Firing *E

	// OnPanic hears of a panic in WheelExpire or in what that returned. It must
	// not panic. Nil: nobody hears of it.
	OnPanic func(value any, stack []byte)
}

// told is the lowest bit of a deadline that somebody has been told. All other
// deadlines are even, rounded up.
const told = 1

// later is t+d, saturating, above zero and even.
func later(t, d int64) int64 {
	if d >= far-t {
		return far
	}
	return max(even(t+d), 2)
}

func even(d int64) int64 { return (d + 1) &^ 1 }

// exact is the deadline that a negative start stands for.
func exact(start int64) int64 {
	if start <= -Never {
		return Never
	}
	return -start
}
