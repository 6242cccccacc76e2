package clock

import (
	"context"
	"time"
)

// System returns the wall clock: time.Now, time.AfterFunc, and a Sleep whose
// runtime timer is stopped when ctx ends first. It is the clock that
// github.com/benbjohnson/clock.New() stands for, without its allocations.
// Inside a testing/synctest bubble it follows the bubble's time.
//
// All calls return the same comparable value: c == clock.System() tells
// whether c is the system clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) AfterFunc(d time.Duration, f func()) Timer {
	needFunc(f)
	return time.AfterFunc(d, f)
}

func (system) Sleep(ctx context.Context, d time.Duration) error {
	needContext(ctx, "Sleep")
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	// Asked on both ways out: select picks at random when both are ready, and
	// a tie belongs to the context.
	return errNow(ctx)
}
