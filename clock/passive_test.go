package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
)

// async starts f and hands its error over.
func async(f func() error) <-chan error {
	res := make(chan error, 1)
	go func() { res <- f() }()
	return res
}

func mustAwait(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestManualPassive_SleepParksUntilMoved(t *testing.T) {
	m := clock.NewManual(start).Passive()
	res := async(func() error { return m.Sleep(t.Context(), 2*time.Second) })
	mustAwait(t, m.AwaitSleepers(t.Context(), 1))
	checkClock(t, m, 0, 1)
	m.Advance(2*time.Second - 1)
	select {
	case err := <-res:
		t.Errorf("woke one nanosecond early: %v", err)
	default:
	}
	checkClock(t, m, 2*time.Second-1, 1)
	m.Advance(1)
	if err := <-res; err != nil {
		t.Error(err)
	}
	checkClock(t, m, 2*time.Second, 0)
}

// The timeout is armed after the sleep began, for its last instant: it wins,
// like under a driving Sleep.
func TestManualPassive_TieGoesToTheContext(t *testing.T) {
	m := clock.NewManual(start).Passive()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res := async(func() error { return m.Sleep(ctx, 2*time.Second) })
	mustAwait(t, m.AwaitSleepers(t.Context(), 1))
	m.AfterFunc(2*time.Second, cancel)
	m.Advance(2 * time.Second)
	if err := <-res; !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep: %v", err)
	}
	checkClock(t, m, 2*time.Second, 0)
}

// lateLook is a context at whose Done the sleeper, once its sleep is pending, gets
// to look only after the gate has opened.
type lateLook struct {
	context.Context
	m             *clock.Manual
	reached, gate chan struct{}
}

func (c lateLook) Done() <-chan struct{} {
	if c.m.Pending() > 0 {
		close(c.reached)
		<-c.gate
	}
	return c.Context.Done()
}

// When the goroutine gets to run the context has ended as well, but only after
// the sleep: a hundred rounds, because select picks at random.
func TestManualPassive_OutcomeIsDecidedAtTheEndOfTheSleep(t *testing.T) {
	for range 100 {
		m := clock.NewManual(start).Passive()
		ctx, cancel := context.WithCancel(t.Context())
		late := lateLook{ctx, m, make(chan struct{}), make(chan struct{})}
		res := async(func() error { return m.Sleep(late, 2*time.Second) })
		<-late.reached
		m.Advance(2 * time.Second)
		cancel()
		close(late.gate)
		if err := <-res; err != nil {
			t.Fatalf("Sleep ended first, but: %v", err)
		}
	}
}

func TestManualPassive_CanceledSleepLeavesNothingPending(t *testing.T) {
	m := clock.NewManual(start).Passive()
	ctx, cancel := context.WithCancel(t.Context())
	res := async(func() error { return m.Sleep(ctx, 2*time.Second) })
	mustAwait(t, m.AwaitSleepers(t.Context(), 1))
	cancel()
	if err := <-res; !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep: %v", err)
	}
	checkClock(t, m, 0, 0)
	if n := m.Parked(); n != 0 {
		t.Errorf("%d sleepers left behind", n)
	}
}

func TestManualPassive_WaitOnlyParks(t *testing.T) {
	m := clock.NewManual(start).Passive()
	m.AfterFunc(time.Second, func() { t.Error("fired") })
	ready := make(chan struct{})
	granted := async(func() error { return m.Wait(t.Context(), ready) })
	ctx, cancel := context.WithCancel(t.Context())
	canceled := async(func() error { return m.Wait(ctx, nil) })
	mustAwait(t, m.AwaitSleepers(t.Context(), 2))
	close(ready)
	if err := <-granted; err != nil {
		t.Errorf("granted Wait: %v", err)
	}
	cancel()
	if err := <-canceled; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled Wait: %v", err)
	}
	checkClock(t, m, 0, 1)
}

func TestManualPassive_WaitEndsWithAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewManual(start).Passive()
		ready := make(chan struct{})
		res := async(func() error { return m.Wait(t.Context(), ready) })
		synctest.Wait() // it is in its select
		ready <- struct{}{}
		if err := <-res; err != nil {
			t.Error(err)
		}
		if n := m.Parked(); n != 0 {
			t.Errorf("%d sleepers left behind", n)
		}
	})
}

// A value may come before, while and after Wait parks, with AwaitSleepers looking
// on: exactly one Wait takes it.
func TestManualPassive_WaitTakesAValueOnce(t *testing.T) {
	for range 500 {
		m := clock.NewManual(start).Passive()
		ready := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		looking := async(func() error { return m.AwaitSleepers(ctx, 2) })
		res := async(func() error { return m.Wait(t.Context(), ready) })
		other := async(func() error { return m.Wait(ctx, nil) })
		ready <- struct{}{}
		if err := <-res; err != nil || len(ready) != 0 {
			t.Fatalf("Wait: %v, %d left", err, len(ready))
		}
		cancel()
		if err := <-looking; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := <-other; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if n := m.Parked(); n != 0 {
			t.Fatalf("%d sleepers left behind", n)
		}
	}
}

func TestManualPassive_DriveMovesAllTheSame(t *testing.T) {
	m := clock.NewManual(start).Passive()
	res := async(func() error { return m.Sleep(t.Context(), 2*time.Second) })
	mustAwait(t, m.AwaitSleepers(t.Context(), 1))
	if err := m.Drive(t.Context(), func() bool { return m.Pending() == 0 }); err != nil {
		t.Error(err)
	}
	if err := <-res; err != nil {
		t.Error(err)
	}
	checkClock(t, m, 2*time.Second, 0)
}

// Right after the wake-up the goroutine has hardly ever run; it must not be
// counted on any of the rounds.
func TestManualAwaitSleepers_K6_ForgetsTheWokenAtOnce(t *testing.T) {
	type waker struct {
		park func(ctx context.Context, m *clock.Manual, ready chan struct{}) error
		wake func(m *clock.Manual, ready chan struct{}, cancel func())
	}
	sleep := func(ctx context.Context, m *clock.Manual, _ chan struct{}) error { return m.Sleep(ctx, time.Second) }
	wait := func(ctx context.Context, m *clock.Manual, ready chan struct{}) error { return m.Wait(ctx, ready) }
	for name, w := range map[string]waker{
		"sleep ends":     {sleep, func(m *clock.Manual, _ chan struct{}, _ func()) { m.Advance(time.Second) }},
		"sleep canceled": {sleep, func(_ *clock.Manual, _ chan struct{}, cancel func()) { cancel() }},
		"wait canceled":  {wait, func(_ *clock.Manual, _ chan struct{}, cancel func()) { cancel() }},
		"wait granted":   {wait, func(_ *clock.Manual, ready chan struct{}, _ func()) { close(ready) }},
	} {
		t.Run(name, func(t *testing.T) {
			ended, cancelEnded := context.WithCancel(t.Context())
			cancelEnded()
			for range 200 {
				m := clock.NewManual(start).Passive()
				ctx, cancel := context.WithCancel(t.Context())
				ready := make(chan struct{})
				res := async(func() error { return w.park(ctx, m, ready) })
				mustAwait(t, m.AwaitSleepers(t.Context(), 1))
				w.wake(m, ready, cancel)
				if err := m.AwaitSleepers(ended, 1); !errors.Is(err, context.Canceled) {
					t.Fatalf("counted a goroutine that was woken: %v", err)
				}
				if err := <-res; (err != nil) != (ctx.Err() != nil) {
					t.Fatalf("woken with %v", err)
				}
				cancel()
				checkClock(t, m, since(m), 0)
			}
		})
	}
}

func TestManualAwaitSleepers_StepsARetryLoop(t *testing.T) {
	const rounds = 500
	m := clock.NewManual(start).Passive()
	res := async(func() error {
		for range rounds {
			if err := m.Sleep(t.Context(), time.Second); err != nil {
				return err
			}
		}
		return nil
	})
	for range rounds {
		mustAwait(t, m.AwaitSleepers(t.Context(), 1))
		m.Advance(time.Second)
	}
	if err := <-res; err != nil {
		t.Error(err)
	}
	checkClock(t, m, rounds*time.Second, 0)
}

func TestManualAwait_EndsWithItsContext(t *testing.T) {
	m := clock.NewManual(start).Passive()
	for _, await := range []func(context.Context, int) error{m.AwaitSleepers, m.AwaitTimers} {
		ctx, cancel := context.WithCancel(t.Context())
		res := async(func() error { return await(ctx, 1) })
		cancel()
		if err := <-res; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := await(ctx, 0); err != nil {
			t.Errorf("enough lost against an ended context: %v", err)
		}
	}
}

func TestManualAwaitTimers_CountsSleepsAndTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewManual(start).Passive()
		res := async(func() error { return m.AwaitTimers(t.Context(), 2) })
		m.AfterFunc(time.Hour, func() {}).Stop()
		m.AfterFunc(time.Second, func() {})
		synctest.Wait()
		select {
		case err := <-res:
			t.Errorf("one pending event was enough for two: %v", err)
		default:
		}
		slept := async(func() error { return m.Sleep(t.Context(), time.Second) })
		if err := <-res; err != nil {
			t.Error(err)
		}
		m.Advance(time.Second)
		if err := <-slept; err != nil {
			t.Error(err)
		}
	})
}

func TestManualAwaitSleepers_HandsOnWhatItReceives(t *testing.T) {
	m := clock.NewManual(start).Passive()
	ready := make(chan struct{}, 1)
	if granted, counted := m.GrantInPassing(t.Context(), ready); granted || !counted {
		t.Errorf("nothing came: granted %v, counted %v", granted, counted)
	}
	ready <- struct{}{}
	if granted, counted := m.GrantInPassing(t.Context(), ready); !granted || counted {
		t.Errorf("a value came: granted %v, counted %v", granted, counted)
	}
	if len(ready) != 0 {
		t.Error("granted twice")
	}
}
