package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy/timeout"
)

// An event that was armed before the call and is due at its deadline comes first,
// and the function that waits for it is back before the deadline's own event.
func TestDo_T7_ReleasedByAnEarlierEventAtTheDeadline(t *testing.T) {
	for _, own := range []error{nil, errOwn} {
		p, m := newTimeout(t, 2*time.Second)
		ready, early := make(chan struct{}), make(chan struct{})
		m.AfterFunc(2*time.Second, func() { close(ready) })
		m.AfterFunc(4*time.Second-1, func() { close(early) })
		until := func(ready <-chan struct{}) func(context.Context) error {
			return func(ctx context.Context) error { return errors.Join(own, m.Wait(ctx, ready)) }
		}
		err := p.Do(t.Context(), until(ready))
		var te *timeout.Error
		if at := m.Now().Sub(noon); at != 2*time.Second || !errors.As(err, &te) || own != nil && !errors.Is(err, own) {
			t.Errorf("released at the deadline, at +%v: %v", at, err)
		}
		wantTimedOut(t, p, 1)
		// One nanosecond before the deadline it is in time.
		err = p.Do(t.Context(), until(early))
		if at := m.Now().Sub(noon); at != 4*time.Second-1 || errors.Is(err, timeout.ErrExceeded) || !errors.Is(err, own) {
			t.Errorf("released before the deadline, at +%v: %v", at, err)
		}
		wantTimedOut(t, p, 1)
	}
}

// A function keeps to the deadline that its context tells, as connections do: by
// an error of its own, at that very instant. In a bubble both happen at once.
func TestDo_T2_T7_WhoKeepsToTheDeadlineThatHeWasToldIsTimedOut(t *testing.T) {
	keep := func(ctx context.Context) error {
		at, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), at)
		defer cancel()
		<-ctx.Done()
		return errors.Join(errOwn, ctx.Err())
	}
	check := func(t *testing.T, limit time.Duration, n int) {
		t.Helper()
		p, err := timeout.New("reports", timeout.Config{Value: limit}, clock.System())
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			err := p.Do(t.Context(), keep)
			var te *timeout.Error
			if !errors.As(err, &te) || !errors.Is(err, errOwn) {
				t.Errorf("got %v", err)
			}
		}
		wantTimedOut(t, p, uint64(n))
	}
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { check(t, 2*time.Second, 50) })
	})
	t.Run("real", func(t *testing.T) { check(t, 2*time.Millisecond, 20) })
}

// The clock is the user's code: no lock is held while it arms a timer.
func TestDo_X3_AClockThatMovesInAfterFunc(t *testing.T) {
	clk := &testkit.HookedClock{Manual: clock.NewManual(noon)}
	clk.AfterTimer = clk.Advance
	p, err := timeout.New("reports", limit, clk)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Do(context.Background(), func(ctx context.Context) error { return ctx.Err() }) }()
	select {
	case err := <-ended:
		if !errors.Is(err, timeout.ErrExceeded) || clk.Pending() != 0 {
			t.Errorf("%v, %d pending", err, clk.Pending())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a lock was held")
	}
}

func TestDo_X3_T4_AClockThatPanicsLeavesNothing(t *testing.T) {
	clk := &testkit.HookedClock{Manual: clock.NewManual(noon)}
	p, err := timeout.New("reports", limit, clk)
	if err != nil {
		t.Fatal(err)
	}
	ctx := &testkit.Linked{Context: t.Context()}
	for name, before := range map[string]func(){
		"panic":  func() { panic(errOwn) },
		"Goexit": runtime.Goexit,
	} {
		clk.BeforeTimer = func(time.Duration) {
			if n := ctx.Registered.Load(); n != 1 {
				t.Errorf("%s: %d are registered with the caller's context, want 1", name, n)
			}
			before()
		}
		left := make(chan any)
		go func() {
			defer func() { left <- recover() }()
			err := p.Do(ctx, func(context.Context) error { return nil })
			t.Errorf("%s: it returned with %v", name, err)
		}()
		v := <-left
		if err, _ := v.(error); name == "panic" && !errors.Is(err, errOwn) {
			t.Errorf("panic with %v", v)
		}
		if n := ctx.Registered.Load(); n != 0 || clk.Pending() != 0 {
			t.Errorf("%s: %d registered, %d timers", name, n, clk.Pending())
		}
	}
}
