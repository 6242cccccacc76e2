package pipeline_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// earlyEnds are the ways in which a future ends before its function.
var earlyEnds = map[string]func(w *world, f *pipeline.Future[int], cancel context.CancelFunc){
	"timeout": func(w *world, _ *pipeline.Future[int], _ context.CancelFunc) { w.clk.Advance(2 * time.Second) },
	"cancel":  func(_ *world, f *pipeline.Future[int], _ context.CancelFunc) { f.Cancel() },
	"caller":  func(_ *world, _ *pipeline.Future[int], cancel context.CancelFunc) { cancel() },
	"close":   func(w *world, _ *pipeline.Future[int], _ context.CancelFunc) { _ = w.reg.Close() },
}

func TestAsync_A5_TheSlotIsRunningWork(t *testing.T) {
	for name, end := range earlyEnds {
		for _, free := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newPassiveWorld(t)
				p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					opts := []bulkhead.Option{bulkhead.MaxConcurrent(1)}
					if free {
						opts = append(opts, bulkhead.FreeOnTimeout())
					}
					return b.Timeout(2 * time.Second).Bulkhead(opts...)
				})
				slot, _ := w.reg.Bulkhead("x")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := newStepped(7, nil)
				f := p.ExecuteAsync(ctx, s.run)
				w.await("the function", s.entered)
				end(w, f, cancel)
				w.await("the end", f.Done())
				done := f.Work().Done()
				want := 1
				if free {
					want = 0
				}
				if n := slot.Snapshot().InUse; n != want {
					t.Errorf("in use %d after the end, want %d", n, want)
				}
				if n := w.pipeline("x").Abandoned.Running; n != 1 {
					t.Errorf("abandoned %d", n)
				}
				if free { // it is freed once: this slot is somebody else's now
					slot.TryAcquire()
					defer slot.Release()
				}
				close(s.gate)
				w.await("the work's end", done)
				if n := slot.Snapshot().InUse; n != 1-want {
					t.Errorf("in use %d after the work, want %d", n, 1-want)
				}
			})
		}
	}
}

// FreeOnTimeout frees the slot of every attempt, once.
func TestAsync_A5_FreeOnTimeoutWithRetries(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(3), retry.Constant(0)).Timeout(2*time.Second).
			Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.FreeOnTimeout())
	})
	slot, _ := w.reg.Bulkhead("x")
	steps := []*stepped{newStepped(1, nil), newStepped(2, nil), newStepped(3, nil)}
	f := p.ExecuteAsync(t.Context(), inTurn(steps...))
	for _, s := range steps {
		w.await("an attempt", s.entered)
		if n := slot.Snapshot().InUse; n != 1 {
			t.Errorf("in use %d", n)
		}
		w.clk.Advance(2 * time.Second)
	}
	_, done, err := f.Poll()
	if n := slot.Snapshot().InUse; n != 0 || !done {
		t.Errorf("in use %d, done %v", n, done)
	}
	w.is(err, timeout.ErrExceeded, retry.ErrExhausted)
	if n := w.pipeline("x").Abandoned.Running; n != 3 {
		t.Errorf("abandoned %d", n)
	}
	over := f.Work().Done()
	for _, s := range steps {
		close(s.gate)
	}
	w.await("the work's end", over)
	if v, _, err := f.Work().Poll(); v != 3 || err != nil {
		t.Errorf("work: %d %v", v, err)
	}
	if n := w.pipeline("x").Abandoned; n.LateSuccess != 3 || slot.Snapshot().InUse != 0 {
		t.Errorf("%+v", n)
	}
}

// A late result of one attempt never touches the next: not its future, not its
// slot, not its breaker.
func TestAsync_A8_ALateResultTouchesNothing(t *testing.T) {
	for name, result := range map[string]*stepped{"value": newStepped(1, nil), "error": newStepped(1, errBoom)} {
		t.Run(name, func(t *testing.T) {
			w := newPassiveWorld(t)
			p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				return b.Retry(retry.MaxAttempts(2), retry.Constant(0)).
					CircuitBreaker(circuitbreaker.CountWindow(10), circuitbreaker.MinCalls(10)).Timeout(2 * time.Second).
					Bulkhead(bulkhead.MaxConcurrent(2))
			})
			slot, _ := w.reg.Bulkhead("x")
			breaker, _ := w.reg.CircuitBreaker("x")
			first, second := result, newStepped(2, nil)
			f := p.ExecuteAsync(t.Context(), inTurn(first, second))
			w.await("the first attempt", first.entered)
			w.clk.Advance(2 * time.Second)
			w.await("the second attempt", second.entered)
			close(first.gate)
			for w.pipeline("x").Abandoned.Running != 0 {
				<-tick()
			}
			if _, done, _ := f.Poll(); done || slot.Snapshot().InUse != 1 {
				t.Errorf("done %v, in use %d", done, slot.Snapshot().InUse)
			}
			if _, done, _ := f.Work().Poll(); done {
				t.Error("the work is said to be over")
			}
			close(second.gate)
			if v, err := f.Get(t.Context()); v != 2 || err != nil {
				t.Errorf("%d %v", v, err)
			}
			w.await("the work's end", f.Work().Done()) // of the first attempt the gauge said so a moment earlier
			if v, done, err := f.Work().Poll(); v != 2 || !done || err != nil {
				t.Errorf("work: %d %v %v", v, done, err)
			}
			if r := breaker.Snapshot().FailureRatio; r != 0.5 {
				t.Errorf("failure ratio %v: the late result counted", r)
			}
		})
	}
}

func TestAsync_A10_InTheOrderOfSubmission(t *testing.T) {
	for name, layer := range map[string]layers{
		"bulkhead": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(100))
		},
		"limiter": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(time.Hour)).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(100))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPassiveWorld(t)
			p := build(w, "x", layer)
			var order []int // one at a time: the bulkhead's doing
			var futures []*pipeline.Future[int]
			want := make([]int, 0, 50)
			for i := range 50 {
				want = append(want, i)
				futures = append(futures, p.ExecuteAsync(t.Context(), func(context.Context) (int, error) {
					order = append(order, i)
					return i, nil
				}))
			}
			for i, f := range futures {
				if i > 0 && name == "limiter" {
					w.clk.Advance(time.Second)
				}
				if v, err := f.Get(t.Context()); v != i || err != nil {
					t.Fatalf("%d %v", v, err)
				}
			}
			if !slices.Equal(order, want) {
				t.Errorf("order %v", order)
			}
		})
	}
}

// Waits and backoffs hold no goroutine, and a refusal starts none.
func TestAsync_A10_NoGoroutineWaits(t *testing.T) {
	stage := func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Hour) }
	for name, layer := range map[string]layers{
		"queue": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return stage(b).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1000), bulkhead.MaxWait(time.Hour))
		},
		"limiter": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return stage(b).RateLimit(ratelimit.Per(1, time.Second), ratelimit.MaxWait(time.Hour))
		},
		"backoff": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return stage(b).Retry(retry.Constant(time.Minute)).RateLimit(ratelimit.Per(1, time.Hour))
		},
		"refused": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return stage(b).Bulkhead(bulkhead.MaxConcurrent(1))
		},
		"stage": stage,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newPassiveWorld(t)
				p := build(w, "x", layer)
				if slot, ok := w.reg.Bulkhead("x"); ok {
					slot.TryAcquire()
					defer slot.Release()
				}
				if l, ok := w.reg.RateLimiter("x"); ok {
					l.TryAcquire()
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				before := testkit.Goroutines(t)
				futures := make([]*pipeline.Future[int], 0, 1000)
				for range 1000 {
					if name == "stage" {
						futures = append(futures, p.ExecuteFuture(ctx, giving(pipeline.NewPromise[int]().Future())))
						continue
					}
					futures = append(futures, p.ExecuteAsync(ctx, func(context.Context) (int, error) {
						t.Error("it ran")
						return 0, nil
					}))
				}
				synctest.Wait()
				if n := testkit.Goroutines(t); n > before {
					t.Errorf("%d goroutines more for a thousand calls", n-before)
				}
				for _, f := range futures {
					if f.Cancel() == (name == "refused") {
						t.Fatal("a call has ended, or should have")
					}
				}
			})
		})
	}
}

// Calls and those who end them, all at once: each slot comes back, each call
// counts once, and no more than the limit run.
func TestAsync_A5_A6_ARush(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(2), retry.Constant(time.Millisecond)).Timeout(10*time.Millisecond).
			Bulkhead(bulkhead.MaxConcurrent(3), bulkhead.Queue(5), bulkhead.MaxWait(20*time.Millisecond))
	})
	var mu sync.Mutex
	inside := 0
	fn := func(context.Context) (int, error) {
		mu.Lock()
		if inside++; inside > 3 {
			t.Errorf("%d are inside", inside)
		}
		mu.Unlock()
		<-tick()
		mu.Lock()
		inside--
		mu.Unlock()
		return 0, errBoom
	}
	over := make(chan struct{})
	var all, clk sync.WaitGroup
	clk.Go(func() {
		for isOpen(over) {
			w.clk.Advance(time.Millisecond)
			runtime.Gosched()
		}
	})
	for i := range 8 {
		all.Go(func() {
			for k := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				f := p.ExecuteAsync(ctx, fn)
				switch (i + k) % 4 {
				case 0:
					f.Cancel()
				case 1:
					cancel()
				}
				if _, err := f.Get(context.Background()); err == nil {
					t.Error("a call has succeeded")
				}
				<-f.Work().Done()
				cancel()
			}
		})
	}
	all.Wait()
	close(over)
	clk.Wait()
	// Those who left a queue leave it after their answer, and a slot that was on
	// its way to one of them comes back after that.
	for waiting(w) || w.reg.Snapshot().Bulkheads[0].InUse > 0 {
		<-tick()
	}
	if n := w.pipeline("x").Abandoned; n.Running != 0 {
		t.Errorf("%+v", n)
	}
	if err := w.reg.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
