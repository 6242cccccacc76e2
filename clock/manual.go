package clock

import (
	"container/heap"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Manual is a clock for tests: it moves only when it is told to, through every
// pending event in order, and each callback sees Now() equal to its own
// deadline. It never sleeps in real time, but for the few milliseconds that a
// method may wait for the news that its context has ended (see Sleep).
//
// Advance, Set and Drive move it; so do Sleep and the library's waits for
// permits and slots, unless the clock is Passive. Callbacks run on the
// goroutine that moves the clock, with no lock held: they may use every method
// of the clock, also to move it on. A callback that panics (or ends its
// goroutine, like t.FailNow) leaves the clock at that callback's deadline,
// usable, with all other events in place.
//
// All methods are safe for concurrent use. With several goroutines that move
// the clock at once the order of events and the total stay exact, but which of
// them comes first is up to the scheduler, and one may move the clock while
// another's callback still runs. Tests of concurrent code get exact results
// with one goroutine that moves a Passive clock, or in a testing/synctest
// bubble with the system clock.
//
// What reads another clock is not moved: time.Sleep, a client's own timers,
// context.WithTimeout.
//
// A Manual on which a goroutine of a testing/synctest bubble waits must be
// moved inside that bubble: what wakes the goroutine was made there, and the
// runtime panics if it is touched from outside.
//
// The zero Manual is ready to use and stands at the zero time. A Manual must
// not be copied.
type Manual struct {
	passive atomic.Bool

	mu       sync.Mutex
	now      time.Time // never decreases
	queue    queue     // no event in it lies before now
	seq      uint64
	advances []*journey // the calls of Advance in progress
	parked   map[*parked]struct{}
	watchers map[*watcher]struct{}
}

var _ Clock = (*Manual)(nil)

// NewManual returns a clock that stands at start, without start's monotonic
// reading.
func NewManual(start time.Time) *Manual { return &Manual{now: start.Round(0)} }

// Now is the time at which the clock stands; inside a callback the callback's
// deadline.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// AfterFunc arms f for now+d. It is called, once, by whoever moves the clock to
// that instant; equal deadlines are called in arming order. With d <= 0 it is
// due now, and called as soon as anything moves the clock, be it Advance(0).
// Armed by a callback for an instant that the running Advance covers, it is
// called in that Advance.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	needFunc(f)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.arm(later(m.now, d), false, f)
	m.announce()
	return e
}

// Advance moves the clock by d and returns when everything due until then has
// been called, on this goroutine unless another one moved the clock there. It
// looks at no context: called inside a protected function it behaves like code
// that ignores its timeout. Advance(0) calls what is due now; a negative d does
// nothing.
//
// Calls of Advance add up, whether they overlap or one is made by a callback of
// the other: each moves the clock by its own d, and the clock ends at start
// plus the sum. Time that passes in a Sleep meanwhile is not added.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		return
	}
	m.mu.Lock()
	j := &journey{target: later(m.now, d), adds: true}
	m.advances = append(m.advances, j)
	m.mu.Unlock()
	defer m.endAdvance(j)
	for e := m.step(j); e != nil; e = m.step(j) {
		m.fire(e)
	}
}

func (m *Manual) endAdvance(j *journey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.advances, j)
	m.advances = slices.Delete(m.advances, i, i+1)
}

// Set moves the clock to t and returns when everything due until then has been
// called. The clock never goes back: a t before Now does nothing.
func (m *Manual) Set(t time.Time) {
	j := &journey{target: t.Round(0)}
	for e := m.step(j); e != nil; e = m.step(j) {
		m.fire(e)
	}
}

// Pending counts the events that are neither called nor stopped: timers, and
// sleeps on a passive clock. Zero at the end of a test proves that nothing was
// left behind.
func (m *Manual) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue)
}

// Next is the deadline of the event that comes first; false when none is
// pending.
func (m *Manual) Next() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return time.Time{}, false
	}
	return m.queue[0].at, true
}

// String names the time and the number of pending events, for failure messages.
func (m *Manual) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("manual clock at %s, %d pending", m.now.Format(time.RFC3339Nano), len(m.queue))
}

// journey is one movement of the clock to a target, by Advance, Set or Sleep.
type journey struct {
	target time.Time
	adds   bool // Advance: its distance comes on top of what other Advances cover
}

// step goes on with j: it moves the clock to the next event no later than j's
// target and takes it out for firing, or, without one, moves to the target and
// returns nil.
//
// For each Advance in progress, target-now is the distance that it has still to
// cover itself. When one moves the clock, the targets of all others move along
// and keep their distances; that is what makes overlapping calls add up. That
// distance never exceeds the call's own d, so Sub below cannot saturate.
func (m *Manual) step(j *journey) *event {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, to := (*event)(nil), j.target
	if len(m.queue) > 0 && !m.queue[0].at.After(j.target) {
		e = heap.Pop(&m.queue).(*event)
		to = e.at
	}
	if !to.After(m.now) {
		return e // due now, or somebody else has moved the clock past the target
	}
	if j.adds {
		for _, o := range m.advances {
			if o != j {
				o.target = later(o.target, to.Sub(m.now))
			}
		}
	}
	m.moveTo(to)
	return e
}

// moveTo sets the clock. The caller holds m.mu and has made sure that no queued
// event lies before t.
func (m *Manual) moveTo(t time.Time) {
	m.now = t
	m.notify(moved)
}

// fire calls e, which has left the queue, with no lock held.
func (m *Manual) fire(e *event) {
	// What the callback did may be what a Drive elsewhere waits for; told also
	// when the callback panics.
	defer m.notifyFired()
	e.f()
}

func (m *Manual) notifyFired() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notify(moved)
}
