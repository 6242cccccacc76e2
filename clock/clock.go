package clock

import (
	"context"
	"time"
)

// Clock is all that the library asks of time. Implementations are safe for
// concurrent use.
//
// The contracts below are those of every clock of this package; a clock of
// another maker has to keep them too.
type Clock interface {
	// Now is the current time. Only the system clock's carries a monotonic
	// reading.
	Now() time.Time

	// Sleep waits for d on this clock. It returns nil when d has passed and
	// ctx.Err() when ctx ended first or ends at the same instant. A ctx that
	// has ended already wins at once; d <= 0 does not wait and returns
	// ctx.Err(). A nil ctx panics.
	//
	// Pass the context that the protected function received, not the one of
	// its caller: only the former ends at the function's timeout.
	Sleep(ctx context.Context, d time.Duration) error

	// AfterFunc calls f once, when d has passed on this clock, unless the
	// Timer is stopped before. d <= 0 means now. System and From start a
	// goroutine for f; a Manual calls it on the goroutine that moves the
	// clock. With d > 0 a clock of your own must not call it before
	// AfterFunc has returned. A nil f panics.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that AfterFunc has announced. It has no channel and no
// Reset, hence nothing to drain: to move a deadline, stop it and arm another.
type Timer interface {
	// Stop reports whether it prevented the call: true means that f has not
	// run and never will; false that f ran, is running, is about to run, or
	// that the timer had been stopped before. It does not wait for f.
	Stop() bool
}

// needContext panics with the name of the method that was called without a
// context, before that method has changed anything.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("clock: nil ctx in " + method)
	}
}

// needFunc is the same for the callback of AfterFunc: without it the panic would
// come when the timer fires, on a goroutine that knows nothing of the mistake.
func needFunc(f func()) {
	if f == nil {
		panic("clock: nil f in AfterFunc")
	}
}
