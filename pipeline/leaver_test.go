package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// leavers are what the user's code may do to the goroutine that lends itself to it.
var leavers = map[string]func(){"panic": func() { panic("leave") }, "Goexit": runtime.Goexit}

func fallsBack(context.Context, error) (int, error) { return 9, nil }

// wherever the end of an async call is decided or told, the user's code
// may panic or end the goroutine. The call ends all the same, its work is done,
// and nothing is in flight.
func TestCall_X3_A7_EndsWhoeverLeavesMeanwhile(t *testing.T) {
	for name, start := range map[string]func(b *pipeline.Builder[int], leave func()) *pipeline.Future[int]{
		"fallback's If, the caller's end": func(b *pipeline.Builder[int], leave func()) *pipeline.Future[int] {
			ctx, cancel := context.WithCancel(context.Background())
			f := pipeline.Must(b.Fallback(fallsBack, fallback.If(func(error) bool { leave(); return true })).Build()).
				ExecuteAsync(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			synctest.Wait()
			cancel()
			return f
		},
		"OnCancel, the stage's end": func(b *pipeline.Builder[int], leave func()) *pipeline.Future[int] {
			promise := pipeline.NewPromise[int]()
			promise.OnCancel(leave)
			f := pipeline.Must(b.Retry(retry.MaxAttempts(1)).Build()).ExecuteFuture(context.Background(), giving(promise.Future()))
			go promise.Future().Cancel()
			return f
		},
		"OnDiscard, before the fallback": func(b *pipeline.Builder[int], leave func()) *pipeline.Future[int] {
			return pipeline.Must(b.Retry(retry.MaxAttempts(2), retry.Constant(0)).RetryIf(func(int, error) bool { return false }).
				Fallback(fallsBack).OnDiscard(func(int) { leave() }).Build()).ExecuteAsync(context.Background(), returns(7, errBoom))
		},
		"OnDiscard, a late value": func(b *pipeline.Builder[int], leave func()) *pipeline.Future[int] {
			f := pipeline.Must(b.Timeout(s).OnDiscard(func(int) { leave() }).Build()).
				ExecuteAsync(context.Background(), func(context.Context) (int, error) { return 7, clock.System().Sleep(context.Background(), 3*s) })
			_ = clock.System().Sleep(context.Background(), 4*s)
			return f
		},
		"the fallback": func(b *pipeline.Builder[int], leave func()) *pipeline.Future[int] {
			return pipeline.Must(b.Fallback(func(context.Context, error) (int, error) { leave(); return 0, nil }).Build()).
				ExecuteAsync(context.Background(), returns(0, errBoom))
		},
	} {
		for kind, leave := range leavers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					reg, err := registry.New()
					if err != nil {
						t.Fatal(err)
					}
					mustEnd(t, reg, start(pipeline.New[int](reg, "x"), leave))
				})
			})
		}
	}
}

// The same for a method of the function's error, asked while the call is ended
// from outside in its backoff.
func TestCall_X3_A6_EndsWhateverItsErrorDoes(t *testing.T) {
	for name, end := range map[string]func(reg *registry.Registry, f *pipeline.Future[int], cancel func()){
		"Cancel":  func(_ *registry.Registry, f *pipeline.Future[int], _ func()) { f.Cancel() },
		"context": func(_ *registry.Registry, _ *pipeline.Future[int], cancel func()) { cancel() },
		"Close":   func(reg *registry.Registry, _ *pipeline.Future[int], _ func()) { _ = reg.Close() },
	} {
		for kind, leave := range leavers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					reg, err := registry.New()
					if err != nil {
						t.Fatal(err)
					}
					e := &moody{leave: leave}
					p := pipeline.Must(pipeline.New[int](reg, "x").Retry(retry.Constant(time.Hour)).Fallback(fallsBack, fallback.On(errNotFound)).Build())
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					f := p.ExecuteAsync(ctx, returns(0, e))
					synctest.Wait()
					e.bad.Store(true)
					go end(reg, f, cancel)
					mustEnd(t, reg, f)
				})
			})
		}
	}
}

// And for the cause of the caller's context, which has ended before the call.
func TestCall_X3_O5_EndsWhateverTheCallersCauseDoes(t *testing.T) {
	for kind, leave := range leavers {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			e := &moody{leave: leave}
			e.bad.Store(true)
			p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				return b.Fallback(fallsBack, fallback.SkipOn(errNotFound))
			})
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(e)
			left := make(chan any, 1)
			go func() {
				defer func() { left <- recover() }()
				p.ExecuteFuture(ctx, giving(failed(errBoom)))
			}()
			if value := <-left; value != nil {
				t.Errorf("it panics with %v", value)
			}
			if c := w.calls("x"); c.InFlight != 0 || c.Started != 1 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// A fallback that panics with an error whose own methods panic.
func TestCall_X3_O7_AFallbackPanicsWithABadError(t *testing.T) {
	w := newWorld(t)
	e := &moody{leave: func() { panic("leave") }}
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Fallback(func(context.Context, error) (int, error) { e.bad.Store(true); panic(error(e)) })
	})
	_, err := p.ExecuteAsync(context.Background(), returns(0, errBoom)).Get(context.Background())
	e.bad.Store(false)
	var value *pipeline.PanicError
	if !errors.As(err, &value) || !errors.Is(err, errBoom) {
		t.Errorf("got %v", err)
	}
}

// mustEnd wants f and its work to be over once nothing moves any more.
func mustEnd(t *testing.T, reg *registry.Registry, f *pipeline.Future[int]) {
	t.Helper()
	synctest.Wait()
	_, done, err := f.Poll()
	_, over, _ := f.Work().Poll()
	if p := reg.Snapshot().Pipelines[0]; !done || !over || p.Calls.InFlight != 0 || p.Abandoned.Running != 0 {
		t.Errorf("done %v (%v), work done %v, %+v, %+v", done, err, over, p.Calls, p.Abandoned)
		f.Cancel()
	}
}
