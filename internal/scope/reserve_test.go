package scope_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
)

func TestReserveHoldsWithoutADeadlineUntilBegin(t *testing.T) {
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		c := callctx.New(t.Context(), s.NewPlan(limit, errLimit, false))
		p := s.Reserve(c, s.Level(limit))
		m.pass(2 * limit)
		if _, ok := c.Deadline(); ok || c.Err() != nil || s.Pending() != 0 || s.Deadline(c) != scope.Never {
			t.Errorf("before Begin: deadline %v, Err %v, %d pending", ok, c.Err(), s.Pending())
		}
		found := 0
		s.Each(func(e *callctx.Context, slot *atomic.Pointer[callctx.Context]) {
			if e == c && slot.Load() == c {
				found++
			}
		})
		if found != 1 {
			t.Errorf("found %d times", found)
		}
		due := scope.After(s.Now(), limit)
		p.Begin(c, s.Now(), due)
		p.Begin(c, s.Now(), due+int64(time.Hour)) // no effect
		// On the wheel it is rounded up, by two nanoseconds at most.
		if at, ok := c.Deadline(); !ok || at.Before(s.At(due)) || at.After(s.At(due+2)) {
			t.Errorf("after Begin: %v, %v, want %v", at, ok, s.At(due))
		}
		m.wantPending(c)
		m.pass(limit)
		m.mustEnd(c)
	})
}

func TestReserveWithoutLevelIsFoundAndCancelled(t *testing.T) {
	end := callctx.NewEnd(context.Canceled, scope.ErrClosed)
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		c := callctx.New(t.Context(), s.NewPlan(0, errLimit, false))
		p := s.Reserve(c, nil)
		p.Begin(c, s.Now(), scope.Never)
		if _, ok := c.Deadline(); ok || s.Pending() != 0 {
			t.Error("a deadline")
		}
		s.Each(func(e *callctx.Context, slot *atomic.Pointer[callctx.Context]) {
			if !e.EndIn(slot, end) {
				t.Error("not cancelled")
			}
		})
		if !errors.Is(context.Cause(c), scope.ErrClosed) || c.Finish() != callctx.Cancelled {
			t.Errorf("Err %v, cause %v", c.Err(), context.Cause(c))
		}
		s.Each(func(*callctx.Context, *atomic.Pointer[callctx.Context]) { t.Error("it is left") })
		p.Begin(c, s.Now(), s.Now()) // too late: nothing may be armed
		if s.Pending() != 0 {
			t.Errorf("%d pending", s.Pending())
		}
	})
}

// stubborn is a clock whose timers leave when they are stopped.
type stubborn struct {
	*clock.Manual
	leave func()
}

type stubbornTimer struct {
	clock.Timer
	leave func()
}

func (c stubborn) AfterFunc(d time.Duration, f func()) clock.Timer {
	return stubbornTimer{c.Manual.AfterFunc(d, f), c.leave}
}

func (t stubbornTimer) Stop() bool {
	t.Timer.Stop()
	t.leave()
	return true
}

func TestAClockThatLeavesWhenATimerIsStoppedLeavesNothing(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic(errLimit) }, "Goexit": runtime.Goexit} {
		s := scope.New(stubborn{clock.NewManual(start), leave}, nil)
		c := callctx.New(t.Context(), s.NewPlan(time.Hour, errLimit, false))
		s.Arm(c, s.Level(time.Hour))
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			c.Finish()
		}()
		<-done
		if n := s.Pending(); n != 0 {
			t.Errorf("%s: %d pending", name, n)
		}
		s.Each(func(*callctx.Context, *atomic.Pointer[callctx.Context]) { t.Errorf("%s: a context is left", name) })
	}
}
