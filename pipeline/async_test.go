package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

func TestAsync_A1_A2_TheFutureFailsAtTheDeadlineAndTheWorkGoesOn(t *testing.T) {
	w := newWorldOn(t, clock.NewManual(epoch).Passive())
	p := build(w, "x", twoSeconds)
	gate := make(chan struct{})
	entered := make(chan struct{})
	f := p.ExecuteAsync(t.Context(), func(context.Context) (int, error) {
		close(entered)
		<-gate
		return 7, nil
	})
	<-entered
	w.clk.Advance(2*time.Second - 1)
	if _, done, _ := f.Poll(); done {
		t.Fatal("early")
	}
	w.clk.Advance(1)
	_, done, err := f.Poll()
	if !done {
		t.Fatal("K-3: not failed when Advance returned")
	}
	w.is(err, timeout.ErrExceeded)
	if _, done, _ := f.Work().Poll(); done {
		t.Error("the work is said to be done")
	}
	if !f.Work().CancelRequested() {
		t.Error("CancelRequested is false")
	}
	if n := w.pipeline("x").Abandoned.Running; n != 1 {
		t.Errorf("abandoned %d", n)
	}
	w.clk.Advance(time.Second)
	close(gate)
	<-f.Work().Done()
	v, done, err := f.Work().Poll()
	if v != 7 || !done || err != nil {
		t.Errorf("work: %d %v %v", v, done, err)
	}
	if _, err := f.Get(t.Context()); !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("the future changed: %v", err)
	}
	late := heard[pipeline.LateSuccess](w)
	if len(late) != 1 || late[0].Late != time.Second {
		t.Errorf("late %+v", late)
	}
	if e := heard[timeout.Exceeded](w); len(e) != 1 || e[0].WorkDone {
		t.Errorf("exceeded %+v", e)
	}
	if a := w.pipeline("x").Abandoned; a.LateSuccess != 1 || a.Running != 0 {
		t.Errorf("%+v", a)
	}
}

func TestAsync_A6_CancelEndsEverything(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	entered := make(chan context.Context, 1)
	f := p.ExecuteAsync(t.Context(), func(ctx context.Context) (int, error) {
		entered <- ctx
		<-ctx.Done()
		return 0, ctx.Err()
	})
	ctx := <-entered
	if !f.Cancel() || f.Cancel() {
		t.Error("Cancel answered wrong")
	}
	_, err := f.Get(t.Context())
	if !errors.Is(err, context.Canceled) || errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("got %v", err)
	}
	<-ctx.Done()
	<-f.Work().Done()
	if n := w.clk.Pending(); n != 0 {
		t.Errorf("pending %d", n)
	}
	if c := w.calls("x"); c.Cancelled != 1 {
		t.Errorf("%+v", c)
	}
	if e := heard[timeout.Exceeded](w); len(e) != 0 {
		t.Error("a timeout event")
	}
	if e := heard[pipeline.LateFailure](w); len(e) != 1 {
		t.Errorf("late failures %v", e)
	}
}

func TestAsync_A6_TheCallersContextEndsTheFuture(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	gate := make(chan struct{})
	f := p.ExecuteAsync(ctx, func(context.Context) (int, error) { <-gate; return 1, nil })
	cancel(why)
	_, err := f.Get(t.Context())
	w.is(err, context.Canceled, why)
	close(gate)
	<-f.Work().Done()
}

func TestAsync_A7_PanicAndGoexit(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	_, err := p.ExecuteAsync(t.Context(), func(context.Context) (int, error) { panic(errBoom) }).Get(t.Context())
	var pe *pipeline.PanicError
	if !errors.As(err, &pe) || pe.Value != errBoom || len(pe.Stack) == 0 || !errors.Is(err, errBoom) { //nolint:errorlint // the value itself
		t.Errorf("panic: %v", err)
	}
	_, err = p.ExecuteAsync(t.Context(), func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }).Get(t.Context())
	w.is(err, pipeline.ErrGoexit)
	w.isNot(err, timeout.ErrExceeded)
	if c := w.calls("x"); c.Panicked != 2 {
		t.Errorf("%+v", c)
	}
}

func TestAsync_A7_ALatePanicIsAnEvent(t *testing.T) {
	w := newWorldOn(t, clock.NewManual(epoch).Passive())
	p := build(w, "x", twoSeconds)
	gate, entered := make(chan struct{}), make(chan struct{})
	f := p.ExecuteAsync(t.Context(), func(context.Context) (int, error) { close(entered); <-gate; panic("late") })
	<-entered
	w.clk.Advance(2 * time.Second)
	close(gate)
	<-f.Work().Done()
	if e := heard[pipeline.LatePanic](w); len(e) != 1 || e[0].Value != "late" || len(e[0].Stack) == 0 {
		t.Errorf("%+v", e)
	}
}

func TestStage_A4_TheTimeoutCoversTheStage(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	promise := pipeline.NewPromise[int]()
	cancelled := 0
	promise.OnCancel(func() { cancelled++ })
	var order []string
	f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
		w.clk.Advance(5 * time.Second) // is not timed out while it blocks
		return promise.Future()
	})
	promise.OnCancel(func() {
		_, done, _ := f.Poll()
		order = append(order, map[bool]string{true: "future first", false: "stage first"}[done])
	})
	if _, done, _ := f.Poll(); done {
		t.Fatal("timed out while the function blocked")
	}
	w.clk.Advance(2*time.Second - 1)
	if _, done, _ := f.Poll(); done {
		t.Fatal("early")
	}
	w.clk.Advance(1)
	_, done, err := f.Poll()
	if !done {
		t.Fatal("not failed")
	}
	w.is(err, timeout.ErrExceeded)
	if cancelled != 1 || len(order) != 1 || order[0] != "future first" {
		t.Errorf("cancelled %d times, %v", cancelled, order)
	}
	if promise.Complete(7, nil) {
		t.Error("Complete after the cancel returned true")
	}
	if promise.Complete(8, nil) {
		t.Error("a second Complete returned true")
	}
	v, done, err := f.Work().Poll()
	if v != 7 || !done || err != nil {
		t.Errorf("work: %d %v %v", v, done, err)
	}
	if e := heard[pipeline.LateSuccess](w); len(e) != 1 {
		t.Errorf("late %v", e)
	}
}

func TestStage_A4_InTime(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	promise := pipeline.NewPromise[int]()
	f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { return promise.Future() })
	w.clk.Advance(time.Second)
	if !promise.Complete(7, nil) {
		t.Error("Complete returned false")
	}
	if v, err := f.Get(t.Context()); v != 7 || err != nil {
		t.Errorf("%d %v", v, err)
	}
	done := pipeline.NewPromise[int]()
	done.Complete(8, nil)
	f = p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { return done.Future() })
	if v, ok, err := f.Poll(); v != 8 || !ok || err != nil {
		t.Errorf("%d %v %v", v, ok, err)
	}
	_, err := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { return nil }).Get(t.Context())
	w.is(err, pipeline.ErrNilStage)
	_, err = p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { panic("x") }).Get(t.Context())
	var pe *pipeline.PanicError
	if !errors.As(err, &pe) {
		t.Errorf("%v", err)
	}
}

func TestStage_A9_AllFuturesFailBeforeTheSharedStageIsCancelledOnce(t *testing.T) {
	w := newWorld(t)
	a := build(w, "a", twoSeconds)
	b := build(w, "b", twoSeconds)
	promise := pipeline.NewPromise[int]()
	stage := func(context.Context) *pipeline.Future[int] { return promise.Future() }
	fa, fb := a.ExecuteFuture(t.Context(), stage), b.ExecuteFuture(t.Context(), stage)
	cancelled, both := 0, false
	promise.OnCancel(func() {
		cancelled++
		_, da, _ := fa.Poll()
		_, db, _ := fb.Poll()
		both = da && db
	})
	w.clk.Advance(2 * time.Second)
	if cancelled != 1 || !both {
		t.Errorf("cancelled %d, both failed before: %v", cancelled, both)
	}
}

func TestField_WH09_CloseEndsFuturesAndRefusesCalls(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(5 * time.Second) })
	gate := make(chan struct{})
	var futures []*pipeline.Future[int]
	var contexts []context.Context
	in := make(chan context.Context, 5)
	for range 5 {
		futures = append(futures, p.ExecuteAsync(t.Context(), func(ctx context.Context) (int, error) { in <- ctx; <-gate; return 1, nil }))
		contexts = append(contexts, <-in)
	}
	if err := w.reg.Close(); err != nil {
		t.Error(err)
	}
	for i, f := range futures {
		_, done, err := f.Poll()
		if !done {
			t.Fatal("a future is pending after Close")
		}
		w.is(err, registry.ErrClosed)
		if !errors.Is(context.Cause(contexts[i]), registry.ErrClosed) {
			t.Errorf("cause %v", context.Cause(contexts[i]))
		}
	}
	_, err := p.Execute(t.Context(), returns(1, nil))
	w.is(err, registry.ErrClosed)
	close(gate)
	for _, f := range futures {
		<-f.Work().Done()
	}
	if c := w.calls("x"); c.Rejected != 6 {
		t.Errorf("%+v", c)
	}
}
