package conform_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/registry"
)

// mode is the clock of a cell.
type mode string

const (
	driving mode = "manual"  // sync calls move the manual clock by themselves
	passive mode = "passive" // the test moves the manual clock
	system  mode = "system"  // the system's clock, in a bubble
)

// cell is one case of the matrix.
type cell struct {
	set           layers
	form          form
	mode          mode
	outcome       *outcome
	fallbackFails bool
}

func (c cell) String() string {
	s := string(c.mode) + "/" + string(c.form) + "/" + c.outcome.name + "/" + c.set.String()
	if c.fallbackFails {
		s += ", which fails"
	}
	return s
}

// result is what a caller got.
type result struct {
	v        int
	err      error
	panicked any
	exited   bool                      // its goroutine ended by Goexit
	now      registry.PipelineSnapshot // when the caller had its answer
}

// call makes the call and waits for its end.
func (w *world) call() (r result) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan struct{})
	if w.cell.outcome.before != nil {
		w.cell.outcome.before(w, cancel)
	}
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if r.panicked = recover(); r.panicked == nil {
				r.exited = !returned
			}
		}()
		switch w.cell.form {
		case direct:
			r.v, r.err = w.p.Execute(ctx, w.work.run)
		case async:
			w.future.Store(w.p.ExecuteAsync(ctx, w.work.run))
		case staged:
			w.future.Store(w.p.ExecuteFuture(ctx, w.work.start))
		}
		if f := w.future.Load(); f != nil {
			r.v, r.err = f.Get(context.Background())
		}
		r.now = w.pipeline()
		returned = true
	}()
	if !w.until(done) {
		return r
	}
	if r.exited || r.panicked != nil {
		synctest.Wait() // a fallback may still have to run, for a future that nobody has
		r.now = w.pipeline()
	}
	return r
}

// run plays the cell and compares it with what the semantics say.
func (c cell) run(t *testing.T) {
	t.Helper()
	w := newWorld(t, c)
	if w.limiter != nil {
		defer func() { w.checkPermits() }()
	}
	if c.outcome.prepare != nil {
		c.outcome.prepare(w)
	}
	if w.limiter != nil {
		w.admitted = w.limiter.Snapshot().Admitted
	}
	r := w.call()
	want := c.want()
	w.checkResult(&r, &want)
	w.checkCounters(&r.now.Calls, &want)
	if want.stubborn && int(r.now.Abandoned.Running) != want.lateSuccess {
		w.fail("abandoned.running is %d when the caller has its answer, want %d", r.now.Abandoned.Running, want.lateSuccess)
	}
	w.rest()
	w.checkSettled(&r, &want)
}

func (w *world) checkResult(r *result, want *want) {
	w.Helper()
	switch {
	case want.panics:
		if r.panicked != errBoom { //nolint:errorlint // its own value
			w.fail("panicked with %v", r.panicked)
		}
	case r.panicked != nil:
		w.fail("panicked with %v", r.panicked)
	case r.exited != want.exits:
		w.fail("the goroutine ended by Goexit: %v", r.exited)
	}
	if want.panics || want.exits {
		return
	}
	if (r.err == nil) != (len(want.is) == 0) {
		w.fail("got %d, %v", r.v, r.err)
	}
	if r.err == nil && r.v <= 0 != (want.fallback > 0) {
		w.fail("got the value %d", r.v)
	}
	if r.err != nil && r.v != 0 {
		w.fail("got the value %d with an error", r.v)
	}
	for _, target := range want.is {
		if !errors.Is(r.err, target) {
			w.fail("%v does not match %v", r.err, target)
		}
	}
	for _, target := range want.isNot {
		if errors.Is(r.err, target) {
			w.fail("%v matches %v", r.err, target)
		}
	}
	entered := want.entered > 0
	started, notStarted := policy.Started(r.err), policy.NotStarted(r.err)
	var own policy.Error
	switch {
	case !errors.As(r.err, &own):
		if started || notStarted || want.notStarted {
			w.fail("Started %v, NotStarted %v of a foreign error: %v", started, notStarted, r.err)
		}
	case own.ID() != "x":
		w.fail("the error is of %q", own.ID())
	case started != entered || notStarted == entered:
		w.fail("Started %v, NotStarted %v, entered %d times: %v", started, notStarted, want.entered, r.err)
	}
}

// checkCounters is S-5: the one right counter went up, before the caller had its
// answer.
func (w *world) checkCounters(got *registry.CallCounts, want *want) {
	w.Helper()
	if expected := want.calls(w.cell.set); *got != expected {
		w.fail("the counters are %+v, want %+v", *got, expected)
	}
}

// checkSettled looks, after the work has ended too, that all has come back.
func (w *world) checkSettled(r *result, want *want) {
	w.Helper()
	if n := int(w.work.entered.Load()); n != want.entered {
		w.fail("the function was entered %d times, want %d", n, want.entered)
	}
	s := w.reg.Snapshot()
	if w.manual != nil && w.manual.Pending() != 0 || s.Wheel.Pending != 0 {
		w.fail("%d deadlines are left", s.Wheel.Pending)
	}
	p := s.Pipelines[0]
	if want.mayBeInTime && p.Abandoned.LateFailure == 0 {
		want.lateFailure = 0
	}
	w.checkCounters(&p.Calls, want)
	if a := p.Abandoned; a.Running != 0 || int(a.LateSuccess) != want.lateSuccess || int(a.LateFailure) != want.lateFailure || a.LatePanic != 0 {
		w.fail("abandoned: %+v, want %d late successes, %d late failures", a, want.lateSuccess, want.lateFailure)
	}
	if f := p.Fallback; int(f.Applied) != want.fallback || int(f.Failed) != want.fallbackFailed {
		w.fail("fallback: %+v, want %d, %d", f, want.fallback, want.fallbackFailed)
	}
	if len(s.Timeouts) > 0 && int(s.Timeouts[0].TimedOut) != want.timeouts {
		w.fail("%d attempts timed out, want %d", s.Timeouts[0].TimedOut, want.timeouts)
	}
	if w.bulkhead != nil {
		w.checkSlots(want)
	}
	if w.breaker != nil && !s.Closed && want.samples >= 0 {
		w.checkProbes(want)
	}
	w.checkValues(r)
	if n := int(w.work.cancelled.Load()); n != want.stagesCancelled {
		w.fail("%d stages were cancelled, want %d", n, want.stagesCancelled)
	}
	if f := w.future.Load(); f != nil {
		w.checkWork(f)
	}
	if err := w.reg.Drain(context.Background()); err != nil {
		w.fail("drain: %v", err)
	}
}

func (w *world) checkSlots(want *want) {
	w.Helper()
	s := w.bulkhead.Snapshot()
	held := 0
	if want.slotsHeld {
		held = slots
	}
	if s.Available != s.Limit-held || s.InUse != held || s.Waiting != 0 {
		w.fail("bulkhead: %d of %d available, %d in use, %d waiting", s.Available, s.Limit, s.InUse, s.Waiting)
	}
}

// checkProbes asks the half-open breaker for all places that nobody should have
// kept. Those of attempts that were counted are gone.
func (w *world) checkProbes(want *want) {
	w.Helper()
	if s := w.breaker.State(); s != circuitbreaker.HalfOpen {
		w.fail("the breaker is %s", s)
		return
	}
	free := 0
	for range probes + 1 {
		if _, err := w.breaker.Allow(); err == nil {
			free++
		}
	}
	if free != probes-want.samples {
		w.fail("the breaker has %d places left of %d, want %d: %d attempts counted", free, probes, probes-want.samples, want.samples)
	}
}

// checkPermits looks at what the limiter gave.
func (w *world) checkPermits() {
	w.Helper()
	want := w.cell.want()
	s := w.limiter.Snapshot()
	if n := int(s.Admitted - w.admitted); n != want.permits || s.Waiting != 0 {
		w.fail("limiter: %d permits taken, want %d; %d waiting", n, want.permits, s.Waiting)
	}
	if left := permits - want.permits; !w.cell.outcome.noPermits && s.Available != left {
		w.fail("limiter: %d permits in store, want %d", s.Available, left)
	}
}

// checkValues is T-14: delivered + discarded = produced.
func (w *world) checkValues(r *result) {
	w.Helper()
	delivered := 0
	if r.err == nil && r.v > 0 {
		delivered = 1
	}
	discarded := int(w.discarded.Load())
	if w.cell.set == noLayers {
		return // it has no hook
	}
	if produced := int(w.work.produced.Load()); delivered+discarded != produced {
		w.fail("%d values were delivered and %d discarded of %d produced", delivered, discarded, produced)
	}
}

// checkWork is A-2: the work's own fate stays to be seen, and is over.
func (w *world) checkWork(f *pipeline.Future[int]) {
	w.Helper()
	select {
	case <-f.Work().Done():
	default:
		w.fail("the work is said to be running")
	}
	if _, done, _ := f.Work().Poll(); !done {
		w.fail("the work's outcome is not to be had")
	}
	if f.Cancel() {
		w.fail("a complete future could be cancelled")
	}
}
