package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// heardBy is a registry with a listener, which may be nil.
func heardBy(t *testing.T, l policy.Listener) *registry.Registry {
	t.Helper()
	var o []registry.Option
	if l != nil {
		o = append(o, registry.WithListener(l))
	}
	reg, err := registry.New(o...)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// errCtx is a context whose Err does something else first.
type errCtx struct {
	context.Context
	f atomic.Pointer[func()]
}

func (c *errCtx) Err() error {
	if f := c.f.Load(); f != nil {
		(*f)()
	}
	return c.Context.Err()
}

// The caller's context is asked when the function has failed.
func TestCall_X3_A7_EndsWhateverTheCallersContextDoes(t *testing.T) {
	for name, f := range map[string]func(){"goexit": runtime.Goexit, "panic": func() { panic("x") }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := heardBy(t, nil)
				ctx := &errCtx{Context: context.Background()}
				p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Build())
				g := p.ExecuteAsync(ctx, func(context.Context) (int, error) { ctx.f.Store(&f); return 0, errBoom })
				synctest.Wait()
				ctx.f.Store(nil)
				mustEnd(t, reg, g)
			})
		})
	}
}

// The future is the stage of another call, whose hook ends the goroutine.
func TestCall_X3_A3_WorkEndsThoughAFollowerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := heardBy(t, nil)
		p := pipeline.Must(pipeline.New[int](reg, "a").Timeout(time.Hour).Build())
		q := pipeline.Must(pipeline.New[int](reg, "b").Retry(retry.MaxAttempts(2)).RetryIf(func(int, error) bool { runtime.Goexit(); return false }).Build())
		g := p.ExecuteAsync(context.Background(), func(context.Context) (int, error) { time.Sleep(time.Second); return 1, nil })
		wd := g.Work().Done()
		q.ExecuteFuture(context.Background(), giving(g))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case <-wd:
		default:
			t.Error("work's done channel stays open")
		}
		mustEnd(t, reg, g)
	})
}

// The same when it is cancelled: the function hears of that.
func TestCall_X3_A6_CancelReachesTheContextThoughAFollowerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := heardBy(t, nil)
		p := pipeline.Must(pipeline.New[int](reg, "a").Timeout(time.Hour).Build())
		q := pipeline.Must(pipeline.New[int](reg, "b").Retry(retry.MaxAttempts(2)).RetryIf(func(int, error) bool { runtime.Goexit(); return false }).Build())
		var told atomic.Bool
		g := p.ExecuteAsync(context.Background(), func(ctx context.Context) (int, error) { <-ctx.Done(); told.Store(true); return 1, nil })
		synctest.Wait()
		q.ExecuteFuture(context.Background(), giving(g))
		go g.Cancel()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !told.Load() {
			t.Error("the function was not told of Cancel")
		}
		mustEnd(t, reg, g)
	})
}

// A listener ends the goroutine that tells it of the timeout.
func TestCall_X3_A1_EndsThoughAListenerLeavesAtTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := heardBy(t, func(_ context.Context, e policy.Event) {
			if _, ok := e.(timeout.Exceeded); ok {
				runtime.Goexit()
			}
		})
		p := pipeline.Must(pipeline.New[int](reg, "a").Timeout(time.Second).Retry(retry.MaxAttempts(1)).Build())
		g := p.ExecuteAsync(context.Background(), func(ctx context.Context) (int, error) { <-ctx.Done(); return 1, nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		_ = reg.Close()
		mustEnd(t, reg, g)
	})
}

// A listener ends the goroutine that is refused.
func TestCall_X3_B5_EndsThoughAListenerLeavesAtTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := heardBy(t, func(_ context.Context, e policy.Event) {
			if _, ok := e.(bulkhead.Full); ok {
				runtime.Goexit()
			}
		})
		p := pipeline.Must(pipeline.New[int](reg, "a").Bulkhead(bulkhead.MaxConcurrent(1)).Build())
		ctx, cancel := context.WithCancel(context.Background())
		g := p.ExecuteAsync(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 1, nil })
		go p.ExecuteAsync(context.Background(), returns(1, nil))
		synctest.Wait()
		cancel()
		mustEnd(t, reg, g)
	})
}

// Close comes while the fallback is asked whether it is for the caller's end.
func TestCall_X1_O7_CloseWhileTheFallbackIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := heardBy(t, nil)
		asked, goOn, end := make(chan bool), make(chan bool), make(chan bool)
		p := pipeline.Must(pipeline.New[int](reg, "a").Retry(retry.MaxAttempts(3), retry.Constant(time.Hour)).
			Fallback(func(context.Context, error) (int, error) { <-end; return 1, nil }, fallback.If(func(err error) bool {
				if errors.Is(err, context.Canceled) {
					close(asked)
					<-goOn
				}
				return true
			})).Build())
		ctx, cancel := context.WithCancel(context.Background())
		g := p.ExecuteAsync(ctx, returns(0, errBoom))
		synctest.Wait()
		cancel()
		<-asked
		_ = reg.Close()
		close(goOn)
		synctest.Wait()
		mustEnd(t, reg, g)
		close(end)
	})
}

// MaxDuration's exact deadlines are odd and even.
func TestDeadline_T2_R8_WhoKeepsToMaxDurationIsOutOfTime(t *testing.T) {
	reg := heardBy(t, nil)
	p := pipeline.Must(pipeline.New[int](reg, "a").Retry(retry.MaxAttempts(1), retry.MaxDuration(3*time.Millisecond)).Build())
	for range 60 {
		_, err := p.Execute(context.Background(), func(ctx context.Context) (int, error) {
			d, _ := ctx.Deadline()
			for time.Now().Before(d) {
			}
			return 1, nil
		})
		if !errors.Is(err, retry.ErrOutOfTime) {
			t.Fatalf("in time: %v", err)
		}
	}
}

// A result comes too late for its call, and a listener ends the goroutine that
// tells so.
func TestCall_X3_A3_WorkEndsThoughAListenerLeavesAtALateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := heardBy(t, func(_ context.Context, e policy.Event) {
			if _, ok := e.(pipeline.LateFailure); ok {
				runtime.Goexit()
			}
		})
		ctx := &errCtx{Context: context.Background()}
		p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Second).Build())
		var g *pipeline.Future[int]
		ready := make(chan bool)
		cancel := func() { g.Cancel() }
		g = p.ExecuteAsync(ctx, func(context.Context) (int, error) { <-ready; ctx.f.Store(&cancel); return 0, errBoom })
		close(ready)
		synctest.Wait()
		ctx.f.Store(nil)
		mustEnd(t, reg, g)
	})
}

// The caller's context ends the goroutine that asks it at the deadline.
func TestCall_X3_T5_ExpiresWhateverTheCallersContextDoes(t *testing.T) {
	for name, leave := range map[string]func(){"goexit": runtime.Goexit, "panic": func() { panic("x") }} {
		t.Run(name, func(t *testing.T) {
			reg := heardBy(t, nil)
			ctx := &errCtx{Context: context.Background()}
			p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(30 * time.Millisecond).Build())
			stop := make(chan bool)
			g := p.ExecuteAsync(ctx, func(context.Context) (int, error) { <-stop; return 0, nil })
			ctx.f.Store(&leave)
			<-g.Done() // hangs if the deadline is lost
			close(stop)
			ctx.f.Store(nil)
		})
	}
}
