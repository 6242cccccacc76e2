package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
)

// pendingCall is a call and the promise that it waits for.
func pendingCall(w *world, id string, layer layers) (*pipeline.Future[int], *pipeline.Promise[int]) {
	promise := pipeline.NewPromise[int]()
	return build(w, id, layer).ExecuteFuture(w.Context(), giving(promise.Future())), promise
}

func TestFuture_ACompleteOneWinsOverADoneContext(t *testing.T) {
	w := newWorld(t)
	f, promise := pendingCall(w, "x", twoSeconds)
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	if _, err := f.Get(ended); !errors.Is(err, context.Canceled) || !errors.Is(err, errBoom) {
		t.Errorf("pending: %v", err)
	}
	if _, done, _ := f.Poll(); done {
		t.Error("the end of a wait ended the work")
	}
	promise.Complete(7, nil)
	for range 100 {
		if v, err := f.Get(ended); v != 7 || err != nil {
			t.Fatalf("complete: %d %v", v, err)
		}
	}
}

func TestFuture_PollAndDone(t *testing.T) {
	w := newWorld(t)
	f, promise := pendingCall(w, "x", twoSeconds)
	done := f.Done()
	if v, ok, err := f.Poll(); v != 0 || ok || err != nil || !isOpen(done) {
		t.Errorf("pending: %d %v %v", v, ok, err)
	}
	if f.Done() != done {
		t.Error("two channels")
	}
	promise.Complete(7, errBoom)
	if v, ok, err := f.Poll(); v != 7 || !ok || !errors.Is(err, errBoom) || isOpen(done) || isOpen(f.Done()) {
		t.Errorf("complete: %d %v %v", v, ok, err)
	}
	if f.Cancel() || promise.Complete(8, nil) {
		t.Error("it was ended twice")
	}
	if v, _, _ := f.Poll(); v != 7 {
		t.Errorf("it changed to %d", v)
	}
}

// Hundreds wait in every way there is; all get the result.
func TestFuture_ManyWaiters(t *testing.T) {
	w := newWorld(t)
	for round := range 20 {
		f, promise := pendingCall(w, "x", twoSeconds)
		bounded, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		got := func(v int, err error) {
			if v != round || err != nil {
				t.Errorf("%d %v", v, err)
			}
		}
		for i := range 300 {
			all.Go(func() {
				switch i % 6 {
				case 0:
					got(f.Get(context.Background()))
				case 1:
					got(f.Get(bounded))
				case 2:
					<-f.Done()
					v, _, err := f.Poll()
					got(v, err)
				case 3:
					all.Add(1)
					f.OnComplete(func(v int, err error) { got(v, err); all.Done() })
				case 4:
					got(f.View().Get(context.Background()))
				case 5:
					for _, ok, _ := f.Poll(); !ok; _, ok, _ = f.Poll() {
						runtime.Gosched()
					}
				}
			})
		}
		promise.Complete(round, nil)
		all.Wait()
		cancel()
	}
}

func TestFuture_OnComplete(t *testing.T) {
	w := newWorld(t)
	f, promise := pendingCall(w, "x", twoSeconds)
	gate := make(chan struct{})
	results := make(chan int, 2)
	blocked := func(v int, _ error) { <-gate; results <- v }
	f.OnComplete(blocked)
	f.OnComplete(func(int, error) { panic(errBoom) })
	promise.Complete(7, nil) // does not wait for them
	f.OnComplete(blocked)    // at once
	close(gate)
	if a, b := <-results, <-results; a != 7 || b != 7 {
		t.Errorf("%d %d", a, b)
	}
	for len(heard[policy.CallbackPanic](w)) == 0 { // contained, and told
		<-tick()
	}
	if e := heard[policy.CallbackPanic](w); len(e) != 1 || e[0].Value != errBoom || e[0].ID() != "x" { //nolint:errorlint // the value itself
		t.Errorf("%+v", e)
	}
}

func TestFuture_View(t *testing.T) {
	w := newWorld(t)
	f, promise := pendingCall(w, "x", twoSeconds)
	promise.OnCancel(func() { t.Error("the work was cancelled") })
	one, other := f.View(), f.View()
	nested := one.View()
	if !one.Cancel() || one.Cancel() {
		t.Error("Cancel of a view answered wrong")
	}
	for _, view := range []*pipeline.Future[int]{one, nested} {
		if _, done, err := view.Poll(); !done || !errors.Is(err, context.Canceled) {
			t.Errorf("%v %v", done, err)
		}
	}
	if _, done, _ := f.Poll(); done {
		t.Error("it reached the origin")
	}
	promise.Complete(7, nil)
	for _, view := range []*pipeline.Future[int]{f, other, f.View(), other.View()} {
		if v, done, err := view.Poll(); v != 7 || !done || err != nil {
			t.Errorf("%d %v %v", v, done, err)
		}
	}
	if _, _, err := one.Poll(); !errors.Is(err, context.Canceled) {
		t.Errorf("the view changed: %v", err)
	}
	if c := w.calls("x"); c.Succeeded != 1 || c.Cancelled != 0 {
		t.Errorf("%+v", c)
	}
}

// One of many ends it, whatever they do.
func TestFuture_OneEnds(t *testing.T) {
	w := newWorld(t)
	for range 500 {
		f, promise := pendingCall(w, "x", twoSeconds)
		var winners atomic.Int32
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if i < 3 && f.Cancel() || i == 3 && promise.Complete(7, nil) {
					winners.Add(1)
				} else if i > 3 {
					f.View().Cancel()
				}
			})
		}
		all.Wait()
		_, done, err := f.Poll()
		// Cancel ends the future before the stage: a Complete that comes in between
		// is true to the producer, and late.
		if n := winners.Load(); !done || n < 1 || n > 2 || n == 2 && err == nil {
			t.Fatalf("%d have ended it, done %v, %v", n, done, err)
		}
	}
}

func TestPromise_OnCancel(t *testing.T) {
	promise := pipeline.NewPromise[int]()
	calls := 0
	promise.OnCancel(func() { calls++ })
	promise.OnCancel(func() { panic(errBoom) })
	promise.OnCancel(func() { calls++ })
	if !promise.Future().Cancel() || calls != 2 {
		t.Errorf("%d calls", calls)
	}
	promise.OnCancel(func() { calls++ })
	if promise.Future().Cancel() || calls != 3 {
		t.Errorf("%d calls", calls)
	}
	if promise.Complete(7, nil) {
		t.Error("Complete returned true")
	}

	complete := pipeline.NewPromise[int]()
	complete.OnCancel(func() { t.Error("a complete promise is not cancelled") })
	if !complete.Complete(7, nil) || complete.Future().Cancel() {
		t.Error("answered wrong")
	}
	complete.OnCancel(func() { t.Error("a complete promise is not cancelled") })
	if one, other := complete.Future(), complete.Future(); one != other {
		t.Error("two futures")
	}
}

// the call that uses the promise reports a panic of OnCancel.
func TestPromise_X3_APanicOfOnCancelIsTold(t *testing.T) {
	w := newWorld(t)
	f, promise := pendingCall(w, "x", twoSeconds)
	promise.OnCancel(func() { panic(errBoom) })
	w.clk.Advance(2 * time.Second)
	if _, done, _ := f.Poll(); !done || len(heard[policy.CallbackPanic](w)) != 1 {
		t.Errorf("%+v", heard[policy.CallbackPanic](w))
	}
}

func TestFuture_MistakesPanicAtOnce(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	f := pipeline.NewPromise[int]()
	var none context.Context
	for name, mistake := range map[string]func(){
		"ExecuteAsync ctx":  func() { p.ExecuteAsync(none, returns(1, nil)) },
		"ExecuteAsync fn":   func() { p.ExecuteAsync(t.Context(), nil) },
		"ExecuteFuture ctx": func() { p.ExecuteFuture(none, giving(f.Future())) },
		"ExecuteFuture fn":  func() { p.ExecuteFuture(t.Context(), nil) },
		"nil pipeline":      func() { (*pipeline.Pipeline[int])(nil).ExecuteAsync(t.Context(), returns(1, nil)) },
		"zero pipeline":     func() { new(pipeline.Pipeline[int]).ExecuteFuture(t.Context(), giving(f.Future())) },
		"WrapAsync":         func() { pipeline.WrapAsync[int](p, nil) },
		"Get":               func() { _, _ = f.Future().Get(none) },
		"OnComplete":        func() { f.Future().OnComplete(nil) },
		"OnCancel":          func() { f.OnCancel(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, ok := recover().(string); !ok || text == "" {
					t.Error("no panic with a text")
				}
			}()
			mistake()
		})
	}
	if c := w.calls("x"); c.Started != 0 {
		t.Errorf("%+v", c)
	}
}

// The zero value never completes, and panics nowhere.
func TestFuture_ZeroValue(t *testing.T) {
	var f pipeline.Future[int]
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Get(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, done, _ := f.Work().Poll(); done || !isOpen(f.Done()) || f.Work().CancelRequested() {
		t.Error("it is complete")
	}
}
