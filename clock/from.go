package clock

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	bclock "github.com/benbjohnson/clock"
)

// From adapts a clock of github.com/benbjohnson/clock, its Mock included, for
// code bases that pass such a clock around already. The real one, from that
// package's New, becomes System(). A nil c panics.
//
// A Mock keeps its own rules: callbacks run on goroutines of their own, equal
// deadlines fire in no particular order, each step of Add sleeps for a real
// millisecond, and only one goroutine may call Add. A Manual has none of these
// limits; prefer it in new tests. Three of the Mock's habits are corrected
// here: AfterFunc(0, f) calls f at once and not at the next Add, a negative
// delay does not turn the Mock back, and a Stop that reports true has really
// prevented the call.
func From(c bclock.Clock) Clock {
	if c == nil {
		panic("clock: nil c in From")
	}
	if m, ok := c.(*bclock.Mock); ok && m == nil { // it would panic at the first use
		panic("clock: nil *Mock in From")
	}
	if reflect.TypeOf(c) == reflect.TypeOf(bclock.New()) {
		return System()
	}
	return adapter{c}
}

type adapter struct{ c bclock.Clock }

func (a adapter) Now() time.Time { return a.c.Now() }

func (a adapter) AfterFunc(d time.Duration, f func()) Timer {
	needFunc(f)
	if d <= 0 {
		return time.AfterFunc(0, f) // due now on any clock; see From
	}
	t := &adapterTimer{}
	t.timer = a.c.AfterFunc(d, func() {
		if t.decided.CompareAndSwap(false, true) {
			f()
		}
	})
	return t
}

func (a adapter) Sleep(ctx context.Context, d time.Duration) error {
	needContext(ctx, "Sleep")
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := a.c.Timer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return errNow(ctx) // a tie belongs to the context
}

// adapterTimer decides between the call and Stop itself: a Mock that has picked
// a timer for firing still lets Stop report true and then calls it.
type adapterTimer struct {
	timer   *bclock.Timer // written once before the Timer is handed out; the callback does not read it
	decided atomic.Bool
}

func (t *adapterTimer) Stop() bool {
	prevented := t.decided.CompareAndSwap(false, true)
	t.timer.Stop()
	return prevented
}
