package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
)

// timeout is a context that the clock ends after d, and the timer that does it.
func timeout(t *testing.T, m *clock.Manual, d time.Duration) (context.Context, clock.Timer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, m.AfterFunc(d, cancel)
}

func TestManualSleep_K1_StopsAtTheInstantTheContextEnds(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.AfterFunc(time.Second, d.noting("before"))
	ctx, _ := timeout(t, m, 2*time.Second)
	m.AfterFunc(2*time.Second, d.noting("tie"))
	m.AfterFunc(3*time.Second, d.noting("after"))
	if err := m.Sleep(ctx, 5*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep: %v", err)
	}
	d.check(t, "before@1s")
	checkClock(t, m, 2*time.Second, 2)
}

func TestManualSleep_K1_CompletesBeforeTheDeadline(t *testing.T) {
	m := clock.NewManual(start)
	ctx, timer := timeout(t, m, 2*time.Second)
	if err := m.Sleep(ctx, 2*time.Second-1); err != nil {
		t.Errorf("Sleep: %v", err)
	}
	if !timer.Stop() {
		t.Error("the timeout fired one nanosecond early")
	}
	checkClock(t, m, 2*time.Second-1, 0)
}

func TestManualSleep_K1_TieGoesToTheContext(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.AfterFunc(2*time.Second, d.noting("first"))
	ctx, _ := timeout(t, m, 2*time.Second)
	if err := m.Sleep(ctx, 2*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep: %v", err)
	}
	d.check(t, "first@2s")
	checkClock(t, m, 2*time.Second, 0)
}

func TestManualSleep_EndedContextDoesNotMoveTheClock(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, m := range []*clock.Manual{clock.NewManual(start), clock.NewManual(start).Passive()} {
		m.AfterFunc(time.Second, func() { t.Error("fired") })
		for _, d := range []time.Duration{-1, 0, 5 * time.Second} {
			if err := m.Sleep(ctx, d); !errors.Is(err, context.Canceled) {
				t.Errorf("Sleep(%v): %v", d, err)
			}
		}
		checkClock(t, m, 0, 1)
	}
}

func TestManualSleep_NoDurationDoesNotWait(t *testing.T) {
	for _, m := range []*clock.Manual{clock.NewManual(start), clock.NewManual(start).Passive()} {
		m.AfterFunc(0, func() { t.Error("fired") })
		for _, d := range []time.Duration{0, -1} {
			if err := m.Sleep(t.Context(), d); err != nil {
				t.Errorf("Sleep(%v): %v", d, err)
			}
		}
		checkClock(t, m, 0, 1)
	}
}

func TestManualAdvance_K2_IgnoresTheInterrupt(t *testing.T) {
	m := clock.NewManual(start)
	ctx, _ := timeout(t, m, 2*time.Second)
	m.Advance(5 * time.Second)
	if ctx.Err() == nil {
		t.Error("the timeout did not fire")
	}
	checkClock(t, m, 5*time.Second, 0)
}

func TestManualDrive_LooksBeforeTheFirstAndAfterEachEvent(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	for i := 1; i <= 4; i++ {
		m.AfterFunc(time.Duration(i)*time.Second, d.noting("e"))
	}
	looks := 0
	err := m.Drive(t.Context(), func() bool { looks++; return since(m) == 3*time.Second })
	if err != nil || looks != 4 {
		t.Errorf("Drive: %v after %d looks, want 4", err, looks)
	}
	d.check(t, "e@1s", "e@2s", "e@3s")
	checkClock(t, m, 3*time.Second, 1)
}

func TestManualDrive_StopsAtTheInstantTheContextEnds(t *testing.T) {
	m := clock.NewManual(start)
	ctx, _ := timeout(t, m, 2*time.Second)
	m.AfterFunc(3*time.Second, func() { t.Error("fired") })
	if err := m.Drive(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("Drive: %v", err)
	}
	checkClock(t, m, 2*time.Second, 1)
	if err := m.Drive(ctx, func() bool { return true }); err != nil {
		t.Errorf("a condition that holds lost against an ended context: %v", err)
	}
	if err := m.Drive(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("Drive with an ended context: %v", err)
	}
	checkClock(t, m, 2*time.Second, 1)
}

func TestManualWait_K5_DrivesUntilReady(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	ready := make(chan struct{})
	m.AfterFunc(time.Second, d.noting("a"))
	m.AfterFunc(2*time.Second, func() { d.note("grant"); close(ready) })
	m.AfterFunc(3*time.Second, d.noting("b"))
	if err := m.Wait(t.Context(), ready); err != nil {
		t.Errorf("Wait: %v", err)
	}
	d.check(t, "a@1s", "grant@2s")
	checkClock(t, m, 2*time.Second, 1)
}

func TestManualWait_K5_TakesAValueAsReady(t *testing.T) {
	m := clock.NewManual(start)
	ready := make(chan struct{}, 1)
	m.AfterFunc(time.Second, func() { ready <- struct{}{} })
	if err := m.Wait(t.Context(), ready); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if len(ready) != 0 {
		t.Error("the value was left in the channel")
	}
}

func TestManualWait_K5_StopsAtTheInstantTheContextEnds(t *testing.T) {
	m := clock.NewManual(start)
	ctx, _ := timeout(t, m, 2*time.Second)
	m.AfterFunc(3*time.Second, func() { t.Error("fired") })
	if err := m.Wait(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	checkClock(t, m, 2*time.Second, 1)
}

func TestManualWait_ReadyWinsOverAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	closed := make(chan struct{})
	close(closed)
	for _, m := range []*clock.Manual{clock.NewManual(start), clock.NewManual(start).Passive()} {
		m.AfterFunc(time.Second, func() { t.Error("fired") })
		if err := m.Wait(ctx, closed); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if err := m.Wait(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait, not ready: %v", err)
		}
		checkClock(t, m, 0, 1)
	}
}

func TestManual_NilArgumentsPanicAtOnce(t *testing.T) {
	m := clock.NewManual(start)
	var none context.Context
	for want, f := range map[string]func(){
		"clock: nil ctx in Sleep":         func() { _ = m.Sleep(none, 0) },
		"clock: nil ctx in Drive":         func() { _ = m.Drive(none, func() bool { return true }) },
		"clock: nil until in Drive":       func() { _ = m.Drive(t.Context(), nil) },
		"clock: nil ctx in Wait":          func() { _ = m.Wait(none, nil) },
		"clock: nil ctx in AwaitSleepers": func() { _ = m.AwaitSleepers(none, 0) },
		"clock: nil ctx in AwaitTimers":   func() { _ = m.AwaitTimers(none, 0) },
		"clock: nil f in AfterFunc":       func() { m.AfterFunc(time.Second, nil) },
	} {
		if got := recovered(f); got != want {
			t.Errorf("recovered %v, want %q", got, want)
		}
	}
	checkClock(t, m, 0, 0)
}
