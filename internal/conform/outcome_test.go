package conform_test

import (
	"context"
	"time"
)

// outcome is what happens to a call, a column of the matrix.
type outcome struct {
	name  string
	needs layers        // the layers without which it cannot happen
	forms []form        // nil: all
	waits bool          // calls may wait for permits and slots
	total time.Duration // the retry's MaxDuration; 0: none

	prepare func(w *world)                                 // before all else
	before  func(w *world, cancel context.CancelCauseFunc) // just before the call
	expect  func(c cell, w *want)

	noPermits bool // the limiter's store was emptied
}

var unobserved = []form{async, staged}

func fails(w *world)    { w.work.err = errBoom }
func isSlow(w *world)   { w.work.takes = slow }
func stubborn(w *world) { w.work.takes, w.work.stubborn = slow, true }

func cancelSoon(w *world, cancel context.CancelCauseFunc) {
	w.after(soon, func() { cancel(errGone) })
}

func closeSoon(w *world, _ context.CancelCauseFunc) {
	w.after(soon, func() {
		if err := w.reg.Close(); err != nil {
			w.fail("close: %v", err)
		}
	})
}

func cancelFutureSoon(w *world, _ context.CancelCauseFunc) {
	w.after(soon, func() {
		if !w.future.Load().Cancel() {
			w.fail("Cancel did not end the future")
		}
	})
}

func (w *world) fillAndRelease() {
	w.fillBulkhead()
	w.after(soon, w.emptyBulkhead)
}

// outcomes are the columns. Everything from outside happens after `soon`.
var outcomes = []*outcome{
	{name: "ok", expect: succeeds},
	{name: "ok after a while", prepare: func(w *world) { w.work.takes = soon }, waits: true, expect: succeeds},
	{name: "error", prepare: fails, expect: failsAlways},
	{name: "error after a while", prepare: func(w *world) { w.work.takes = soon; fails(w) }, waits: true, expect: failsAlways},
	{name: "panic", prepare: func(w *world) { w.work.panics = errBoom }, expect: panicsOnce},
	{name: "goexit", prepare: func(w *world) { w.work.goexit = true }, waits: true, expect: exitsOnce},

	{name: "the caller cancels", prepare: isSlow, before: cancelSoon, expect: cancelled},
	{name: "the caller cancels, unheard", prepare: stubborn, before: cancelSoon, expect: cancelledUnheard},
	{name: "the future is cancelled", forms: unobserved, prepare: isSlow, before: cancelFutureSoon, waits: true, expect: cancelled},
	{name: "the registry closes", prepare: isSlow, before: closeSoon, expect: closesRunning},

	{name: "timeout", prepare: isSlow, expect: timesOut},
	{name: "timeout, unheard", prepare: stubborn, expect: timesOutUnheard},
	{name: "out of time", needs: retryLayer, total: 7 * limit / 10, prepare: isSlow, expect: runsOutOfTime},

	{name: "the breaker refuses", needs: breakerLayer, prepare: func(w *world) { w.breaker.ForceOpen() }, expect: refusedByBreaker},
	{name: "the limiter refuses", needs: limiterLayer, noPermits: true, prepare: (*world).emptyLimiter, expect: refusedByLimiter},
	{name: "the bulkhead refuses", needs: bulkheadLayer, prepare: (*world).fillBulkhead, expect: refusedByBulkhead},
	{name: "the registry refuses", prepare: func(w *world) { _ = w.reg.Close() }, expect: refusedByRegistry},

	{name: "cancelled in the queue", needs: bulkheadLayer, waits: true, prepare: (*world).fillBulkhead, before: cancelSoon, expect: cancelledInQueue},
	{name: "future cancelled in the queue", forms: unobserved, needs: bulkheadLayer, waits: true, prepare: (*world).fillBulkhead, before: cancelFutureSoon, expect: cancelledInQueue},
	{name: "timeout in the queue", needs: bulkheadLayer, waits: true, prepare: (*world).fillBulkhead, expect: timesOutInQueue},
	{name: "the registry closes, in the queue", needs: bulkheadLayer, waits: true, prepare: (*world).fillBulkhead, before: closeSoon, expect: closedInQueue},
	{name: "a slot after a while", needs: bulkheadLayer, waits: true, prepare: (*world).fillAndRelease, expect: succeeds},

	{name: "cancelled at the limiter", needs: limiterLayer, noPermits: true, waits: true, prepare: (*world).emptyLimiter, before: cancelSoon, expect: cancelledAtLimiter},
	{name: "future cancelled at the limiter", forms: unobserved, needs: limiterLayer, noPermits: true, waits: true, prepare: (*world).emptyLimiter, before: cancelFutureSoon, expect: cancelledAtLimiter},
	{name: "the registry closes, at the limiter", needs: limiterLayer, noPermits: true, waits: true, prepare: (*world).emptyLimiter, before: closeSoon, expect: closedAtLimiter},
	{name: "a permit after a while", needs: limiterLayer, noPermits: true, waits: true, prepare: (*world).emptyLimiter, expect: succeeds},

	{name: "cancelled in the backoff", needs: retryLayer, prepare: fails, before: cancelSoon, expect: cancelledInBackoff},
	{name: "future cancelled in the backoff", forms: unobserved, needs: retryLayer, prepare: fails, before: cancelFutureSoon, expect: cancelledInBackoff},
	{name: "the registry closes, in the backoff", needs: retryLayer, prepare: fails, before: closeSoon, expect: closedInBackoff},

	{name: "future cancelled in the fallback", forms: unobserved, needs: fallbackLayer, prepare: blocksInFallback, before: cancelFutureSoon, expect: cancelledInFallback},
	{name: "the registry closes, in the fallback", forms: unobserved, needs: fallbackLayer, prepare: blocksInFallback, before: closeSoon, expect: closedInFallback},
}

// blocksInFallback has a fallback that waits for its context's end. A panic is
// not retried: the fallback is asked at once.
func blocksInFallback(w *world) { w.fallbackBlocks, w.work.err = true, nil; w.work.panics = errBoom }
