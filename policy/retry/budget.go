package retry

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The window is cut into slots of a hundredth: fine enough that what the edge of
// the window costs in precision (see budget.take) does not show, and few enough
// to add up whenever a retry asks.
const (
	window    = int64(10 * time.Second)
	slotWidth = window / slotCount
	slotCount = 100
	ringSize  = 128 // slots are found by index & (ringSize−1); more than slotCount+1
)

// budget counts the calls of the window and grants their retries: each grant
// keeps
//
//	retries of the last ten seconds ≤ ratio × calls of the last ten seconds
//
// or else takes a token from the floor's bucket. A call that starts costs one
// atomic addition; only retries lock.
type budget struct {
	// calls holds, for each slot, its index in the upper half and the number
	// of calls in the lower one.
	calls [ringSize]atomic.Uint64

	mu      sync.Mutex
	retries [ringSize]retrySlot
	now     int64   // the latest time seen: a clock that goes back stands still here
	tokens  float64 // in the floor's bucket, at now
}

type retrySlot struct {
	index  int64
	count  int64
	latest int64 // when the last of them was granted
}

// newBudget returns a budget without calls and with a full bucket.
func newBudget(c BudgetConfig, now int64) *budget {
	b := &budget{now: max(now, 0)}
	if c.MinPerSecond > 0 {
		b.tokens = capacity(c.MinPerSecond)
	}
	return b
}

// capacity is what the floor's bucket holds: a second's worth, and room for the
// one token that a floor below one a second saves up.
func capacity(minPerSecond float64) float64 { return max(1, minPerSecond) }

// slotAt is the index of the slot that a time belongs to. The scope's time
// begins at 1; times before that, in a bubble that the scope was not made in,
// count as its beginning.
func slotAt(now int64) int64 { return max(now-1, 0) / slotWidth }

// started counts a call that starts now.
func (b *budget) started(now int64) {
	index := uint64(uint32(slotAt(now)))
	slot := &b.calls[index%ringSize]
	for {
		old := slot.Load()
		if old>>32 >= index { // this slot, or a later one after the clock went back
			// Should the slot be reused between the two lines, then ten seconds
			// have passed, and a later time gets this call: off by one, once.
			slot.Add(1)
			return
		}
		if slot.CompareAndSwap(old, index<<32|1) {
			return
		}
	}
}

// take reports whether a call may be retried now, and if so counts the retry.
//
// What lies in the slot at the far edge of the window is there only in part.
// Its calls are left out, and its retries are counted until the last of them is
// too old, so that the bound above holds exactly, whatever the grid.
func (b *budget) take(c BudgetConfig, now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now = max(now, b.now)
	if refill := float64(now-b.now) / float64(time.Second) * c.MinPerSecond; refill > 0 {
		b.tokens += refill
	}
	b.tokens = min(b.tokens, capacity(c.MinPerSecond))
	b.now = now

	index := slotAt(now)
	slot := &b.retries[index%ringSize]
	if float64(b.retried(index, now)+1) <= atLeast(c.Ratio*float64(b.called(index))) {
		if slot.index != index {
			*slot = retrySlot{index: index}
		}
		slot.count++
		slot.latest = now
		return true
	}
	if c.MinPerSecond > 0 && atLeast(b.tokens) >= 1 {
		b.tokens = max(0, b.tokens-1)
		return true
	}
	return false
}

// atLeast makes up for the digits that float64 arithmetic loses: 0.29 × 100 is
// 28.999999999999996.
func atLeast(x float64) float64 { return x + x*1e-9 }

// called returns the number of calls in the window that ends in the slot index.
func (b *budget) called(index int64) (n uint64) {
	oldest := uint64(max(index-slotCount+1, 0))
	for i := range b.calls {
		if word := b.calls[i].Load(); word>>32 >= oldest {
			n += word & math.MaxUint32
		}
	}
	return n
}

// retried returns the number of retries that the ratio paid for in the window
// that ends now, in the slot index.
func (b *budget) retried(index, now int64) (n int64) {
	for i := range b.retries {
		if s := &b.retries[i]; s.index >= index-slotCount && s.latest > now-window {
			n += s.count
		}
	}
	return n
}
