package conform_test

import (
	"context"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// want is what the semantics say of a cell.
type want struct {
	counter   func(*registry.CallCounts) *uint64
	is, isNot []error // of the caller's error; without is it is nil
	panics    bool    // the caller's goroutine panics with the function's own value
	exits     bool    // or ends

	entered    int  // attempts that entered the function
	permits    int  // that the limiter gave
	samples    int  // of the breaker: probes whose places are gone; -1: not to be seen
	timeouts   int  // attempts that passed the timeout
	notStarted bool // the error must say that the function was not entered

	fallback, fallbackFailed int
	lateSuccess, lateFailure int
	stagesCancelled          int
	stubborn                 bool // what is late runs on when the caller has its answer
	slotsHeld                bool // by others, still

	// The function hears of its caller's end as soon as we do, and may be the
	// first: then its error is the call's, and nothing is late.
	mayBeInTime bool
}

func succeeded(c *registry.CallCounts) *uint64 { return &c.Succeeded }
func failed(c *registry.CallCounts) *uint64    { return &c.Failed }
func timedOut(c *registry.CallCounts) *uint64  { return &c.TimedOut }
func canceled(c *registry.CallCounts) *uint64  { return &c.Cancelled }
func rejected(c *registry.CallCounts) *uint64  { return &c.Rejected }
func panicked(c *registry.CallCounts) *uint64  { return &c.Panicked }

// calls is the counters after one call. A pipeline without layers counts nothing.
func (w *want) calls(set layers) (c registry.CallCounts) {
	if set != noLayers {
		c.Started = 1
		*w.counter(&c) = 1
	}
	return c
}

func (c cell) want() (w want) {
	c.outcome.expect(c, &w)
	return w
}

// tries is how many attempts there are when each fails.
func (c cell) tries() int {
	if c.set.has(retryLayer) {
		return attempts
	}
	return 1
}

// ran is what follows from n attempts that entered the function, and of which
// the breaker counted m.
func (w *want) ran(n, m int) { w.entered, w.permits, w.samples = n, n, m }

// ends is how the caller is answered if no fallback is asked.
func (w *want) ends(counter func(*registry.CallCounts) *uint64, is ...error) {
	w.counter, w.is = counter, is
}

// asks has the fallback asked, if there is one.
func (w *want) asks(c cell) {
	switch {
	case !c.set.has(fallbackLayer):
	case c.fallbackFails:
		w.fallback, w.fallbackFailed = 1, 1
		w.is = append(w.is, errFallback)
	default:
		w.fallback = 1
		w.counter, w.is, w.panics, w.exits, w.notStarted = succeeded, nil, false, false, false
	}
}

// abandons is what follows for work that is running when its future ends.
func (w *want) abandons(c cell, n int, stubborn bool) {
	switch {
	case c.form == direct:
		return
	case c.form == staged:
		w.stagesCancelled = n
		if stubborn {
			w.lateSuccess = n // it counts as ended all the same
		}
	case stubborn:
		w.lateSuccess, w.stubborn = n, true
	default:
		w.lateFailure = n
	}
}

func succeeds(_ cell, w *want) {
	w.ends(succeeded)
	w.ran(1, 1)
}

func failsAlways(c cell, w *want) {
	w.ends(failed, errBoom)
	w.exhausts(c)
	w.ran(c.tries(), c.tries())
	w.asks(c)
}

func (w *want) exhausts(c cell) {
	if c.set.has(retryLayer) {
		w.is = append(w.is, retry.ErrExhausted)
	}
}

// A panic is not retried. A sync one passes through all layers; elsewhere
// it is an error, for which the fallback is asked as for any other.
func panicsOnce(c cell, w *want) {
	w.ends(panicked, errBoom)
	w.ran(1, 1)
	if w.panics = c.form == direct; !w.panics {
		w.asks(c)
	}
}

// The function of a stage runs on the caller's goroutine.
func exitsOnce(c cell, w *want) {
	w.ends(panicked, pipeline.ErrGoexit)
	w.isNot = []error{timeout.ErrExceeded}
	w.ran(1, 1)
	if c.form != direct {
		w.asks(c)
	}
	w.exits = c.form != async
}

func cancelled(c cell, w *want) {
	w.ends(canceled, context.Canceled)
	w.isNot = []error{timeout.ErrExceeded, context.DeadlineExceeded}
	w.ran(1, 0)
	w.abandons(c, 1, false)
	w.mayBeInTime = true
}

// A sync function that does not hear it returns its value, which is good,
// but for its own timeout: that was void, since the caller's end came first.
func cancelledUnheard(c cell, w *want) {
	if c.form == direct {
		succeeds(c, w)
		return
	}
	cancelled(c, w)
	w.lateFailure, w.mayBeInTime = 0, false
	w.abandons(c, 1, true)
}

// What runs on its caller's goroutine goes on, and keeps its deadline.
func closesRunning(c cell, w *want) {
	if c.form == direct {
		timesOutIn(c, w, 1)
		w.samples = -1
		if c.set.has(timeoutLayer | retryLayer) {
			w.ends(rejected, registry.ErrClosed, timeout.ErrExceeded)
			w.fallback, w.fallbackFailed = 0, 0
		}
		return
	}
	w.ends(rejected, registry.ErrClosed)
	w.ran(1, -1)
	w.abandons(c, 1, false)
}

func timesOut(c cell, w *want) { timesOutIn(c, w, c.tries()) }

func timesOutIn(c cell, w *want, n int) {
	if !c.set.has(timeoutLayer) {
		succeeds(c, w)
		return
	}
	w.ends(timedOut, timeout.ErrExceeded, context.DeadlineExceeded)
	w.isNot = []error{context.Canceled}
	w.ran(n, n)
	w.timeouts = n
	if n == attempts {
		w.exhausts(c)
	}
	w.abandons(c, n, false)
	if c.form == direct {
		w.isNot = nil
	}
	w.asks(c)
}

func timesOutUnheard(c cell, w *want) {
	timesOut(c, w)
	if !c.set.has(timeoutLayer) {
		return
	}
	w.lateFailure = 0
	w.abandons(c, w.timeouts, true)
	if c.form == direct {
		w.lateSuccess = w.timeouts // T-3: it returned too late, and the value is discarded
	}
}

func runsOutOfTime(c cell, w *want) {
	w.ends(timedOut, retry.ErrOutOfTime, context.DeadlineExceeded)
	w.isNot = []error{timeout.ErrExceeded, context.Canceled}
	w.ran(1, 1)
	w.abandons(c, 1, false)
	w.asks(c)
}

func (w *want) refused(c cell, err error) {
	w.ends(rejected, err)
	w.notStarted = true
	w.asks(c)
}

func refusedByBreaker(c cell, w *want) {
	w.refused(c, circuitbreaker.ErrOpen)
	w.samples = -1 // it was opened by hand
}

func refusedByLimiter(c cell, w *want) { w.refused(c, ratelimit.ErrLimited) }

// O-6: the permit stays spent.
func refusedByBulkhead(c cell, w *want) {
	w.refused(c, bulkhead.ErrFull)
	w.permits = c.tries()
	w.slotsHeld = true
}

func refusedByRegistry(_ cell, w *want) { w.ends(rejected, registry.ErrClosed) }

func cancelledInQueue(_ cell, w *want) {
	w.ends(canceled, context.Canceled)
	w.isNot = []error{bulkhead.ErrFull, timeout.ErrExceeded}
	w.permits = 1
	w.slotsHeld = true
}

// B-4; without a timeout the wait for the slot ends by itself.
func timesOutInQueue(c cell, w *want) {
	if !c.set.has(timeoutLayer) {
		refusedByBulkhead(c, w)
		return
	}
	w.ends(timedOut, timeout.ErrExceeded)
	w.isNot = []error{bulkhead.ErrFull}
	w.permits, w.samples, w.timeouts = c.tries(), c.tries(), c.tries()
	w.notStarted, w.slotsHeld = true, true
	w.asks(c)
}

func closedInQueue(_ cell, w *want) {
	w.ends(rejected, registry.ErrClosed)
	w.permits = 1
	w.slotsHeld = true
}

// L-4: who leaves gives its place back.
func cancelledAtLimiter(_ cell, w *want) {
	w.ends(canceled, context.Canceled)
	w.isNot = []error{ratelimit.ErrLimited}
}

func closedAtLimiter(_ cell, w *want) { w.ends(rejected, registry.ErrClosed) }

func cancelledInBackoff(_ cell, w *want) {
	w.ends(canceled, context.Canceled, errBoom)
	w.isNot = []error{retry.ErrExhausted}
	w.ran(1, 1)
}

func closedInBackoff(_ cell, w *want) {
	w.ends(rejected, registry.ErrClosed, errBoom)
	w.ran(1, 1)
}

func cancelledInFallback(_ cell, w *want) {
	w.ends(canceled, context.Canceled)
	w.ran(1, 1)
	w.fallback, w.fallbackFailed = 1, 1
}

func closedInFallback(_ cell, w *want) {
	w.ends(rejected, registry.ErrClosed)
	w.ran(1, 1)
	w.fallback, w.fallbackFailed = 1, 1
}
