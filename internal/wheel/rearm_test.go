package wheel_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// Held entries get a deadline later: as punctual as any other.
func TestRearmedEntriesArePunctual(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		tick := time.Duration(w.TickLen())
		var calls []*call
		for range 500 { // more than a segment holds
			calls = append(calls, hold(w, new(call)))
		}
		if ticking {
			startTicking(t, o, w)
		}
		if w.Pending() != 0 {
			t.Errorf("pending %d before", w.Pending())
		}
		left := 0
		for i, c := range calls {
			c.onExpire = func(c *call) func() {
				left--
				if late := time.Duration(o.clock() - w.Deadline(c)); late < 0 || late > 2*tick {
					t.Errorf("ticking %v: %v late", ticking, late)
				}
				return nil
			}
			switch i % 5 {
			case 0:
				continue // stays without
			case 1: // has ended meanwhile
				c.finish()
			default:
				left++
			}
			at := o.clock() + rng.Int64N(int64(10*time.Second))
			w.Level(wheel.Never).Rearm(c, c.slot, at)
			if got := w.Deadline(c); got != at {
				t.Errorf("deadline %d, want %d", got, at)
			}
			o.advance(time.Duration(rng.IntN(5)) * time.Millisecond)
		}
		w.Level(wheel.Never).Rearm(calls[0], calls[0].slot, wheel.Never)
		o.advance(time.Minute)
		if left != 0 || w.Pending() != 0 || calls[0].fired.Load() != 0 {
			t.Errorf("ticking %v: %d have not fired, %d pending", ticking, left, w.Pending())
		}
	}
}
