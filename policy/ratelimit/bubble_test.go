package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy/ratelimit"
)

// every entry point inside a bubble, on the system clock: exact, and
// nothing is left.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func(want time.Duration) {
			t.Helper()
			if got := time.Since(began); got != want {
				t.Errorf("at %s, want %s", got, want)
			}
		}
		s := scope.New(clock.System(), nil)
		p, err := ratelimit.NewIn(s, "b", config(ratelimit.PerSecond(1), ratelimit.Burst(2), ratelimit.MaxWait(10*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		if !p.TryAcquire() || p.Acquire(t.Context()) != nil || p.TryAcquire() {
			t.Error("not two at once")
		}
		if err := p.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
		at(time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// Exactly the deadline does not fit, and is seen at once.
		if got := retryAfter(t, p.Acquire(ctx)); got != time.Second {
			t.Errorf("RetryAfter %s", got)
		}
		at(time.Second)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire = %v", err)
		}
		at(1500 * time.Millisecond)

		w := enqueue(t, p, clock.System(), time.Minute)
		<-w.woken
		at(2 * time.Second)
		w = enqueue(t, p, clock.System(), time.Minute)
		if !p.Leave(w.Waiter) {
			t.Error("it did not leave")
		}
		if err := p.SetRate(1, time.Minute, 1); err != nil {
			t.Error(err)
		}
		if err := p.Reconfigure(config(ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))); err != nil {
			t.Error(err)
		}
		go func() {
			time.Sleep(time.Millisecond)
			s.Close()
		}()
		if err := p.Acquire(t.Context()); !errors.Is(err, scope.ErrClosed) {
			t.Errorf("Acquire = %v", err)
		}
		if got := p.Snapshot(); got.Admitted != 4 || got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// L-6, X-2: a limiter that is older than the bubble it is used in, and one whose
// bubble has ended.
func TestUsedInABubbleInWhichItWasNotMade(t *testing.T) {
	outside := newOn(t, clock.System(), ratelimit.PerSecond(1000), ratelimit.Burst(5), ratelimit.MaxWait(time.Second))
	var inside *ratelimit.Policy
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for range 20 {
				if err := outside.Acquire(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if inside == nil {
				inside = newOn(t, clock.System(), ratelimit.PerSecond(1000), ratelimit.MaxWait(time.Second))
			}
			if err := inside.Acquire(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if err := outside.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
		if err := inside.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
