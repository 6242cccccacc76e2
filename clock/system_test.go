package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
)

func TestSystem_IsComparable(t *testing.T) {
	if clock.System() != clock.System() {
		t.Error("two system clocks")
	}
	if clock.System() == clock.Clock(clock.NewManual(start)) {
		t.Error("a Manual passes for the system clock")
	}
}

func TestSystem_SleepKeepsTimeAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begin := clock.System(), time.Now()
		if err := c.Sleep(t.Context(), 5*time.Second); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("Sleep: %v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.AfterFunc(2*time.Second, cancel)
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) || time.Since(begin) != 7*time.Second {
			t.Errorf("interrupted Sleep: %v after %v", err, time.Since(begin))
		}
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) || time.Since(begin) != 7*time.Second {
			t.Errorf("Sleep with an ended context: %v after %v", err, time.Since(begin))
		}
		for _, d := range []time.Duration{0, -time.Hour} {
			if err := c.Sleep(t.Context(), d); err != nil || time.Since(begin) != 7*time.Second {
				t.Errorf("Sleep(%v): %v after %v", d, err, time.Since(begin))
			}
		}
	})
}

func TestSystem_AfterFuncFiresOnceOnItsOwnGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begin := clock.System(), time.Now()
		fired := make(chan time.Duration)
		fire := func() { fired <- time.Since(begin) } // blocks: it is not this goroutine
		timer := c.AfterFunc(time.Second, fire)
		stopped := c.AfterFunc(time.Second, fire)
		if !stopped.Stop() || stopped.Stop() {
			t.Error("Stop: want true, then false")
		}
		if at := <-fired; at != time.Second {
			t.Errorf("fired at %v", at)
		}
		if timer.Stop() {
			t.Error("Stop after the call: true")
		}
		if now := c.Now(); now.Sub(begin) != time.Second {
			t.Errorf("Now: %v", now)
		}
	})
}

func TestSystem_NilArgumentsPanicAtOnce(t *testing.T) {
	var none context.Context
	if got := recovered(func() { _ = clock.System().Sleep(none, 0) }); got != "clock: nil ctx in Sleep" {
		t.Error(got)
	}
	if got := recovered(func() { clock.System().AfterFunc(0, nil) }); got != "clock: nil f in AfterFunc" {
		t.Error(got)
	}
}

func TestSystem_AllocatesNothingOfItsOwn(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := clock.System()
	var sink time.Time
	if n := testing.AllocsPerRun(100, func() { c = clock.System(); sink = c.Now() }); n != 0 {
		t.Errorf("System and Now: %v allocations", n)
	}
	if sink.IsZero() {
		t.Error("Now is zero")
	}
	direct := testing.AllocsPerRun(100, func() { time.AfterFunc(time.Hour, noop).Stop() })
	if n := testing.AllocsPerRun(100, func() { c.AfterFunc(time.Hour, noop).Stop() }); n != direct {
		t.Errorf("AfterFunc: %v allocations, time.AfterFunc %v", n, direct)
	}
	ready := make(chan struct{})
	close(ready)
	m, ctx := clock.NewManual(start), t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = m.Wait(ctx, ready) }); n != 0 {
		t.Errorf("Wait for what is ready: %v allocations", n)
	}
}

func noop() {}
