package pipeline_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func TestField_WH09_X1_CloseFromTenGoroutines(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(5 * time.Second) })
	cancelled := 0
	promise := pipeline.NewPromise[int]()
	promise.OnCancel(func() { cancelled++ })
	s := newStepped(7, nil)
	futures := []*pipeline.Future[int]{
		p.ExecuteAsync(t.Context(), s.run),
		p.ExecuteFuture(t.Context(), giving(promise.Future())),
	}
	w.await("the function", s.entered)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := w.reg.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, f := range futures {
		_, done, err := f.Poll()
		if !done {
			t.Fatal("pending after Close")
		}
		w.is(err, registry.ErrClosed)
	}
	if cancelled != 1 {
		t.Errorf("the stage was cancelled %d times", cancelled)
	}
	for name, call := range map[string]func() *pipeline.Future[int]{
		"ExecuteAsync":  func() *pipeline.Future[int] { return p.ExecuteAsync(t.Context(), returns(1, nil)) },
		"ExecuteFuture": func() *pipeline.Future[int] { return p.ExecuteFuture(t.Context(), giving(failed(nil))) },
	} {
		f := call()
		_, done, err := f.Poll()
		if !done || isOpen(f.Work().Done()) {
			t.Errorf("%s: pending", name)
		}
		w.is(err, registry.ErrClosed)
	}
	close(s.gate)
	w.await("the work's end", futures[0].Work().Done())
	if c := w.calls("x"); c.Rejected != 4 {
		t.Errorf("%+v", c)
	}
}

// Close from within each function that the user can give to an async call.
func TestField_WH09_X1_CloseInACallback(t *testing.T) {
	var reg *registry.Registry
	closes := func() { _ = reg.Close() }
	boom := func(context.Context) (int, error) { return 0, errBoom }
	for name, c := range map[string]struct {
		layers layers
		fn     func(context.Context) (int, error)
	}{
		"the function": {twoSeconds, func(context.Context) (int, error) { closes(); return 7, nil }},
		"RetryIf": {func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.Constant(time.Second)).RetryIf(func(int, error) bool { closes(); return true })
		}, boom},
		"DelayFunc": {func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.DelayFunc(func(int, error) (time.Duration, bool) { closes(); return time.Second, true }))
		}, boom},
		"FailIf": {func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.CircuitBreaker().FailIf(func(int, error) bool { closes(); return true })
		}, boom},
		"OnDiscard": {func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.Constant(time.Second)).RetryIf(func(int, error) bool { return true }).OnDiscard(func(int) { closes() })
		}, returns(7, nil)},
		"the fallback": {func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Fallback(func(context.Context, error) (int, error) { closes(); return 8, nil })
		}, boom},
		"a listener": {func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.Constant(time.Second))
		}, boom},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, clk: clock.NewManual(epoch).Passive()}
			r, err := registry.New(registry.WithClock(w.clk), registry.WithListener(func(_ context.Context, e policy.Event) {
				if _, ok := e.(retry.Retrying); ok && name == "a listener" {
					closes()
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			w.reg, reg = r, r
			f := build(w, "x", c.layers).ExecuteAsync(t.Context(), c.fn)
			w.await("the end", f.Done())
			_, err = f.Get(t.Context())
			if name == "FailIf" { // the function had returned, and there was no next attempt to refuse
				w.is(err, errBoom)
			} else {
				w.is(err, registry.ErrClosed)
			}
			w.await("the work's end", f.Work().Done())
			w.settled()
		})
	}
}

// Calls begin while the registry closes: each is refused or ended, and none is
// left behind. Without a deadline it would be for ever.
func TestClose_X1_WhileCallsBegin(t *testing.T) {
	for range 500 {
		w := newPassiveWorld(t)
		p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Bulkhead(bulkhead.MaxConcurrent(9)) })
		var both sync.WaitGroup
		both.Go(func() { _ = w.reg.Close() })
		for range 3 {
			f := p.ExecuteFuture(t.Context(), giving(pipeline.NewPromise[int]().Future()))
			both.Go(func() {
				w.await("the end", f.Done())
				_, err := f.Get(t.Context())
				w.is(err, registry.ErrClosed)
			})
		}
		both.Wait()
	}
}

func TestDrain_X1_WaitsForAbandonedWork(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(2), retry.Constant(time.Second)).Timeout(2 * time.Second)
	})
	first, second := newStepped(1, nil), newStepped(2, nil)
	f := p.ExecuteAsync(t.Context(), inTurn(first, second))
	w.await("the first attempt", first.entered)

	var drained atomic.Bool
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := w.reg.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		drained.Store(true)
	}()
	for f := p.ExecuteAsync(t.Context(), returns(1, nil)); ; f = p.ExecuteAsync(t.Context(), returns(1, nil)) {
		if _, err := f.Get(t.Context()); errors.Is(err, registry.ErrClosed) {
			break // the drain has begun
		}
	}
	w.clk.Advance(3 * time.Second) // a retry that has begun goes on
	w.await("the second attempt", second.entered)
	close(second.gate)
	if v, err := f.Get(t.Context()); v != 2 || err != nil {
		t.Errorf("%d %v", v, err)
	}
	if drained.Load() {
		t.Error("drained while the first attempt runs")
	}
	close(first.gate)
	w.await("the drain's end", over)
	if n := w.pipeline("x").Abandoned; n.Running != 0 || n.LateSuccess != 1 {
		t.Errorf("%+v", n)
	}
}

func TestDrain_X1_GivesUpWithItsContext(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", twoSeconds)
	s := newStepped(1, nil)
	f := p.ExecuteAsync(t.Context(), s.run)
	w.await("the function", s.entered)
	w.clk.Advance(2 * time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.reg.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drained with abandoned work: %v", err)
	}
	done := f.Work().Done()
	close(s.gate)
	w.await("the work's end", done)
	if err := w.reg.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a function's context says after Close.
func TestClose_X1_TheCauseIsErrClosed(t *testing.T) {
	for id, layer := range map[string]layers{
		"timeout": twoSeconds,
		"none":    func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Bulkhead(bulkhead.MaxConcurrent(1)) },
		"retry": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.Constant(0), retry.MaxDuration(time.Hour))
		},
	} {
		w := newPassiveWorld(t)
		p := build(w, id, layer)
		seen := make(chan context.Context, 1)
		f := p.ExecuteAsync(t.Context(), func(ctx context.Context) (int, error) {
			seen <- ctx
			<-ctx.Done()
			return 0, ctx.Err()
		})
		ctx := <-seen
		_ = w.reg.Close()
		derived, cancel := context.WithCancel(ctx)
		if ctx.Err() == nil || derived.Err() == nil {
			t.Errorf("%s: the context has not ended", id)
		}
		w.is(context.Cause(ctx), registry.ErrClosed)
		w.is(context.Cause(derived), registry.ErrClosed)
		cancel()
		w.await("the work's end", f.Work().Done())
	}
}
