package scope

import (
	"bytes"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/internal/wheel"
)

// A channel or a timer that was made in a synctest bubble may be touched by the
// goroutines of that bubble alone: the runtime ends the process of who closes,
// sends or stops from outside, or from another bubble. A registry in a package
// variable is used by many bubbles, at once if their tests are parallel. So it
// is not enough to know that one is in some bubble: it has to be known in which.
//
// The runtime says so in one place, the first line of a goroutine's trace:
//
//	goroutine 7 [running, synctest bubble 3]:
//
// To ask takes a microsecond for each frame of the stack. So it is asked only
// where it is known already that the caller is in a bubble and that the scope was
// made outside of all. A scope that was made in a bubble is that one's: it never
// asks.
//
// If that text ever changes, a bubble has no name. Nobody is in a bubble without
// a name, so nothing of it is touched by anybody but its own timers, which need
// not ask: see Guest. Only what has no such timer relies on the clock then, as if
// there were one foreign bubble at a time: see inside.

// nameless is the name of a bubble that can't be told from others.
const nameless = math.MaxUint64

// here is the name of the synctest bubble that the caller is in; 0: in none.
func here() uint64 {
	if !wheel.Bubbled(time.Now()) {
		return 0
	}
	b := make([]byte, 128)
	return nameIn(b[:runtime.Stack(b, false)])
}

// nameIn finds the name of the bubble in a goroutine's trace.
func nameIn(trace []byte) uint64 {
	line, _, _ := bytes.Cut(trace, []byte{'\n'})
	_, rest, ok := bytes.Cut(line, []byte("synctest bubble "))
	if !ok {
		return nameless
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseUint(string(rest[:digits]), 10, 64)
	if err != nil || n == 0 {
		return nameless
	}
	return n
}

// In reports whether the caller is in the bubble of that name.
func In(bubble uint64) bool { return bubble != nameless && here() == bubble }

// Visited is the name of the synctest bubble that the caller is in, if the scope
// was made outside of all; else 0.
func (s *Scope) Visited() uint64 {
	if !s.system || s.bubble {
		return 0
	}
	return here()
}

// inside is for the watch of a context that is made in a foreign bubble. It
// returns a function that reports whether its caller is in that bubble, and sees
// to it that those in there hear of an end from elsewhere.
//
// In a bubble without a name that is every foreign bubble: else they would never
// hear of any end, not even of one from inside.
func (s *Scope) inside(c *callctx.Context) func() bool {
	b := here()
	newGuest(b, ofContext, nil, func() (over, wake bool) { return c.Tell(), false })
	if b == nameless {
		return s.Foreign
	}
	return func() bool { return In(b) }
}

// Guest is somebody who waits in a synctest bubble, with a scope that was made
// outside, for something that is decided anywhere: outside, or in another bubble.
// Whoever decides it must not wake him, but may where he is in the same bubble.
// For all other cases a timer of the bubble looks, again and again, whether it
// was decided: at first each millisecond of the bubble's time, then less often.
//
// There is no way to have the bubble's time stand still meanwhile: it would stand
// still for those, too, for whom he waits if they are in the bubble. So while all
// in a bubble wait for somebody outside, its time flies: about as fast as looks
// take, which is a minute in some ten milliseconds.
type Guest struct {
	// Ready is closed to wake the guest; nil: see Lodge.
	Ready chan struct{}

	bubble uint64
	wake   func()
	look   func() (over, wake bool)
	began  time.Time
	part   time.Duration // of the time since then
	woken  atomic.Bool
}

// The bubble's time from one look to the next is a part of the time waited.
const (
	minLook = time.Millisecond
	maxLook = 10 * time.Second

	ofWait    = 4096 // look often: those outside have to have their time
	ofContext = 16   // a context has its own end
)

// NewGuest returns a guest for the caller, who is in that bubble: see Visited.
// over says that it is decided what the guest waits for. Call Wake then, to have
// him woken at once if that is in the same bubble.
func NewGuest(bubble uint64, over func() bool) *Guest {
	ready := make(chan struct{})
	g := newGuest(bubble, ofWait, func() { close(ready) }, func() (bool, bool) { return over(), true })
	g.Ready = ready
	return g
}

// Lodge makes a guest of w, which is about to be queued, if the caller is in a
// foreign bubble. Each look begins with a call of each, if there is one.
func (s *Scope) Lodge(w *waitq.Waiter, each func()) {
	b := s.Visited()
	if b == 0 {
		return
	}
	look := func() (over, wake bool) {
		if each != nil {
			each()
		}
		state := w.State()
		return state != waitq.Waiting, state != waitq.Left
	}
	w.Relay(func(wake func()) func() { return newGuest(b, ofWait, wake, look).Wake })
}

func newGuest(bubble uint64, part time.Duration, wake func(), look func() (over, wake bool)) *Guest {
	g := &Guest{bubble: bubble, wake: wake, look: look, began: time.Now(), part: part}
	g.later()
	return g
}

// Of reports whether the guest is known to be in that bubble.
func (g *Guest) Of(bubble uint64) bool { return bubble != nameless && bubble == g.bubble }

func (g *Guest) later() {
	time.AfterFunc(min(max(time.Since(g.began)/g.part, minLook), maxLook), g.visit)
}

// visit is the timer. It belongs to the bubble, and so does who runs it.
func (g *Guest) visit() {
	if g.woken.Load() {
		return
	}
	over, wake := g.look()
	switch {
	case !over:
		g.later()
	case wake && !g.woken.Swap(true):
		g.wake()
	}
}

// Wake wakes the guest, if the caller is in the guest's bubble: else its timer
// will. Call it once it is decided what the guest waits for.
func (g *Guest) Wake() {
	if In(g.bubble) && !g.woken.Swap(true) {
		g.wake()
	}
}
