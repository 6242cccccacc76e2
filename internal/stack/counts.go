package stack

import (
	"sync/atomic"

	"resilience4cata.dev/go/internal/stripe"
)

// Outcome is how a whole call ended.
type Outcome uint8

// The outcomes, which are also the places of their counters. Every call counts
// once as started, in the beginning, and once as one of the others, at its end.
const (
	started Outcome = iota
	Succeeded
	Failed
	TimedOut
	Cancelled
	Rejected
	Panicked
)

// Calls counts whole calls of every form.
type Calls struct{ set stripe.Set }

// NewCalls returns zeroed counters.
func NewCalls() Calls { return Calls{stripe.New()} }

// Tally is a call that has been counted as started.
type Tally struct{ line *stripe.Line }

// Begin counts a call as started.
func (c *Calls) Begin() Tally {
	t := Tally{c.set.Line()}
	t.line[started].Add(1)
	return t
}

// End counts a call as ended that has lost its tally: its sum is the same.
func (c *Calls) End(o Outcome) { c.set.Line()[o].Add(1) }

// End counts the call as ended. Call it exactly once.
func (t Tally) End(o Outcome) { t.line[o].Add(1) }

// Counts is the counters at one moment.
type Counts struct {
	Started, Succeeded, Failed, TimedOut, Cancelled, Rejected, Panicked uint64
	InFlight                                                            int64
}

// Read sums the counters up. What ends is read before what begins, and a call
// is counted as started first, so that finished ≤ started in every reading.
func (c *Calls) Read() Counts {
	ended := c.set.Sums()
	n := Counts{
		Succeeded: ended[Succeeded], Failed: ended[Failed], TimedOut: ended[TimedOut],
		Cancelled: ended[Cancelled], Rejected: ended[Rejected], Panicked: ended[Panicked],
	}
	n.Started = c.set.Sum(int(started))
	n.InFlight = int64(n.Started - n.Succeeded - n.Failed - n.TimedOut - n.Cancelled - n.Rejected - n.Panicked)
	return n
}

// Abandoned counts work whose caller had been answered before it ended.
type Abandoned struct {
	Running                             atomic.Int64
	LateSuccess, LateFailure, LatePanic atomic.Uint64
}

// Fallbacks counts what the outermost layer did.
type Fallbacks struct{ Applied, Failed atomic.Uint64 }
