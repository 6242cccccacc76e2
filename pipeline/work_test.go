package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

func newPassiveWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, clock.NewManual(epoch).Passive())
}

// await fails the test if ch is not closed soon, in real time: what it waits for
// needs no clock.
func (w *world) await(what string, ch <-chan struct{}) {
	w.Helper()
	guard, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	select {
	case <-ch:
	case <-guard.Done():
		w.Fatalf("%s does not come", what)
	}
}

func isOpen(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return false
	default:
		return true
	}
}

// step is an attempt's function that says when it is entered, and returns when it
// is told to.
type stepped struct {
	entered chan struct{}
	gate    chan struct{}
	v       int
	err     error
	panics  any
}

func newStepped(v int, err error) *stepped {
	return &stepped{entered: make(chan struct{}), gate: make(chan struct{}), v: v, err: err}
}

func (s *stepped) run(context.Context) (int, error) {
	close(s.entered)
	<-s.gate
	if s.panics != nil {
		panic(s.panics)
	}
	return s.v, s.err
}

// inTurn calls one step for each attempt.
func inTurn(steps ...*stepped) func(context.Context) (int, error) {
	next := make(chan *stepped, len(steps))
	for _, s := range steps {
		next <- s
	}
	return func(ctx context.Context) (int, error) { return (<-next).run(ctx) }
}

func TestWork_A2_A3_EachWayToEndLate(t *testing.T) {
	for name, c := range map[string]struct {
		step    stepped
		discard bool
		want    int
		counts  registry.AbandonedCount
	}{
		"a value":            {stepped{v: 7}, false, 7, registry.AbandonedCount{LateSuccess: 1}},
		"a value with hook":  {stepped{v: 7}, true, 0, registry.AbandonedCount{LateSuccess: 1}},
		"an error":           {stepped{v: 7, err: errBoom}, false, 7, registry.AbandonedCount{LateFailure: 1}},
		"an error with hook": {stepped{v: 7, err: errBoom}, true, 7, registry.AbandonedCount{LateFailure: 1}},
		"a panic":            {stepped{panics: errBoom}, false, 0, registry.AbandonedCount{LatePanic: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPassiveWorld(t)
			var discarded []int
			p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				if c.discard {
					b.OnDiscard(func(v int) { discarded = append(discarded, v) })
				}
				return b.Timeout(2 * time.Second)
			})
			s := c.step
			s.entered, s.gate = make(chan struct{}), make(chan struct{})
			f := p.ExecuteAsync(t.Context(), s.run)
			w.await("the function", s.entered)
			w.clk.Advance(2 * time.Second)
			done := f.Work().Done()
			if _, over, _ := f.Work().Poll(); over || !isOpen(done) || w.pipeline("x").Abandoned.Running != 1 {
				t.Error("the work is said to be over")
			}
			w.clk.Advance(3 * time.Second)
			close(s.gate)
			w.await("the work's end", done)
			v, over, err := f.Work().Poll()
			if v != c.want || !over || s.panics == nil && !errors.Is(err, s.err) || (err != nil) != (s.err != nil || s.panics != nil) {
				t.Errorf("work: %d %v %v", v, over, err)
			}
			if wantDiscarded := c.discard && s.err == nil; (len(discarded) == 1) != wantDiscarded {
				t.Errorf("discarded %v", discarded)
			}
			if n := w.pipeline("x").Abandoned; n != c.counts {
				t.Errorf("counted %+v, want %+v", n, c.counts)
			}
			_, err = f.Get(t.Context())
			w.is(err, timeout.ErrExceeded)
			late := 0
			for _, e := range heard[pipeline.LateSuccess](w) {
				late += int(e.Late)
			}
			for _, e := range heard[pipeline.LateFailure](w) {
				late += int(e.Late)
			}
			for _, e := range heard[pipeline.LatePanic](w) {
				late += int(e.Late)
			}
			if time.Duration(late) != 3*time.Second {
				t.Errorf("late by %v", time.Duration(late))
			}
		})
	}
}

func TestWork_A2_InTimeItIsTheFutures(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", twoSeconds)
	for _, want := range []error{nil, errBoom} {
		f := p.ExecuteAsync(t.Context(), returns(7, want))
		_, _ = f.Get(t.Context())
		v, done, err := f.Work().Poll() // at once: nothing is between the two
		if v != 7 || !done || !errors.Is(err, want) || f.Work().CancelRequested() || isOpen(f.Work().Done()) {
			t.Errorf("%d %v %v", v, done, err)
		}
	}
}

func TestWork_A2_NeverEnteredSaysWhy(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(2*time.Second).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
	})
	slot, _ := w.reg.Bulkhead("x")
	if !slot.TryAcquire() {
		t.Fatal("no slot")
	}
	defer slot.Release()
	queued := p.ExecuteAsync(t.Context(), returns(7, nil))
	full := p.ExecuteAsync(t.Context(), returns(7, nil))
	_, done, err := full.Work().Poll()
	w.is(err, bulkhead.ErrFull)
	if !done || isOpen(full.Work().Done()) || full.Work().CancelRequested() {
		t.Error("the refused call's work is not done")
	}
	w.clk.Advance(2 * time.Second)
	_, done, err = queued.Work().Poll()
	w.is(err, timeout.ErrExceeded)
	if !done || isOpen(queued.Work().Done()) || !queued.Work().CancelRequested() {
		t.Error("the queued call's work is not done")
	}
}

// The attempts of one call overlap: the first one is given up and runs on.
func TestWork_A3_A8_AttemptsThatOverlap(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(2), retry.Constant(0)).Timeout(2 * time.Second)
	})
	first, second := newStepped(1, nil), newStepped(2, errBoom)
	f := p.ExecuteAsync(t.Context(), inTurn(first, second))
	w.await("the first attempt", first.entered)
	w.clk.Advance(2 * time.Second)
	w.await("the second attempt", second.entered)
	if n := w.pipeline("x").Abandoned.Running; n != 1 {
		t.Errorf("abandoned %d, want the first attempt", n)
	}
	if f.Work().CancelRequested() {
		t.Error("CancelRequested speaks of the first attempt")
	}
	w.clk.Advance(time.Second)
	if !f.Cancel() {
		t.Error("Cancel returned false")
	}
	done := f.Work().Done()
	if n := w.pipeline("x").Abandoned.Running; n != 2 || !f.Work().CancelRequested() {
		t.Errorf("abandoned %d", n)
	}
	w.clk.Advance(2 * time.Second)
	close(second.gate)
	for len(heard[pipeline.LateFailure](w)) == 0 {
		<-tick()
	}
	if _, over, _ := f.Work().Poll(); over || !isOpen(done) {
		t.Error("the work is said to be over while the first attempt runs")
	}
	w.clk.Advance(time.Second)
	close(first.gate)
	w.await("the work's end", done)
	v, over, err := f.Work().Poll()
	if v != 2 || !over || !errors.Is(err, errBoom) {
		t.Errorf("work: %d %v %v, want the last attempt's", v, over, err)
	}
	if e := heard[pipeline.LateFailure](w); len(e) != 1 || e[0].Attempt != 2 || e[0].Late != 2*time.Second {
		t.Errorf("late failures %+v", e)
	}
	// It missed its own deadline, whenever the call ended.
	if e := heard[pipeline.LateSuccess](w); len(e) != 1 || e[0].Attempt != 1 || e[0].Late != 4*time.Second {
		t.Errorf("late successes %+v", e)
	}
}

// The last attempt that was started is the first one: the second waits for a
// permit and never starts.
func TestWork_A2_TheLastAttemptStarted(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(2), retry.Constant(0)).
			RateLimit(ratelimit.Per(1, time.Hour), ratelimit.MaxWait(2*time.Hour)).Timeout(2 * time.Second)
	})
	s := newStepped(7, nil)
	f := p.ExecuteAsync(t.Context(), s.run)
	w.await("the function", s.entered)
	w.clk.Advance(2 * time.Second)
	if l, _ := w.reg.RateLimiter("x"); l.Snapshot().Waiting != 1 {
		t.Fatal("the second attempt does not wait for its permit")
	}
	f.Cancel()
	done := f.Work().Done()
	if !isOpen(done) {
		t.Error("the work is said to be over")
	}
	close(s.gate)
	w.await("the work's end", done)
	if v, over, err := f.Work().Poll(); v != 7 || !over || err != nil {
		t.Errorf("work: %d %v %v", v, over, err)
	}
}

// What an earlier attempt did is not the outcome of the last one.
func TestWork_A2_NotAnEarlierAttempts(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(2), retry.Constant(0)).Timeout(2 * time.Second)
	})
	attempt := 0
	f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
		promise := pipeline.NewPromise[int]()
		if attempt++; attempt == 1 {
			promise.Complete(1, errBoom)
		}
		return promise.Future()
	})
	w.clk.Advance(2 * time.Second)
	v, done, err := f.Work().Poll()
	if v != 0 || !done {
		t.Errorf("work: %d %v", v, done)
	}
	w.is(err, timeout.ErrExceeded)
	w.isNot(err, errBoom)
}

// A value that a retry has superseded went to OnDiscard: nobody else gets it.
func TestWork_T14_ASupersededValueIsNotHere(t *testing.T) {
	w := newWorld(t)
	var discarded []int
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(2), retry.Constant(time.Second)).
			RetryIf(func(int, error) bool { return true }).
			OnDiscard(func(v int) { discarded = append(discarded, v) })
	})
	f := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] {
		promise := pipeline.NewPromise[int]()
		promise.Complete(7, nil)
		return promise.Future()
	})
	if len(discarded) != 1 || discarded[0] != 7 {
		t.Fatalf("discarded %v", discarded)
	}
	f.Cancel()
	if v, done, err := f.Work().Poll(); v != 0 || !done || err != nil {
		t.Errorf("work: %d %v %v", v, done, err)
	}
}

// Views and promises have a work, too.
func TestWork_OfViewsAndPromises(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", twoSeconds)
	s := newStepped(7, nil)
	f := p.ExecuteAsync(t.Context(), s.run)
	view := f.View().View()
	view.Cancel()
	if view.Work().CancelRequested() {
		t.Error("canceling a view reached the work")
	}
	close(s.gate)
	w.await("the work's end", view.Work().Done())
	if v, done, err := view.Work().Poll(); v != 7 || !done || err != nil {
		t.Errorf("work of a view: %d %v %v", v, done, err)
	}

	promise := pipeline.NewPromise[int]()
	work := promise.Future().Work()
	if _, done, _ := work.Poll(); done || work.CancelRequested() || !isOpen(work.Done()) {
		t.Error("a pending promise's work is done")
	}
	promise.Future().Cancel()
	if _, done, err := work.Poll(); !done || !work.CancelRequested() || !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled promise's work: %v %v", done, err)
	}
}

// tick lets other goroutines go on.
func tick() <-chan struct{} {
	ch := make(chan struct{})
	go close(ch)
	return ch
}
