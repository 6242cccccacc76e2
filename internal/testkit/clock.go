package testkit

import (
	"time"

	"resilience4cata.dev/go/clock"
)

// HookedClock is a manual clock that calls the user's code where any clock may,
// being the user's code itself: nobody may hold a lock while he calls it. Use its
// address, and set hooks that are not nil while nobody else uses it.
type HookedClock struct {
	*clock.Manual
	OnNow                   func()                // before it is read
	BeforeTimer, AfterTimer func(d time.Duration) // a timer was armed; panics of the first come instead of it
}

// Now calls OnNow, and reads the clock.
func (h *HookedClock) Now() time.Time {
	if h.OnNow != nil {
		h.OnNow()
	}
	return h.Manual.Now()
}

// AfterFunc calls BeforeTimer, arms the timer, and calls AfterTimer.
func (h *HookedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	if h.BeforeTimer != nil {
		h.BeforeTimer(d)
	}
	t := h.Manual.AfterFunc(d, f)
	if h.AfterTimer != nil {
		h.AfterTimer(d)
	}
	return t
}
