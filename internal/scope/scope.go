package scope

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/wheel"
	"resilience4cata.dev/go/policy"
)

// ErrClosed is what a call gets from a registry that was closed or is being
// drained. Package registry exports it.
var ErrClosed = errors.New("registry: closed")

// Scope is shared by all policies of one registry. It is safe for concurrent
// use. Make it with [New].
type Scope struct {
	clk      clock.Clock
	base     time.Time
	far      atomic.Pointer[time.Time] // see far
	system   bool                      // clk is the system's: read its monotonic part alone
	ordered  bool                      // clk calls what is due at once in a known order: see soon
	bubble   bool                      // made inside a synctest bubble
	listener policy.Listener

	wheel *sharedWheel // nil: each deadline is a timer of clk

	closed   atomic.Bool
	mu       sync.Mutex
	hooks    map[*hook]struct{}
	privates map[*private]struct{} // contexts whose deadlines are not on the wheel
	moments  map[int64]*moment     // by deadline; nil where the clock is ordered
}

type hook struct{ f func() }

// New returns a scope on clk whose events go to listener, which may be nil. A
// nil clock is the system's.
func New(clk clock.Clock, listener policy.Listener) *Scope {
	if clk == nil {
		clk = clock.System()
	}
	s := &Scope{clk: clk, listener: listener, system: clk == clock.System(), hooks: map[*hook]struct{}{}, privates: map[*private]struct{}{}}
	s.base = clk.Now()
	s.bubble = s.system && wheel.Bubbled(s.base)
	_, manual := clk.(*clock.Manual)
	if s.ordered = s.system || manual; !s.ordered {
		s.moments = map[int64]*moment{}
	}
	return s
}

// Clock is the scope's clock.
func (s *Scope) Clock() clock.Clock { return s.clk }

// System reports whether the scope runs on the system clock.
func (s *Scope) System() bool { return s.system }

// Bubble reports whether the scope was made inside a synctest bubble, where
// deadlines are runtime timers: exact, and of that bubble alone.
func (s *Scope) Bubble() bool { return s.bubble }

// Foreign reports whether the caller is in a synctest bubble and the scope was
// made outside of all. It reads the clock.
func (s *Scope) Foreign() bool { return s.system && !s.bubble && s.Now() <= 0 }

func (s *Scope) foreign(now int64) bool { return s.system && !s.bubble && now <= 0 }

// Time is the clock's time, for events and snapshots.
func (s *Scope) Time() time.Time { return s.clk.Now() }

// AfterFunc calls f when d has passed, never earlier: on a goroutine of its own
// on the system clock, on the advancing goroutine under a manual clock. It is
// for waits; the deadlines of calls are on the wheel.
func (s *Scope) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := s.clk.AfterFunc(d, f)
	if s.Foreign() {
		return bubbleTimer{here(), t}
	}
	return t
}

// bubbleTimer is a timer that was made in a foreign synctest bubble. To stop it
// from elsewhere would end the process.
type bubbleTimer struct {
	bubble uint64
	timer  clock.Timer
}

// Stop stops the timer if the caller is in its bubble; a timer that goes off finds
// nothing left to do.
func (t bubbleTimer) Stop() bool { return In(t.bubble) && t.timer.Stop() }

// driver is a clock that must be driven while something waits on it.
type driver interface {
	Wait(ctx context.Context, ready <-chan struct{}) error
}

// Wait blocks until ready is closed (nil) or ctx ends (its error); ready wins
// when both are true. Every wait of a policy and every backoff goes through here,
// so that a manual clock can drive itself through its events meanwhile. A wait for
// a future does not: see docs/testing.md.
func (s *Scope) Wait(ctx context.Context, ready <-chan struct{}) error {
	if d, ok := s.clk.(driver); ok {
		return d.Wait(ctx, ready)
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-ready:
		return nil
	default:
		return ended(ctx)
	}
}

// ended is the error of a context that says that it is done. A foreign one may
// say so without an error, which would read as granted.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled
}

// Sleep blocks for d and returns nil, ctx's error when that ends first, or
// ErrClosed when the scope is closed.
func (s *Scope) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		if s.Closed() {
			return ErrClosed
		}
		return nil
	}
	var once sync.Once
	ready := make(chan struct{})
	wake := func() { once.Do(func() { close(ready) }) }
	hook := wake
	if b := s.Visited(); b != 0 {
		hook = func() { // ready is the bubble's: who closes the scope elsewhere must not touch it
			if In(b) {
				wake()
			}
		}
	}
	remove := s.OnClose(hook)
	defer remove()
	t := s.AfterFunc(d, wake)
	defer t.Stop()
	if err := s.Wait(ctx, ready); err != nil {
		return err
	}
	if s.Closed() {
		return ErrClosed
	}
	return nil
}

// Closed reports whether Close was called.
func (s *Scope) Closed() bool { return s.closed.Load() }

// Close runs all hooks, on this goroutine and with no lock held, and makes
// Closed true for ever. It reports whether this call was the first.
func (s *Scope) Close() bool {
	if s.closed.Swap(true) {
		return false
	}
	s.mu.Lock()
	hooks := s.hooks
	s.hooks = nil
	s.mu.Unlock()
	for h := range hooks {
		h.f()
	}
	return true
}

// OnClose arranges for f to run when the scope is closed; at once, on this
// goroutine, if it is closed already. The returned function takes that back.
// f must not block; it may call OnClose's result and anything else here.
func (s *Scope) OnClose(f func()) (remove func()) {
	h := &hook{f}
	s.mu.Lock()
	open := s.hooks != nil
	if open {
		s.hooks[h] = struct{}{}
	}
	s.mu.Unlock()
	if !open {
		f()
		return func() {}
	}
	return func() {
		s.mu.Lock()
		delete(s.hooks, h)
		s.mu.Unlock()
	}
}
