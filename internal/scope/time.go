package scope

import (
	"math"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// Readings of Now on other clocks than the system's, in nanoseconds. What such a
// clock shows may be set to anything: the zero manual clock begins in the year 1
// and is set to today by and by, which is further than an int64 reaches.
const (
	// half is how far from the base a clock is followed. One that is found
	// beyond it is followed from there on in the other half of the positive
	// readings, so that readings go on and never wrap.
	half = 1 << 62

	// origin is the reading of the first time that was found beyond half. From
	// there the clock may go back by 73 years, or on.
	origin = half + half/2
)

// uptime is longer than any process runs. A scope made outside of bubbles whose
// system clock is further on is used in a bubble that has slept for more years
// than have passed since 2000, where bubbles begin.
const uptime = int64(366 * 24 * time.Hour)

// old is taken from the readings in such a bubble, to make them negative there,
// too.
const old = 1 << 62

// Now is the time since the scope was made, in nanoseconds, plus one, so that a
// reading is never zero. On the system clock it is monotonic, and negative in a
// synctest bubble in which the scope was not made; on others it follows what
// the clock says.
func (s *Scope) Now() int64 {
	if !s.system {
		return s.other(s.clk.Now())
	}
	n := int64(time.Since(s.base)) + 1
	if n > uptime {
		return s.aged(n)
	}
	return n
}

// aged is Now for a process that has run for long, or in an old bubble.
func (s *Scope) aged(n int64) int64 {
	if s.bubble || !wheel.Bubbled(time.Now()) {
		return n
	}
	return n - old
}

// other is the reading for a time of another clock.
func (s *Scope) other(t time.Time) int64 {
	d := int64(t.Sub(s.base)) // saturates
	if d < half {
		return max(d, -half) + 1
	}
	first := s.far.Load()
	if first == nil {
		found := t // not &t: that would cost every reading an allocation
		s.far.CompareAndSwap(nil, &found)
		first = s.far.Load()
	}
	d = int64(t.Sub(*first))
	return origin + min(max(d, half+1-origin), math.MaxInt64-1-origin)
}

// At is the clock time of a reading of Now.
func (s *Scope) At(now int64) time.Time {
	if first := s.far.Load(); first != nil && now > half {
		return first.Add(time.Duration(now - origin))
	}
	if s.system && !s.bubble && now < -old/2 {
		now += old
	}
	return s.base.Add(time.Duration(now - 1))
}
