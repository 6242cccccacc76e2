package conform_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// hook is a function of the user's that a policy calls.
type hook struct {
	name string
	of   layers

	// add builds the layer with a hook that does f and then answers as it should.
	add func(b *pipeline.Builder[int], f func())

	// panicked is the error that the caller gets if it panics; calm, if it does not.
	panicked, calm error

	late bool // it is called for a value that comes after its timeout
}

const listener = "listener"

var hooks = []hook{
	{"timeout.Func", timeoutLayer, func(b *pipeline.Builder[int], f func()) {
		b.Timeout(limit, timeout.Func(func(context.Context) time.Duration { f(); return limit }))
	}, errBoom, errBoom, false},
	{"OnDiscard", timeoutLayer, func(b *pipeline.Builder[int], f func()) {
		b.Timeout(limit).OnDiscard(func(int) { f() })
	}, timeout.ErrExceeded, timeout.ErrExceeded, true},
	{"retry.If", retryLayer, func(b *pipeline.Builder[int], f func()) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(0), retry.If(func(error) bool { f(); return true }))
	}, errBoom, retry.ErrExhausted, false},
	{"retry.AbortIf", retryLayer, func(b *pipeline.Builder[int], f func()) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(0), retry.AbortIf(func(error) bool { f(); return false }))
	}, retry.ErrExhausted, retry.ErrExhausted, false},
	{"retry.DelayFunc", retryLayer, func(b *pipeline.Builder[int], f func()) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(0), retry.DelayFunc(func(int, error) (time.Duration, bool) { f(); return 0, true }))
	}, retry.ErrExhausted, retry.ErrExhausted, false},
	{"retry.Rand", retryLayer, func(b *pipeline.Builder[int], f func()) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(backoff), retry.FullJitter(), retry.Rand(func() float64 { f(); return 0 }))
	}, retry.ErrExhausted, retry.ErrExhausted, false},
	{"RetryIf", retryLayer, func(b *pipeline.Builder[int], f func()) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(0)).RetryIf(func(_ int, err error) bool { f(); return err != nil })
	}, errBoom, retry.ErrExhausted, false},
	{"circuitbreaker.FailIf", breakerLayer, func(b *pipeline.Builder[int], f func()) {
		b.CircuitBreaker(circuitbreaker.FailIf(func(error) bool { f(); return false }))
	}, errBoom, errBoom, false},
	{"FailIf", breakerLayer, func(b *pipeline.Builder[int], f func()) {
		b.CircuitBreaker().FailIf(func(_ int, err error) bool { f(); return err != nil })
	}, errBoom, errBoom, false},
	{"fallback.If", fallbackLayer, func(b *pipeline.Builder[int], f func()) {
		b.Fallback(func(context.Context, error) (int, error) { return 0, errFallback }, fallback.If(func(error) bool { f(); return true }))
	}, errBoom, errFallback, false},

	{listener, timeoutLayer, func(b *pipeline.Builder[int], _ func()) { b.Timeout(limit) }, timeout.ErrExceeded, timeout.ErrExceeded, true},
	{listener, retryLayer, func(b *pipeline.Builder[int], _ func()) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(0))
	}, retry.ErrExhausted, retry.ErrExhausted, false},
	{listener, breakerLayer, func(b *pipeline.Builder[int], _ func()) {
		b.CircuitBreaker(circuitbreaker.MinCalls(2), circuitbreaker.CountWindow(2))
	}, errBoom, errBoom, false},
	{listener, fallbackLayer, func(b *pipeline.Builder[int], _ func()) {
		b.Fallback(func(context.Context, error) (int, error) { return 0, errFallback })
	}, errFallback, errFallback, false},
	{listener, limiterLayer, func(b *pipeline.Builder[int], _ func()) { b.RateLimit(ratelimit.Per(1, permitCost)) }, ratelimit.ErrLimited, ratelimit.ErrLimited, false},
	{listener, bulkheadLayer, func(*pipeline.Builder[int], func()) {}, bulkhead.ErrFull, bulkhead.ErrFull, false},
}

// TO-16: a hook panics, or calls back into the pipeline whose call it belongs to
// and takes a snapshot. The caller gets its real result, a panic is told once, no
// slot is lost, nothing blocks, and the next call is as good as any.
func TestField_TO16_Hooks(t *testing.T) {
	for _, h := range hooks {
		for _, form := range forms {
			for _, what := range []string{"panics", "calls back"} {
				t.Run(h.name+" of "+h.of.String()+"/"+string(form)+"/"+what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := &hooked{T: t, hook: h, form: form, panics: what == "panics"}
						w.run()
					})
				})
			}
		}
	}
}

// hooked is a pipeline with one hook under test, in a stack with a bulkhead of
// one slot.
type hooked struct {
	*testing.T
	hook
	form   form
	panics bool

	clk *clock.Manual
	reg *registry.Registry
	p   *pipeline.Pipeline[int]

	mu     sync.Mutex
	armed  bool
	called int // while it was armed
	told   []policy.CallbackPanic
}

// act is what the hook under test does.
func (w *hooked) act() {
	w.mu.Lock()
	act := w.armed
	if act {
		w.called++
		w.armed = w.panics // a hook that calls back is called by that call, too
	}
	w.mu.Unlock()
	switch {
	case !act:
	case w.panics:
		panic(errBoom)
	default:
		if _, err := w.p.Execute(context.Background(), func(context.Context) (int, error) { return 2, nil }); err != nil && w.name != listener {
			w.Errorf("calling back: %v", err) // under a listener the policy may refuse
		}
		if n := len(w.reg.Snapshot().Pipelines); n != 1 {
			w.Errorf("a snapshot with %d pipelines", n)
		}
	}
}

func (w *hooked) hear(_ context.Context, e policy.Event) {
	if e, ok := e.(policy.CallbackPanic); ok {
		w.mu.Lock()
		w.told = append(w.told, e)
		w.mu.Unlock()
		return
	}
	if w.name == listener {
		w.act()
	}
}

func (w *hooked) run() {
	w.clk = clock.NewManual(epoch).Passive()
	var err error
	if w.reg, err = registry.New(registry.WithClock(w.clk), registry.WithListener(w.hear)); err != nil {
		w.Fatal(err)
	}
	b := pipeline.New[int](w.reg, "x").Bulkhead(bulkhead.MaxConcurrent(1))
	w.add(b, w.act)
	if w.p, err = b.Build(); err != nil {
		w.Fatal(err)
	}
	slot, _ := w.reg.Bulkhead("x")

	switch { // what makes the policy tell something
	case w.of == limiterLayer:
		w.get(&work{clk: w.clk})
	case w.of == breakerLayer:
		if w.name == listener {
			w.get(&work{clk: w.clk, err: errBoom})
		}
	case w.of == bulkheadLayer:
		slot.TryAcquire()
	}
	w.armed = true
	wrk := &work{clk: w.clk, err: errBoom}
	if w.late {
		wrk = &work{clk: w.clk, takes: 2 * limit, stubborn: true}
	}
	want := w.calm
	if w.panics {
		want = w.panicked
	}
	if got := w.get(wrk); !errors.Is(got.err, want) {
		w.Errorf("got %+v, want %v", got, want)
	}
	w.mu.Lock()
	called, told := w.called, len(w.told)
	w.armed = false
	w.mu.Unlock()
	if called == 0 && !(w.name == "OnDiscard" && w.form == staged) { // a stage's value stays the producer's
		w.Error("the hook was not called")
	}
	if w.panics && told != called || !w.panics && told != 0 {
		w.Errorf("it was called %d times, and %d panics were told", called, told)
	}
	w.after(slot)
}

// get makes a call, and lets time pass until it is answered and all work has
// ended.
func (w *hooked) get(wrk *work) answer {
	c := make(chan answer, 1)
	go func() {
		f := begin(w.p, w.form, wrk.run, wrk.start)
		c <- f.get()
	}()
	for {
		synctest.Wait()
		if next, ok := w.clk.Next(); ok {
			w.clk.Set(next)
			continue
		}
		select {
		case a := <-c:
			return a
		default:
			w.Fatal("it hangs")
		}
	}
}

// after checks that nothing was lost, and that the next call is healthy.
func (w *hooked) after(slot *bulkhead.Policy) {
	if w.of == bulkheadLayer {
		slot.Release()
	}
	if w.of == limiterLayer {
		w.clk.Advance(permitCost)
	}
	if b, ok := w.reg.CircuitBreaker("x"); ok {
		b.Reset()
	}
	if n := w.clk.Pending(); n != 0 {
		w.Errorf("%d pending", n)
	}
	if got := w.get(&work{clk: w.clk}); got.v != 1 || got.err != nil {
		w.Errorf("the next call: %+v", got)
	}
	for _, what := range imbalance(w.reg) { // at once: nothing moves in the bubble any more
		w.Error(what)
	}
}
