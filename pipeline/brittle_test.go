package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func onHooked(t *testing.T) (*testkit.HookedClock, *registry.Registry) {
	t.Helper()
	clk := &testkit.HookedClock{Manual: clock.NewManual(epoch).Passive()}
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	return clk, reg
}

// leaves calls f on a goroutine of its own, which f may end, and waits for that.
func leaves(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		f()
	}()
	<-over
}

// A clock is the user's code. If it panics, or ends the goroutine, where the timer
// of an async call is armed, the call ends and nothing of it is left.
func TestAsync_B5_X3_AClockThatCanSetNoTimer(t *testing.T) {
	for how, leave := range testkit.Leaving {
		t.Run("backoff, "+how, func(t *testing.T) {
			clk, reg := onHooked(t)
			p := pipeline.Must(pipeline.New[int](reg, "x").Retry(retry.Constant(3 * time.Second)).Bulkhead(bulkhead.MaxConcurrent(1)).Build())
			clk.BeforeTimer = func(time.Duration) { leave() }
			var f *pipeline.Future[int]
			leaves(func() {
				f = p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
					stage := pipeline.NewPromise[int]()
					stage.Complete(0, errBoom)
					return stage.Future()
				})
			})
			nothingIsLeft(t, clk, reg, f)
		})
		t.Run("stage, "+how, func(t *testing.T) {
			clk, reg := onHooked(t)
			p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(1)).Build())
			clk.BeforeTimer = func(time.Duration) { leave() }
			stage, canceled := pipeline.NewPromise[int](), 0
			stage.OnCancel(func() { canceled++ })
			var f *pipeline.Future[int]
			leaves(func() { f = p.ExecuteFuture(t.Context(), giving(stage.Future())) })
			if canceled != 1 {
				t.Errorf("the stage was cancelled %d times", canceled)
			}
			nothingIsLeft(t, clk, reg, f)
		})
		for _, granted := range []bool{false, true} {
			t.Run("stage in the queue, "+how, func(t *testing.T) {
				clk, reg := onHooked(t)
				p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)).Build())
				slots, _ := reg.Bulkhead("x")
				slots.TryAcquire()
				clk.BeforeTimer = func(time.Duration) {
					if granted {
						slots.Release()
					}
					leave()
				}
				var f *pipeline.Future[int]
				leaves(func() { f = p.ExecuteFuture(t.Context(), giving(pipeline.NewPromise[int]().Future())) })
				if !granted {
					slots.Release()
				}
				nothingIsLeft(t, clk, reg, f)
			})
		}
	}
}

// A timer may call at once, as some fakes do.
func TestAsync_X3_AClockThatCallsAtOnce(t *testing.T) {
	clk, reg := onHooked(t)
	p := pipeline.Must(pipeline.New[int](reg, "x").Retry(retry.Constant(time.Second), retry.MaxAttempts(5)).Build())
	clk.AfterTimer = clk.Advance
	flaky := 0
	f := p.ExecuteAsync(t.Context(), func(context.Context) (int, error) {
		if flaky++; flaky < 4 {
			return 0, errBoom
		}
		return 7, nil
	})
	if v, err := f.Get(t.Context()); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	if clk.Pending() != 0 {
		t.Errorf("%d timers are left", clk.Pending())
	}
}

// The clock is read for MaxDuration when the call begins.
func TestAsync_X3_AClockThatCannotBeReadAtTheBeginning(t *testing.T) {
	for how, leave := range testkit.Leaving {
		clk, reg := onHooked(t)
		p := pipeline.Must(pipeline.New[int](reg, "x").Retry(retry.MaxDuration(time.Second)).Bulkhead(bulkhead.MaxConcurrent(1)).Build())
		clk.OnNow = leave
		var f *pipeline.Future[int]
		leaves(func() {
			f = p.ExecuteAsync(t.Context(), func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
		})
		clk.OnNow = nil
		if (f == nil) != (how == "Goexit") {
			t.Errorf("%s: %v", how, f)
		}
		nothingIsLeft(t, clk, reg, f)
	}
}

// Cancel panics where the clock cannot be read, and has done nothing yet.
func TestCancel_X3_AClockThatCannotBeRead(t *testing.T) {
	clk, reg := onHooked(t)
	p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Build())
	f := p.ExecuteFuture(t.Context(), giving(pipeline.NewPromise[int]().Future()))
	clk.OnNow = func() { panic("no time") }
	testkit.Survive(t, func() { f.Cancel() })
	clk.OnNow = nil
	if done(f) || !f.Cancel() || !done(f) {
		t.Error("it can be cancelled no more")
	}
}

// unstoppable is a clock whose timers end the goroutine of who stops them.
type unstoppable struct {
	*clock.Manual
	leaves atomic.Bool
}

type unstoppableTimer struct {
	clock.Timer
	c *unstoppable
}

func (c *unstoppable) AfterFunc(d time.Duration, f func()) clock.Timer {
	return unstoppableTimer{c.Manual.AfterFunc(d, f), c}
}

func (t unstoppableTimer) Stop() bool {
	if t.c.leaves.Load() {
		runtime.Goexit()
	}
	return t.Timer.Stop()
}

// Whoever stops a timer for a call that was ended may not come back: the call ends.
func TestStop_A6_X3_AClockWhoseTimersEndTheGoroutine(t *testing.T) {
	for how, stop := range map[string]func(f *pipeline.Future[int], cancel func(), reg *registry.Registry){
		"Cancel": func(f *pipeline.Future[int], _ func(), _ *registry.Registry) { f.Cancel() },
		"caller": func(_ *pipeline.Future[int], cancel func(), _ *registry.Registry) { cancel() },
		"Close":  func(_ *pipeline.Future[int], _ func(), reg *registry.Registry) { _ = reg.Close() },
	} {
		for waits, first := range map[string]*pipeline.Future[int]{"backoff": failed(errBoom), "stage": pipeline.NewPromise[int]().Future()} {
			clk := &unstoppable{Manual: clock.NewManual(epoch).Passive()}
			reg, err := registry.New(registry.WithClock(clk))
			if err != nil {
				t.Fatal(err)
			}
			p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Retry(retry.Constant(time.Hour)).Build())
			ctx, cancel := context.WithCancel(t.Context())
			f := p.ExecuteFuture(ctx, giving(first))
			clk.leaves.Store(true)
			leaves(func() { stop(f, cancel, reg) })
			if _, err := f.Get(t.Context()); err == nil {
				t.Errorf("%s, %s: no error", how, waits)
			}
			if n := reg.Snapshot().Pipelines[0].Calls.InFlight; n != 0 {
				t.Errorf("%s, %s: %d in flight", how, waits, n)
			}
			cancel()
		}
	}
}

func nothingIsLeft(t *testing.T, clk *testkit.HookedClock, reg *registry.Registry, f *pipeline.Future[int]) {
	t.Helper()
	clk.BeforeTimer = nil
	for f != nil && !done(f) { // what was granted a slot goes on elsewhere
		runtime.Gosched()
	}
	if f != nil {
		if _, _, err := f.Poll(); err == nil || errors.Is(err, errBoom) {
			t.Errorf("ended with %v", err)
		}
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		s := reg.Snapshot()
		if b := s.Bulkheads[0]; b.InUse == 0 && b.Waiting == 0 && s.Pipelines[0].Calls.InFlight == 0 && s.Wheel.Pending == 0 && clk.Pending() == 0 {
			return
		}
	}
	s := reg.Snapshot()
	t.Errorf("%+v, %+v, %d pending", s.Bulkheads[0], s.Pipelines[0].Calls, clk.Pending())
}
