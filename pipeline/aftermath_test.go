package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// Work makes what a call without waits has no need of; who ends the call later
// must find the attempt there all the same.
func TestCancel_A6_X1_ReachesACallWhoseWorkWasAskedForBefore(t *testing.T) {
	for _, l := range []struct {
		name  string
		build layers
	}{
		{"timeout", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Hour) }},
		{"timeout and slots", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(time.Hour).Bulkhead(bulkhead.MaxConcurrent(1))
		}},
		{"nothing", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b }},
	} {
		for _, e := range []struct {
			name  string
			end   func(a *arena, f *pipeline.Future[int])
			cause error
		}{
			{"Cancel", func(a *arena, f *pipeline.Future[int]) {
				if !f.Cancel() {
					a.Error("Cancel returned false")
				}
			}, context.Canceled},
			{"Close", func(a *arena, _ *pipeline.Future[int]) { _ = a.reg.Close() }, errClosed},
		} {
			if l.name == "nothing" && e.name == "Close" {
				continue // such a pipeline has no part in its registry
			}
			t.Run(l.name+"/"+e.name, func(t *testing.T) {
				inForms(t, []form{async, staged}, func(a *arena) {
					p := build(a.world, "x", l.build)
					fn := a.hangs()
					r := a.start(context.Background(), p, fn.run)
					work := r.future.Work().Done()
					e.end(a, r.future)
					if !r.ended() {
						a.Fatal("pending")
					}
					a.is(r.err, e.cause)
					if cause := context.Cause(fn.ctx(1)); !errors.Is(cause, e.cause) {
						a.Errorf("the function's context: %v", cause)
					}
					if n := a.reg.Snapshot().Wheel.Pending; n != 0 {
						a.Errorf("%d deadlines are pending", n)
					}
					if isOpen(work) {
						a.Error("the work is not done")
					}
				})
			})
		}
	}
}

// lagging is a context whose end its Err tells before its Done does, as between
// the two steps of a cancel.
type lagging struct {
	context.Context
	over atomic.Bool
}

func (l *lagging) Err() error {
	if l.over.Load() {
		return context.Canceled
	}
	return nil
}

// An attempt that ended before its backoff is not late when the call's end, and
// a Cancel, come after it.
func TestAsync_A3_A6_AnAttemptBeforeTheBackoffIsNotLate(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		var f atomic.Pointer[pipeline.Future[int]]
		reg, err := registry.New(registry.WithClock(a.clock), registry.WithListener(func(ctx context.Context, e policy.Event) {
			a.hear(ctx, e)
			if _, last := e.(retry.GaveUp); last {
				f.Load().Cancel() // as somebody may, between the decision and the future's end
			}
		}))
		if err != nil {
			a.Fatal(err)
		}
		a.reg = reg
		p := build(a.world, "x", retrying(retry.Constant(s)))
		ctx := &lagging{Context: a.Context()}
		r := a.start(ctx, p, returns(0, errBoom))
		f.Store(r.future)
		ctx.over.Store(true)
		a.advance(s)
		if !r.ended() {
			a.Fatal("pending")
		}
		a.is(r.err, context.Canceled, errBoom)
		if e := heard[pipeline.LateFailure](a.world); len(e) != 0 {
			a.Errorf("late: %+v", e)
		}
		if n := a.pipeline("x").Abandoned; n != (registry.AbandonedCount{}) {
			a.Errorf("%+v", n)
		}
		if _, over, err := r.future.Work().Poll(); !over || err != errBoom { //nolint:errorlint // the function's own
			a.Errorf("work: %v %v", over, err)
		}
	})
}

// Work tells what the function returned, not what the retry made of it.
func TestWork_A2_A6_ACancelWhileRetryIfIsAsked(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		var f atomic.Pointer[pipeline.Future[int]]
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(1)).RetryIf(func(int, error) bool {
				f.Load().Cancel()
				return true
			})
		})
		r := a.start(a.Context(), p, a.plan(step{takes: s, err: errBoom}).run)
		f.Store(r.future)
		a.advance(s)
		if !r.ended() {
			a.Fatal("pending")
		}
		a.is(r.err, context.Canceled)
		if _, over, err := r.future.Work().Poll(); !over || err != errBoom { //nolint:errorlint // the function's own
			a.Errorf("work: %v %v", over, err)
		}
	})
}

// blocked has many stages given up at once whose callbacks all block.
func blocked(t *testing.T, count int, stop func(reg *registry.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reg, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.New[int](reg, "x").Timeout(s).Build()
		if err != nil {
			t.Fatal(err)
		}
		// A stage may be another pipeline's future, with such a stage of its own.
		inner, err := pipeline.New[int](reg, "inner").Timeout(time.Hour).Build()
		if err != nil {
			t.Fatal(err)
		}
		block := make(chan struct{})
		var told atomic.Int32
		futures, callbacks := make([]*pipeline.Future[int], count), 0
		for i := range futures {
			promise := pipeline.NewPromise[int]()
			for range 1 + i%2 {
				callbacks++
				promise.OnCancel(func() { told.Add(1); <-block })
			}
			futures[i] = p.ExecuteFuture(context.Background(), func(context.Context) *pipeline.Future[int] {
				if i%2 == 0 {
					return inner.ExecuteFuture(context.Background(), giving(promise.Future()))
				}
				return promise.Future()
			})
		}
		stop(reg)
		synctest.Wait()
		for i, f := range futures {
			if _, done, _ := f.Poll(); !done {
				t.Errorf("future %d is pending", i)
			}
		}
		if n := int(told.Load()); n != callbacks {
			t.Errorf("%d callbacks of %d have begun", n, callbacks)
		}
		close(block)
		synctest.Wait()
	})
}

// On the system clock nobody waits for somebody else's callback.
func TestStage_A1_X3_CallbacksThatBlockDoNotHoldUpOthers(t *testing.T) {
	t.Run("due together", func(t *testing.T) {
		blocked(t, 20, func(*registry.Registry) { _ = clock.System().Sleep(context.Background(), 2*s) })
	})
	t.Run("Close", func(t *testing.T) {
		blocked(t, 20, func(reg *registry.Registry) { _ = reg.Close() })
	})
}

// A callback that ends the goroutine takes nothing from who comes after it.
func TestPromise_A7_GoexitInOnCancelIsForNobodyElse(t *testing.T) {
	for name, end := range map[string]func(f *pipeline.Future[int], stage *pipeline.Promise[int]){
		"timeout": func(*pipeline.Future[int], *pipeline.Promise[int]) {
			_ = clock.System().Sleep(context.Background(), 2*s)
		},
		"Cancel":              func(f *pipeline.Future[int], _ *pipeline.Promise[int]) { f.Cancel() },
		"Cancel of the stage": func(_ *pipeline.Future[int], stage *pipeline.Promise[int]) { stage.Future().Cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, err := registry.New()
				if err != nil {
					t.Fatal(err)
				}
				p, err := pipeline.New[int](reg, "x").Timeout(s).Build()
				if err != nil {
					t.Fatal(err)
				}
				promise := pipeline.NewPromise[int]()
				var told atomic.Int32
				promise.OnCancel(func() { told.Add(1); runtime.Goexit() })
				promise.OnCancel(func() { told.Add(1) })
				over, view := promise.Future().Done(), promise.Future().View()
				f := p.ExecuteFuture(context.Background(), giving(promise.Future()))
				work := f.Work().Done()
				left := make(chan struct{})
				go func() {
					defer close(left)
					end(f, promise)
				}()
				<-f.Done()
				<-left
				synctest.Wait()
				if isOpen(over) || told.Load() != 2 {
					t.Errorf("the stage's Done is open: %v; %d of 2 callbacks", isOpen(over), told.Load())
				}
				if _, done, err := view.Poll(); !done || !errors.Is(err, context.Canceled) {
					t.Errorf("the view: %v %v", done, err)
				}
				if isOpen(work) {
					t.Error("the work is not done")
				}
				if n := reg.Snapshot().Pipelines[0].Abandoned.Running; n != 0 {
					t.Errorf("%d run", n)
				}
			})
		})
	}
}

// batch has many stages fall due at one instant, and counts those that were
// cancelled while a future of the batch was pending. wait lets them fall due.
func batch(t *testing.T, p *pipeline.Pipeline[int], count int, wait func()) (early int) {
	t.Helper()
	var (
		mu      sync.Mutex
		told    sync.WaitGroup
		futures = make([]*pipeline.Future[int], count)
	)
	told.Add(count)
	mu.Lock()
	for i := range futures {
		promise := pipeline.NewPromise[int]()
		promise.OnCancel(func() {
			defer told.Done()
			mu.Lock()
			defer mu.Unlock()
			for _, f := range futures {
				if _, done, _ := f.Poll(); !done {
					early++
					return
				}
			}
		})
		futures[i] = p.ExecuteFuture(context.Background(), giving(promise.Future()))
	}
	mu.Unlock()
	wait()
	told.Wait()
	for _, f := range futures {
		if _, err := f.Get(context.Background()); !errors.Is(err, timeout.ErrExceeded) {
			t.Error(err)
		}
	}
	return early
}

// unasked are layers that ask no function of the user's about a timeout.
var unasked = map[string]layers{
	"timeout": func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b },
	"breaker": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.CircuitBreaker(circuitbreaker.MinCalls(10_000), circuitbreaker.CountWindow(10_000))
	},
	"retry": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(1), retry.AbortOn(errBoom))
	},
}

// bare is a registry without a listener: that is a function of the user's, too.
func bare(t *testing.T, layers layers, d time.Duration, opts ...registry.Option) *pipeline.Pipeline[int] {
	t.Helper()
	reg, err := registry.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := layers(pipeline.New[int](reg, "x")).Timeout(d).Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Where no function of the user's is asked, a batch fails as a whole before the
// first stage of it is cancelled.
func TestStage_A9_AllThatAreDueTogetherFailBeforeAStageIsCancelled(t *testing.T) {
	for name, l := range unasked {
		t.Run(name+"/manual", func(t *testing.T) {
			clk := clock.NewManual(epoch)
			p := bare(t, l, s, registry.WithClock(clk))
			if n := batch(t, p, 100, func() { clk.Advance(s) }); n != 0 {
				t.Errorf("%d were cancelled before", n)
			}
		})
		t.Run(name+"/bubble", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n := batch(t, bare(t, l, s), 100, func() {}); n != 0 {
					t.Errorf("%d were cancelled before", n)
				}
			})
		})
		// What is begun at two instants may fall due at two, and a busy machine may
		// stop anywhere: of several batches one is one batch. The longer the timeout, the
		// longer is the tick in which all have to begin.
		t.Run(name+"/system", func(t *testing.T) {
			for d := 20 * ms; d < 2*s; d *= 2 {
				p := bare(t, l, d)
				for range 20 {
					n := batch(t, p, 8, func() {})
					if n == 0 {
						return
					}
					t.Logf("%v: %d were cancelled before", d, n)
				}
			}
			t.Error("in every batch")
		})
	}
}
