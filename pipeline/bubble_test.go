package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// allLayers has one of each; a timeout takes 1 s, and a call of deaf functions 5.
func allLayers(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.Retry(retry.MaxAttempts(3), retry.Constant(time.Second)).CircuitBreaker(circuitbreaker.MinCalls(1000), circuitbreaker.CountWindow(1000)).
		RateLimit(ratelimit.PerSecond(1000), ratelimit.MaxWait(time.Second)).Timeout(time.Second).
		Bulkhead(bulkhead.MaxConcurrent(100), bulkhead.Queue(10))
}

func obedient(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// deaf ignores its context for three seconds.
func deaf(context.Context) (int, error) {
	time.Sleep(3 * time.Second)
	return 7, nil
}

// waits are the ways to wait for a future.
var waits = map[string]func(ctx context.Context, f *pipeline.Future[int]) error{
	"Get without end": func(_ context.Context, f *pipeline.Future[int]) error {
		_, err := f.Get(context.Background())
		return err
	},
	"Get": func(ctx context.Context, f *pipeline.Future[int]) error {
		_, err := f.Get(ctx)
		return err
	},
	"Done": func(ctx context.Context, f *pipeline.Future[int]) error {
		select {
		case <-f.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		_, _, err := f.Poll()
		return err
	},
	"OnComplete": func(_ context.Context, f *pipeline.Future[int]) error {
		result := make(chan error)
		f.OnComplete(func(_ int, err error) { result <- err })
		return <-result
	},
	"View": func(ctx context.Context, f *pipeline.Future[int]) error {
		_, err := f.View().View().Get(ctx)
		return err
	},
	"Work": func(_ context.Context, f *pipeline.Future[int]) error {
		<-f.Work().Done()
		_, _, err := f.Poll()
		return err
	},
}

// steady checks what a call comes to in a bubble. paused is given where a wheel
// outside may tick, which has its own time: it reports whether so much of that has
// passed since the last time that a call's deadline may have come before the bubble
// had it. Then the check says nothing.
func steady(t *testing.T, paused func() bool, what string, check func() error) {
	t.Helper()
	if paused != nil {
		paused()
	}
	err := check()
	if paused != nil && paused() {
		return
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// callsIn makes a call of each kind and waits for it in each way. paused is for
// steady.
func callsIn(t *testing.T, p *pipeline.Pipeline[int], paused func() bool) {
	t.Helper()
	for name, wait := range waits {
		for kind, call := range map[string]func(ctx context.Context) *pipeline.Future[int]{
			"obedient": func(ctx context.Context) *pipeline.Future[int] { return p.ExecuteAsync(ctx, obedient) },
			"deaf":     func(ctx context.Context) *pipeline.Future[int] { return p.ExecuteAsync(ctx, deaf) },
			"stage": func(ctx context.Context) *pipeline.Future[int] {
				return p.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[int] {
					promise := pipeline.NewPromise[int]()
					stopped := make(chan struct{})
					promise.OnCancel(func() { close(stopped) })
					go func() {
						<-stopped
						promise.Complete(7, nil)
					}()
					return promise.Future()
				})
			},
			"nested": func(ctx context.Context) *pipeline.Future[int] {
				return p.ExecuteFuture(ctx, func(ctx context.Context) *pipeline.Future[int] { return p.ExecuteAsync(ctx, obedient).View() })
			},
		} {
			what := kind + ", " + name
			steady(t, paused, what, func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begin := time.Now()
				err := wait(ctx, call(ctx))
				if took := time.Since(begin); !errors.Is(err, timeout.ErrExceeded) || took < 5*time.Second || took > 9*time.Second {
					return fmt.Errorf("%w after %v", err, took)
				}
				return nil
			})
			// Ends from outside, in the middle of an attempt and of a backoff.
			for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond} {
				steady(t, paused, what, func() error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					f := call(ctx)
					f.Done()
					time.Sleep(after)
					if !f.Cancel() {
						return fmt.Errorf("ended after %v", after)
					}
					if err := wait(ctx, f); !errors.Is(err, context.Canceled) {
						return fmt.Errorf("%w after Cancel", err)
					}
					return nil
				})
			}
			steady(t, paused, what, func() error {
				short, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer stop()
				if err := wait(t.Context(), call(short)); !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("%w after the caller's deadline", err)
				}
				return nil
			})
		}
	}
	steady(t, paused, "Execute", func() error {
		if _, err := p.Execute(t.Context(), obedient); !errors.Is(err, timeout.ErrExceeded) {
			return fmt.Errorf("%w, want a timeout", err)
		}
		return nil
	})
	_ = p.Run(t.Context(), func(context.Context) error { return nil })
	_, _ = pipeline.Wrap(p, func(context.Context, int) (int, error) { return 1, nil })(t.Context(), 1)
	_, _ = pipeline.WrapAsync(p, func(context.Context, int) (int, error) { return 1, nil })(t.Context(), 1).Get(t.Context())
	_, _ = pipeline.As[string](p).ExecuteAsync(t.Context(), func(context.Context) (string, error) { return "", nil }).Get(t.Context())
}

// A registry that is made inside needs no Close: the bubble ends only when none of
// its goroutines is left.
func TestBubble_X2_ARegistryMadeInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		p, err := allLayers(pipeline.New[int](reg, "x")).Build()
		if err != nil {
			t.Fatal(err)
		}
		callsIn(t, p, nil)
		time.Sleep(time.Minute)
		if s := reg.Snapshot(); s.Wheel.Pending != 0 || s.Pipelines[0].Calls.InFlight != 0 || s.Pipelines[0].Abandoned.Running != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// outside makes a registry outside of all bubbles. Ticking, its wheel fires on
// goroutines of its own, which must not touch what belongs to a bubble.
func outside(t *testing.T, ticking bool) (*registry.Registry, *pipeline.Pipeline[int]) {
	t.Helper()
	reg, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := allLayers(pipeline.New[int](reg, "x")).Build()
	if err != nil {
		t.Fatal(err)
	}
	if ticking {
		keepTicking(t, reg)
	}
	return reg, p
}

// keepTicking makes calls until the test's end, often enough for the wheel.
func keepTicking(t *testing.T, reg *registry.Registry) {
	t.Helper()
	busy, err := pipeline.New[int](reg, "busy").Timeout(20 * time.Millisecond).Build()
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for isOpen(stop) {
			_, _ = busy.Execute(context.Background(), returns(1, nil))
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		quiet(reg)
	})
	// A wheel whose ticks come late stays quiet: where the machine is that busy, go on
	// without one that ticks.
	for end := time.Now().Add(5 * time.Second); !reg.Snapshot().Wheel.Ticking && time.Now().Before(end); {
		<-tick()
	}
}

// quiet waits until the wheel ticks no more.
func quiet(reg *registry.Registry) {
	for reg.Snapshot().Wheel.Ticking {
		<-tick()
	}
}

func TestBubble_X2_ARegistryMadeOutside(t *testing.T) {
	for name, ticking := range map[string]bool{"quiet": false, "ticking": true} {
		t.Run(name, func(t *testing.T) {
			_, p := outside(t, ticking)
			run, last := testkit.Outside(t), time.Now()
			paused := func() (long bool) {
				run(func() { long, last = time.Since(last) > time.Second/2, time.Now() })
				return long
			}
			for range 2 { // bubbles one after the other
				synctest.Test(t, func(t *testing.T) { callsIn(t, p, paused) })
			}
		})
	}
}

// The bubble ends with calls pending, and the registry is closed outside.
func TestBubble_X2_CloseOutsideAfterTheBubble(t *testing.T) {
	for name, ticking := range map[string]bool{"quiet": false, "ticking": true} {
		t.Run(name, func(t *testing.T) {
			reg, p := outside(t, ticking)
			bare, err := pipeline.New[int](reg, "bare").Retry(retry.Constant(time.Hour)).Build()
			if err != nil {
				t.Fatal(err)
			}
			var left []*pipeline.Future[int]
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				t.Cleanup(func() { _ = cancel })
				for _, f := range []*pipeline.Future[int]{
					p.ExecuteFuture(ctx, giving(pipeline.NewPromise[int]().Future())),
					bare.ExecuteFuture(ctx, giving(pipeline.NewPromise[int]().Future())),
					bare.ExecuteFuture(ctx, giving(failed(errBoom))), // in its backoff
				} {
					f.Done()
					left = append(left, f)
				}
			})
			_ = reg.Close()
			for i, f := range left {
				if _, done, err := f.Poll(); !done || !errors.Is(err, registry.ErrClosed) {
					t.Errorf("%d: %v %v", i, done, err)
				}
			}
		})
	}
}

// A ticking registry on the real clock holds no goroutine: right after the calls
// there is none, without Close.
func TestLeak_X2_ATickingRegistry(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	reg, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.New[int](reg, "x").Retry(retry.MaxAttempts(2), retry.Constant(time.Millisecond)).
		Timeout(20 * time.Millisecond).Bulkhead(bulkhead.MaxConcurrent(100)).Build()
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine the wheel may stay quiet; that holds no goroutine either.
	for i := 0; i < 2000 || i < 4000 && !reg.Snapshot().Wheel.Ticking; i++ {
		if i%100 == 0 {
			if _, err := p.ExecuteAsync(t.Context(), obedient).Get(t.Context()); !errors.Is(err, timeout.ErrExceeded) {
				t.Fatal(err)
			}
		}
		v, err := p.ExecuteAsync(t.Context(), returns(i, nil)).Get(t.Context())
		if late := errors.Is(err, timeout.ErrExceeded); !late && (v != i || err != nil) { // twice late, on a machine that stops
			t.Fatalf("%d %v", v, err)
		}
		promise := pipeline.NewPromise[int]()
		f := p.ExecuteFuture(t.Context(), giving(promise.Future()))
		f.Cancel()
	}
	_ = testkit.NoneLeft(func() error { return goleak.Find(ignore) })
	goleak.VerifyNone(t, ignore)
	quiet(reg)
}

// Stages and their retries, in a bubble: the goroutine that completes a stage is
// not the one that begins the next attempt, which may want what it holds.
func TestStage_A4_TheProducerRunsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, _ := registry.New()
		p, err := pipeline.New[int](reg, "x").Retry(retry.MaxAttempts(2), retry.Constant(0)).Build()
		if err != nil {
			t.Fatal(err)
		}
		lock := make(chan struct{}, 1)
		promises := []*pipeline.Promise[int]{pipeline.NewPromise[int](), pipeline.NewPromise[int]()}
		n := 0
		f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
			lock <- struct{}{}
			defer func() { <-lock }()
			n++
			return promises[n-1].Future()
		})
		lock <- struct{}{} // as a client that completes its requests under its lock
		promises[0].Complete(0, errBoom)
		<-lock
		synctest.Wait()
		promises[1].Complete(7, nil)
		if v, err := f.Get(t.Context()); v != 7 || err != nil {
			t.Errorf("%d %v", v, err)
		}
	})
}

// A stage whose deadline has passed is cancelled whatever the next attempt does.
func TestStage_A4_CancelledBesideTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, _ := registry.New()
		p, err := pipeline.New[int](reg, "x").Retry(retry.MaxAttempts(2), retry.Constant(0)).Timeout(time.Second).Build()
		if err != nil {
			t.Fatal(err)
		}
		begin, n := time.Now(), 0
		var cancelled time.Duration
		f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
			promise := pipeline.NewPromise[int]()
			if n++; n == 1 {
				promise.OnCancel(func() { cancelled = time.Since(begin) })
				return promise.Future()
			}
			time.Sleep(time.Hour)
			promise.Complete(7, nil)
			return promise.Future()
		})
		if v, err := f.Get(t.Context()); v != 7 || err != nil || time.Since(begin) < time.Hour {
			t.Errorf("%d %v", v, err)
		}
		synctest.Wait() // OnCancel has a goroutine of its own
		if cancelled < time.Second || cancelled > 2*time.Second {
			t.Errorf("cancelled after %v", cancelled)
		}
	})
}
