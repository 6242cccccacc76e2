package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// A wait that a careless context ends was not granted.
func TestWaits_AContextThatIsDoneWithoutAnErrorHasEnded(t *testing.T) { // O-5, T-10
	for _, tc := range []struct {
		name   string
		layers layers
		taken  func(a *arena) (release func())
	}{
		{"bulkhead", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
		}, func(a *arena) func() {
			b, _ := a.reg.Bulkhead("x")
			b.TryAcquire()
			return b.Release
		}},
		{"limiter", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.RateLimit(ratelimit.Per(1, time.Hour), ratelimit.MaxWait(2*time.Hour))
		}, func(a *arena) func() {
			l, _ := a.reg.RateLimiter("x")
			l.TryAcquire()
			return func() {}
		}},
	} {
		for _, before := range []bool{true, false} {
			t.Run(tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := newArena(t, inline, false)
					p := build(a.world, "x", tc.layers)
					release := tc.taken(a)
					ctx := testkit.Careless{Context: a.Context(), Ended: make(chan struct{})}
					if before {
						close(ctx.Ended)
					}
					ran := 0
					r := a.start(ctx, p, func(context.Context) (int, error) { ran++; return 0, errBoom })
					if !before {
						if r.ended() {
							t.Fatalf("it did not wait: %v", r.err)
						}
						close(ctx.Ended)
					}
					_, err := r.end()
					if r.panicked != nil {
						t.Fatalf("panic: %v", r.panicked)
					}
					a.is(err, context.Canceled)
					if ran != 0 || r.over != 0 {
						t.Errorf("the function ran %d times, over at +%v", ran, r.over)
					}
					if c := a.calls("x"); c.Succeeded != 0 || c.Started != 1 || c.InFlight != 0 {
						t.Errorf("%+v", c)
					}
					if b, ok := a.reg.Bulkhead("x"); ok {
						if s := b.Snapshot(); s.InUse != 1 || s.Waiting != 0 || s.Available != 0 {
							t.Errorf("it took a slot: %+v", s)
						}
					}
					release()
				})
			})
		}
	}
}

// On the real clock: package context does not bear that anything is derived from
// such a context, as an attempt's context is on other clocks.
func TestBackoff_AContextThatIsDoneWithoutAnErrorHasEnded(t *testing.T) { // T-10
	reg, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.Must(pipeline.New[int](reg, "x").Retry(retry.MaxAttempts(2), retry.Constant(time.Hour)).Build())
	ctx := testkit.Careless{Context: t.Context(), Ended: make(chan struct{})}
	close(ctx.Ended)
	ran := 0
	_, err = p.Execute(ctx, func(context.Context) (int, error) { ran++; return 0, errBoom })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errBoom) || ran != 1 {
		t.Errorf("after %d attempts: %v", ran, err)
	}
	if c := reg.Snapshot().Pipelines[0].Calls; c.Succeeded != 0 || c.InFlight != 0 {
		t.Errorf("%+v", c)
	}
}

// fickle says once that it has ended, and then that it has not.
type fickle struct {
	context.Context
	asked *int
}

func (f fickle) Err() error {
	if *f.asked++; *f.asked == 1 {
		return context.Canceled
	}
	return nil
}

func TestExecute_O5_AContextThatChangesItsMindIsNoSuccess(t *testing.T) {
	for name, l := range map[string]layers{
		"plain":    func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b },
		"timeout":  twoSeconds,
		"retry":    func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Retry() },
		"bulkhead": func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Bulkhead(bulkhead.MaxConcurrent(1)) },
	} {
		w := newWorld(t)
		p := build(w, "x", l)
		for how, call := range map[string]func(ctx context.Context, fn func(context.Context) error) error{
			"Run": p.Run,
			"Execute": func(ctx context.Context, fn func(context.Context) error) error {
				_, err := p.Execute(ctx, func(ctx context.Context) (int, error) { return 7, fn(ctx) })
				return err
			},
			"ExecuteAsync": func(ctx context.Context, fn func(context.Context) error) error {
				_, err := p.ExecuteAsync(ctx, func(ctx context.Context) (int, error) { return 7, fn(ctx) }).Get(t.Context())
				return err
			},
		} {
			err := call(fickle{t.Context(), new(int)}, func(context.Context) error {
				t.Errorf("%s, %s: the function ran", name, how)
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
		if c := w.calls("x"); name != "plain" && (c.Started != 3 || c.Cancelled != 3) { // a plain pipeline does not count
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// The hook that judges a probe may end the goroutine; the probe's place is free
// again all the same.
func TestBreaker_C3_X3_AFailIfThatEndsTheGoroutineKeepsNoProbe(t *testing.T) {
	for name, l := range map[string]layers{
		"alone": broken(),
		"below a retry": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return broken()(b.Retry(retry.MaxAttempts(2)))
		},
	} {
		for _, failed := range []error{errBoom, nil} {
			t.Run(name, func(t *testing.T) {
				inForms(t, []form{inline}, func(a *arena) {
					exit := true
					p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
						return l(b).FailIf(func(_ int, err error) bool {
							if exit {
								runtime.Goexit()
							}
							return err != nil
						})
					})
					a.halfOpen("x")
					left := make(chan struct{})
					go func() {
						defer close(left)
						_, err := p.Execute(a.Context(), returns(0, failed))
						t.Errorf("it returned with %v", err)
					}()
					<-left
					exit = false
					want := circuitbreaker.Closed // as the function's own error says
					if failed != nil {
						want = circuitbreaker.Open
					}
					a.state("x", want)
					if failed != nil {
						a.advance(5 * time.Second)
					}
					if v, err := a.call(a.Context(), p, returns(7, nil)); v != 7 || err != nil {
						a.Errorf("the next probe: %d, %v", v, err)
					}
					a.state("x", circuitbreaker.Closed)
				})
			})
		}
	}
}

func TestTimeout_T14_AListenerThatEndsTheGoroutineLosesNoLateValue(t *testing.T) {
	clk := clock.NewManual(epoch)
	reg, err := registry.New(registry.WithClock(clk), registry.WithListener(func(_ context.Context, e policy.Event) {
		if _, ok := e.(pipeline.LateSuccess); ok {
			runtime.Goexit()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	var discarded []int
	p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(1)).
		OnDiscard(func(v int) { discarded = append(discarded, v) }).Build())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, err := p.Execute(t.Context(), func(context.Context) (int, error) { clk.Advance(2 * time.Second); return 7, nil })
		t.Errorf("it returned with %v", err)
	}()
	<-left
	if len(discarded) != 1 || discarded[0] != 7 {
		t.Errorf("discarded %v", discarded)
	}
	s := reg.Snapshot()
	if c := s.Pipelines[0].Calls; c.InFlight != 0 || c.Panicked != 1 || s.Bulkheads[0].InUse != 0 || s.Wheel.Pending != 0 || clk.Pending() != 0 {
		t.Errorf("%+v, %+v, pending %d", c, s.Bulkheads[0], s.Wheel.Pending)
	}
}

// The clock is the user's code: no lock is held while it arms a timer.
func TestTimeout_X3_AClockThatCallsBackInAfterFunc(t *testing.T) {
	for name, use := range map[string]struct {
		after func(clk *clock.Manual, reg *registry.Registry) func(time.Duration)
		want  error
	}{
		"time passes": {func(clk *clock.Manual, _ *registry.Registry) func(time.Duration) { return clk.Advance }, timeout.ErrExceeded},
		"a snapshot": {func(_ *clock.Manual, reg *registry.Registry) func(time.Duration) {
			return func(time.Duration) { reg.Snapshot() }
		}, nil},
		"another call": {func(_ *clock.Manual, reg *registry.Registry) func(time.Duration) {
			depth := 0
			p := pipeline.Must(pipeline.New[int](reg, "other").Timeout(time.Second).Build())
			return func(time.Duration) {
				if depth++; depth == 1 {
					_, _ = p.Execute(context.Background(), returns(3, nil))
				}
			}
		}, nil},
	} {
		clk := &testkit.HookedClock{Manual: clock.NewManual(epoch)}
		reg, err := registry.New(registry.WithClock(clk))
		if err != nil {
			t.Fatal(err)
		}
		p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(2 * time.Second).Build())
		clk.AfterTimer = use.after(clk.Manual, reg)
		ended := make(chan error, 1)
		go func() {
			_, err := p.Execute(context.Background(), func(ctx context.Context) (int, error) { return 7, ctx.Err() })
			ended <- err
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, use.want) || err != nil && use.want == nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: a lock was held", name)
		}
		if n := reg.Snapshot().Wheel.Pending; n != 0 || clk.Pending() != 0 {
			t.Errorf("%s: %d deadlines, %d timers are left", name, n, clk.Pending())
		}
	}
}

func TestTimeout_X3_T4_AClockThatPanicsLeavesNothing(t *testing.T) {
	clk := &testkit.HookedClock{Manual: clock.NewManual(epoch)}
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(2 * time.Second).Bulkhead(bulkhead.MaxConcurrent(1)).Build())
	ctx := &testkit.Linked{Context: t.Context()}
	for name, before := range map[string]func(time.Duration){
		"panic": func(time.Duration) {
			if n := ctx.Registered.Load(); n != 1 {
				t.Errorf("%d are registered with the caller's context, want 1", n)
			}
			panic(errBoom)
		},
		"Goexit": func(time.Duration) { runtime.Goexit() },
	} {
		clk.BeforeTimer = before
		left := make(chan any)
		go func() {
			defer func() { left <- recover() }()
			_, err := p.Execute(ctx, returns(7, nil))
			t.Errorf("%s: it returned with %v", name, err)
		}()
		v := <-left
		if err, _ := v.(error); name == "panic" && !errors.Is(err, errBoom) {
			t.Errorf("panic with %v", v)
		}
		s, registered := reg.Snapshot(), ctx.Registered.Load()
		if registered != 0 || s.Wheel.Pending != 0 || s.Bulkheads[0].InUse != 0 || s.Pipelines[0].Calls.InFlight != 0 || clk.Pending() != 0 {
			t.Errorf("%s: %d registered, %d pending, %+v, %+v", name, registered, s.Wheel.Pending, s.Bulkheads[0], s.Pipelines[0].Calls)
		}
	}
	clk.BeforeTimer = nil
	if v, err := p.Execute(ctx, returns(7, nil)); v != 7 || err != nil || ctx.Registered.Load() != 0 {
		t.Errorf("afterwards: %d, %v, %d registered", v, err, ctx.Registered.Load())
	}
}
