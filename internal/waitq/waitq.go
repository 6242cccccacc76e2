// Package waitq is the first-in, first-out queue of those who wait for a permit
// or a slot. What a waiter gets is decided once, by one compare-and-swap on its
// own state, so that a grant and a cancellation that meet have one winner.
//
// A [Queue] has no lock of its own: its methods need the lock of the policy
// that owns it. A [Waiter]'s Settle and Leave need no lock.
//
// # Guarantees
//
//	what                                            proved by
//	granted or left, never both and never neither   TestGrantAgainstLeaveHasOneWinner
//	first in, first out; removal from anywhere      TestQueueKeepsOrder
//	the waiter is woken exactly once                TestSettleWakesOnce
package waitq

import "sync/atomic"

// State is what has become of a waiter.
type State uint32

// The states of a waiter. It leaves Waiting once and for ever.
const (
	Waiting State = iota
	Granted       // it has what it waited for
	Refused       // it will not get it: see Err
	Left          // it gave up by itself: it was cancelled
)

// Waiter is one place in a queue. It is used once. Make it with [New] or
// [NewChan], or embed one and call Init.
type Waiter struct {
	state atomic.Uint32
	err   error  // for Refused; written before the state
	wake  func() // called once, by whoever settles it

	// Guarded by the queue owner's lock.
	prev, next *Waiter
	queued     bool

	// Max is the last instant at which its wait may end, in the owner's time.
	// Guarded by the owner's lock.
	Max int64
}

// New returns a waiter whose wake is called once, by whoever settles it, with
// no lock held.
func New(wake func()) *Waiter { return &Waiter{wake: wake} }

// NewChan returns a waiter and the channel that is closed when it is settled.
func NewChan() (*Waiter, <-chan struct{}) {
	ready := make(chan struct{})
	return &Waiter{wake: func() { close(ready) }}, ready
}

// Init sets the wake function of a waiter that is embedded elsewhere.
func (w *Waiter) Init(wake func()) { w.wake = wake }

// Relay puts what relay makes of w's wake function in its place. Call it before w
// is queued.
func (w *Waiter) Relay(relay func(wake func()) func()) { w.wake = relay(w.wake) }

// Grant settles w as granted. It reports false if w was settled before; then
// the permit is still the caller's. The caller must call Wake after it has
// released its lock.
func (w *Waiter) Grant() bool {
	return w.state.CompareAndSwap(uint32(Waiting), uint32(Granted))
}

// Refuse settles w as refused with err. It reports false if w was settled
// before. Only the owner of the queue may call it, under its lock: the error is
// written before the state, so there must be one writer. The caller must call
// Wake after it has released its lock.
func (w *Waiter) Refuse(err error) bool {
	if State(w.state.Load()) != Waiting {
		return false
	}
	w.err = err
	return w.state.CompareAndSwap(uint32(Waiting), uint32(Refused))
}

// Wake tells the waiter that it was settled. Call it exactly once for each
// Grant or Refuse that reported true, with no lock held.
func (w *Waiter) Wake() { w.wake() }

// Leave settles w as gone, for a waiter whose own context ended. It reports
// false if w was granted or refused before: then that is its fate. After true
// the caller must still take w out of the queue, under the owner's lock.
func (w *Waiter) Leave() bool {
	return w.state.CompareAndSwap(uint32(Waiting), uint32(Left))
}

// State is what has become of w.
func (w *Waiter) State() State { return State(w.state.Load()) }

// Err is why w was refused. It may be read once State is Refused.
func (w *Waiter) Err() error { return w.err }

// Queue is a doubly linked list of waiters. The zero value is empty. All methods
// need the owner's lock.
type Queue struct {
	head, tail *Waiter
	n          int
}

// Len is the number of waiters in the queue.
func (q *Queue) Len() int { return q.n }

// Front is the waiter that is first in line, or nil.
func (q *Queue) Front() *Waiter { return q.head }

// Push puts w at the end of the line.
func (q *Queue) Push(w *Waiter) {
	w.prev, w.next, w.queued = q.tail, nil, true
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.n++
}

// Remove takes w out of the line, wherever it stands. It reports false if w was
// not in it.
func (q *Queue) Remove(w *Waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.n--
	return true
}

// Pop takes the first waiter out of the line, or returns nil.
func (q *Queue) Pop() *Waiter {
	w := q.head
	if w != nil {
		q.Remove(w)
	}
	return w
}
