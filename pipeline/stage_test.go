package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

func giving(stage *pipeline.Future[int]) func(context.Context) *pipeline.Future[int] {
	return func(context.Context) *pipeline.Future[int] { return stage }
}

func failed(err error) *pipeline.Future[int] {
	p := pipeline.NewPromise[int]()
	p.Complete(0, err)
	return p.Future()
}

func TestStage_A4_ACompleteStageArmsNothing(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	f := p.ExecuteFuture(t.Context(), giving(failed(errBoom)))
	if _, done, err := f.Poll(); !done || !errors.Is(err, errBoom) {
		t.Errorf("%v %v", done, err)
	}
	if n := w.clk.Pending(); n != 0 {
		t.Errorf("%d events are pending", n)
	}
}

// Attempts that fail at once are iterated: the stack does not grow with them.
func TestStage_A4_TenThousandAttemptsAreNotRecursed(t *testing.T) {
	w := newWorld(t)
	const attempts = 10_000
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(attempts), retry.Constant(0)).Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(1))
	})
	n, deepest := 0, 0
	frames := make([]uintptr, 1000)
	stage := failed(errBoom)
	f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
		n++
		deepest = max(deepest, runtime.Callers(0, frames))
		return stage
	})
	_, err := f.Get(t.Context())
	w.is(err, errBoom, retry.ErrExhausted)
	if n != attempts || deepest > 50 {
		t.Errorf("%d attempts, %d frames deep", n, deepest)
	}
}

// Stages that fail while the next attempt is being followed must not nest
// either, whoever completes them.
func TestStage_A4_AttemptsThatFailSoonAreNotRecursed(t *testing.T) {
	w := newWorld(t)
	const attempts = 10_000
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(attempts), retry.Constant(0))
	})
	var mu sync.Mutex
	n, deepest := 0, 0
	f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
		var frames [1000]uintptr
		mu.Lock()
		n++
		deepest = max(deepest, runtime.Callers(0, frames[:]))
		mu.Unlock()
		promise := pipeline.NewPromise[int]()
		go promise.Complete(0, errBoom)
		return promise.Future()
	})
	_, err := f.Get(t.Context())
	w.is(err, errBoom)
	if n != attempts || deepest > 200 {
		t.Errorf("%d attempts, %d frames deep", n, deepest)
	}
}

// A stage may be another pipeline's future: of either form.
func TestStage_A4_AnotherPipelinesFuture(t *testing.T) {
	w := newPassiveWorld(t)
	inner := build(w, "inner", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(5 * time.Second) })
	outer := build(w, "outer", twoSeconds)

	s := newStepped(7, nil)
	var stage *pipeline.Future[int]
	f := outer.ExecuteFuture(t.Context(), func(ctx context.Context) *pipeline.Future[int] {
		stage = inner.ExecuteAsync(ctx, s.run)
		return stage
	})
	w.await("the inner function", s.entered)
	close(s.gate)
	w.await("the result", f.Done())
	if v, err := f.Get(t.Context()); v != 7 || err != nil {
		t.Errorf("%d %v", v, err)
	}

	// The outer deadline: the inner call is cancelled, which is no timeout of its.
	s = newStepped(7, nil)
	f = outer.ExecuteFuture(t.Context(), func(ctx context.Context) *pipeline.Future[int] {
		stage = inner.ExecuteAsync(ctx, s.run)
		return stage
	})
	w.await("the inner function", s.entered)
	w.clk.Advance(2 * time.Second)
	_, _, err := f.Poll()
	var te *timeout.Error
	if !errors.As(err, &te) || te.Instance != "outer" {
		t.Errorf("outer: %v", err)
	}
	// It hears of its end twice, by its context and by Cancel: both are the same.
	w.await("the stage's end", stage.Done())
	if _, err := stage.Get(t.Context()); !errors.Is(err, context.Canceled) && !(errors.As(err, &te) && te.Instance == "outer") {
		t.Errorf("inner: %v", err)
	}
	if n := w.calls("inner"); n.TimedOut != 0 || n.Cancelled != 1 {
		t.Errorf("inner: %+v", n)
	}
	close(s.gate)
	w.await("the inner work's end", stage.Work().Done())
	if v, _, err := stage.Work().Poll(); v != 7 || err != nil {
		t.Errorf("inner work: %d %v", v, err)
	}

	// The inner deadline: that is the stage's own error.
	s = newStepped(7, nil)
	late := build(w, "late", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(9 * time.Second) })
	f = late.ExecuteFuture(t.Context(), func(ctx context.Context) *pipeline.Future[int] { return inner.ExecuteAsync(ctx, s.run) })
	w.await("the inner function", s.entered)
	w.clk.Advance(5 * time.Second)
	_, done, err := f.Poll()
	if !done || !errors.As(err, &te) || te.Instance != "inner" {
		t.Errorf("nested: %v %v", done, err)
	}
	if n := w.calls("late"); n.TimedOut != 0 || n.Failed != 1 {
		t.Errorf("late: %+v", n)
	}
	close(s.gate)
	for w.pipeline("inner").Abandoned.Running != 0 {
		<-tick()
	}
}

// Two waits on the same work are two waits: one with an own view gives up alone.
func TestStage_A9_Views(t *testing.T) {
	w := newWorld(t)
	short, long := build(w, "short", twoSeconds), build(w, "long", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(5 * time.Second) })
	promise := pipeline.NewPromise[int]()
	promise.OnCancel(func() { t.Error("the work was cancelled") })
	view := func(context.Context) *pipeline.Future[int] { return promise.Future().View() }
	fs, fl := short.ExecuteFuture(t.Context(), view), long.ExecuteFuture(t.Context(), view)
	w.clk.Advance(2 * time.Second)
	_, _, err := fs.Poll()
	w.is(err, timeout.ErrExceeded)
	if _, done, _ := fl.Poll(); done {
		t.Fatal("the other wait has ended, too")
	}
	if !promise.Complete(7, nil) {
		t.Error("Complete returned false")
	}
	if v, done, err := fl.Poll(); v != 7 || !done || err != nil {
		t.Errorf("%d %v %v", v, done, err)
	}
}

// One call's timeout cancels the stage of all; that is nobody's late failure.
// Completing it later is each call's late success (A-3: each attempt for itself).
func TestStage_A9_A3_ASharedStageIsEachCallsLateSuccess(t *testing.T) {
	w := newWorld(t)
	promise := pipeline.NewPromise[int]()
	var futures []*pipeline.Future[int]
	for _, id := range []string{"a", "b", "c"} {
		futures = append(futures, build(w, id, twoSeconds).ExecuteFuture(t.Context(), giving(promise.Future())))
	}
	w.clk.Advance(2 * time.Second)
	for _, f := range futures {
		_, done, err := f.Poll()
		if !done {
			t.Fatal("pending")
		}
		w.is(err, timeout.ErrExceeded)
		if isOpen(f.Work().Done()) {
			t.Error("the work is not done")
		}
	}
	if e := heard[pipeline.LateFailure](w); len(e) != 0 {
		t.Errorf("late failures %+v", e)
	}
	if promise.Complete(7, nil) {
		t.Error("Complete returned true")
	}
	if promise.Complete(8, nil) {
		t.Error("Complete returned true the second time")
	}
	if e := heard[pipeline.LateSuccess](w); len(e) != 3 {
		t.Errorf("late successes %+v", e)
	}
	for i, f := range futures {
		if v, done, err := f.Work().Poll(); v != 7 || !done || err != nil {
			t.Errorf("call %d: the work: %d %v %v", i, v, done, err)
		}
	}
	for _, p := range w.reg.Snapshot().Pipelines {
		if p.Abandoned.LateSuccess != 1 || p.Abandoned.Running != 0 {
			t.Errorf("%s: %+v", p.ID, p.Abandoned)
		}
	}
}

// The call waits for its slot: the deadline begins there, runs while the
// function does, and the stage comes too late.
func TestStage_A4_AStageThatComesAfterItsDeadline(t *testing.T) {
	for name, end := range map[string]func(w *world, f *pipeline.Future[int]){
		"timeout": func(w *world, _ *pipeline.Future[int]) { w.clk.Advance(2 * time.Second) },
		"cancel":  func(_ *world, f *pipeline.Future[int]) { f.Cancel() },
		"close":   func(w *world, _ *pipeline.Future[int]) { _ = w.reg.Close() },
	} {
		for _, retries := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				w := newPassiveWorld(t)
				p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					if retries > 1 {
						b.Retry(retry.MaxAttempts(retries), retry.Constant(time.Hour))
					}
					return b.Timeout(2*time.Second).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)).
						OnDiscard(func(int) { t.Error("the value is the producer's") })
				})
				slot, _ := w.reg.Bulkhead("x")
				slot.TryAcquire()
				promise := pipeline.NewPromise[int]()
				cancelled := 0
				promise.OnCancel(func() { cancelled++ })
				entered, gate := make(chan struct{}), make(chan struct{})
				f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
					close(entered)
					<-gate
					return promise.Future()
				})
				slot.Release()
				w.await("the function", entered)
				end(w, f)
				if retries > 1 {
					f.Cancel()
				}
				if _, done, _ := f.Poll(); !done {
					t.Fatal("pending")
				}
				done := f.Work().Done()
				if !isOpen(done) || w.pipeline("x").Abandoned.Running != 1 || slot.Snapshot().InUse != 1 {
					t.Error("the function runs, and does not count as running")
				}
				close(gate)
				w.await("the work's end", done)
				if cancelled != 1 || w.pipeline("x").Abandoned.Running != 0 || slot.Snapshot().InUse != 0 {
					t.Errorf("cancelled %d times, %+v", cancelled, w.pipeline("x").Abandoned)
				}
				w.clk.Advance(3 * time.Second)
				if promise.Complete(7, nil) {
					t.Error("Complete returned true")
				}
				if v, done, err := f.Work().Poll(); v != 7 || !done || err != nil {
					t.Errorf("work: %d %v %v", v, done, err)
				}
				if e := heard[pipeline.LateSuccess](w); len(e) != 1 || e[0].Late < 3*time.Second {
					t.Errorf("late %+v", e)
				}
				if err := w.reg.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestStage_A4_R8_MaxDurationOnAStage(t *testing.T) {
	w := newWorld(t)
	for id, layers := range map[string]func(*pipeline.Builder[int]) *pipeline.Builder[int]{
		"alone":   func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b },
		"timeout": func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Hour) },
	} {
		begun := w.at()
		p := build(w, id, func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return layers(b.Retry(retry.MaxDuration(3*time.Second), retry.Constant(time.Second)))
		})
		var cancelled []time.Duration
		n := 0
		f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
			if n++; n == 1 {
				return failed(errBoom)
			}
			promise := pipeline.NewPromise[int]()
			promise.OnCancel(func() { cancelled = append(cancelled, w.at()-begun) })
			return promise.Future()
		})
		w.clk.Advance(3*time.Second - 1)
		if _, done, _ := f.Poll(); done || n != 2 {
			t.Fatalf("%s: %d attempts, done %v", id, n, done)
		}
		w.clk.Advance(1)
		_, done, err := f.Poll()
		if !done || !slices.Equal(cancelled, []time.Duration{3 * time.Second}) {
			t.Errorf("%s: done %v, cancelled %v", id, done, cancelled)
		}
		w.is(err, retry.ErrOutOfTime, context.DeadlineExceeded, errBoom)
		w.isNot(err, timeout.ErrExceeded)
		if c := w.calls(id); c.TimedOut != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// Complete and the deadline at once: the value has one owner.
func TestStage_T14_TO11_CompleteAgainstTheEnd(t *testing.T) {
	w := newPassiveWorld(t)
	var mu sync.Mutex
	owned := map[int]int{}
	own := func(v int) { mu.Lock(); owned[v]++; mu.Unlock() }
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Second).OnDiscard(own) })
	const rounds = 3000
	for i := 1; i <= rounds; i++ {
		promise := pipeline.NewPromise[int]()
		f := p.ExecuteFuture(t.Context(), giving(promise.Future()))
		var both sync.WaitGroup
		both.Go(func() {
			if !promise.Complete(i, nil) {
				own(i)
			}
		})
		both.Go(func() {
			if i%2 == 0 {
				w.clk.Advance(time.Second)
			} else {
				f.Cancel()
			}
		})
		if v, err := f.Get(t.Context()); err == nil {
			own(v)
		}
		both.Wait()
		w.await("the work's end", f.Work().Done())
	}
	w.clk.Advance(time.Second)
	for v, n := range owned {
		if n != 1 {
			t.Errorf("value %d has %d owners", v, n)
		}
	}
	if len(owned) != rounds {
		t.Errorf("%d of %d values have an owner", len(owned), rounds)
	}
	n, c := w.pipeline("x").Abandoned, w.calls("x")
	if late := c.Started - c.Succeeded; n.LateSuccess != late || n.LateFailure != 0 {
		t.Errorf("%d ended before their work, late: %+v", late, n)
	}
}

// The slot comes while the call is on its way to waiting for it: the deadline is
// one timer all the same.
func TestStage_A4_AGrantOnTheWayToTheQueue(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(time.Hour).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
	})
	slot, _ := w.reg.Bulkhead("x")
	for range 2000 {
		slot.TryAcquire()
		promise := pipeline.NewPromise[int]()
		var both sync.WaitGroup
		both.Go(slot.Release)
		f := p.ExecuteFuture(t.Context(), giving(promise.Future()))
		both.Wait()
		promise.Complete(7, nil)
		if v, err := f.Get(t.Context()); v != 7 || err != nil {
			t.Fatalf("%d %v", v, err)
		}
	}
}
