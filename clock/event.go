package clock

import (
	"container/heap"
	"math"
	"time"
)

// event is one entry of a Manual's queue: a callback of AfterFunc or the end of
// a sleep on a passive clock. All fields but m are guarded by m.mu.
type event struct {
	m   *Manual
	at  time.Time
	end bool   // the end of a passive sleep
	seq uint64 // arming order
	idx int    // place in the heap; gone once it has left
	f   func()
}

// gone is the idx of an event that was fired or stopped.
const gone = -1

var _ Timer = (*event)(nil)

// Stop implements Timer.
func (e *event) Stop() bool {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	return e.m.disarm(e)
}

// before orders the queue: by deadline, then by arming order. The end of a
// sleep comes after every callback that is due at the same instant, so that a
// context which ends then interrupts the sleep whenever its timer was armed;
// a driving Sleep behaves likewise, because it looks at its context last.
func (e *event) before(o *event) bool {
	if c := e.at.Compare(o.at); c != 0 {
		return c < 0
	}
	if e.end != o.end {
		return o.end
	}
	return e.seq < o.seq
}

// queue is a heap of events for container/heap.
type queue []*event

// Len implements sort.Interface.
func (q *queue) Len() int { return len(*q) }

// Less implements sort.Interface.
func (q *queue) Less(i, j int) bool { return (*q)[i].before((*q)[j]) }

// Swap implements sort.Interface.
func (q *queue) Swap(i, j int) {
	s := *q
	s[i], s[j] = s[j], s[i]
	s[i].idx, s[j].idx = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*event)
	e.idx = len(*q)
	*q = append(*q, e)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil // the backing array must not keep what the callback captured
	*q = (*q)[:last]
	e.idx = gone
	return e
}

// arm queues f for the instant at. The caller holds m.mu.
func (m *Manual) arm(at time.Time, end bool, f func()) *event {
	e := &event{m: m, at: at, end: end, seq: m.seq, f: f}
	m.seq++
	heap.Push(&m.queue, e)
	return e
}

// disarm takes e out of the queue; false when it has left before. The caller
// holds m.mu.
func (m *Manual) disarm(e *event) bool {
	if e.idx == gone {
		return false
	}
	heap.Remove(&m.queue, e.idx)
	e.f = nil
	return true
}

// lastInstant is the latest time that a time.Time can hold: 2^63-1 seconds after
// January 1 of the year 1, which is 62135596800 seconds before the Unix epoch.
var lastInstant = time.Unix(math.MaxInt64-62135596800, 999999999)

// later is t+d for d > 0 and t otherwise, never before t. A time.Time reaches
// 292 billion years, so even the longest delay (292 years) is exact and only a
// clock that starts at the end of that range saturates.
func later(t time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return t
	}
	sum := t.Add(d)
	if sum.Sub(t) != d { // Add clamps the seconds but not the nanoseconds
		return lastInstant.In(t.Location())
	}
	return sum
}
