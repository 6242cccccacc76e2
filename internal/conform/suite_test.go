package conform_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// rule is true of every policy that it applies to.
type rule struct {
	name    string
	applies func(k *kind, w way) bool // nil: always
	run     func(s *subject)
}

var rules = []rule{
	{"a panic comes through, and releases all (B-5, A-7)", nil, (*subject).rulePanic},
	{"Goexit ends the call at once, and releases all (TO-10)", nil, (*subject).ruleGoexit},
	{"a context that is done takes nothing, 0 of 1,000 (O-5)", takesContext, (*subject).ruleDone},
	{"cancel while waiting (R-11, L-4, B-3)", mustWait, (*subject).ruleCancelWaiting},
	{"a deadline while waiting (R-9, L-3, B-4)", mustWait, (*subject).ruleDeadlineWaiting},
	{"Close while waiting (X-1)", waitsInRegistry, (*subject).ruleCloseWaiting},
	{"Close while running (X-1)", inRegistry, (*subject).ruleCloseRunning},
	{"one release too many (B-5, C-3)", releases, (*subject).ruleOverRelease},
}

func takesContext(k *kind, w way) bool    { return w != handle || !k.noContext }
func mustWait(k *kind, _ way) bool        { return k.waits }
func inRegistry(_ *kind, w way) bool      { return w != handle }
func waitsInRegistry(k *kind, w way) bool { return k.waits && w != handle }
func releases(k *kind, w way) bool {
	return w == handle && (k.layer == bulkheadLayer || k.layer == breakerLayer)
}

// each runs f for every policy in every way that it can be called.
func each(t *testing.T, f func(t *testing.T, k *kind, w way)) {
	t.Helper()
	for _, k := range kinds {
		for _, w := range []way{handle, execute, future, stage} {
			if w == handle && k.alone == nil {
				continue
			}
			t.Run(k.name+"/"+string(w), func(t *testing.T) { f(t, k, w) })
		}
	}
}

// Each rule, against each policy, in each way that it can be called, on a
// passive manual clock in a bubble.
func TestSuite(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			each(t, func(t *testing.T, k *kind, w way) {
				t.Helper()
				if r.applies != nil && !r.applies(k, w) {
					t.SkipNow()
				}
				synctest.Test(t, func(t *testing.T) {
					r.run(newSubject(t, k, w, clock.NewManual(epoch).Passive()))
				})
			})
		})
	}
}

// answer waits for a call that must end without any time passing.
func (s *subject) answer(end <-chan fate) (f fate) {
	s.Helper()
	synctest.Wait()
	select {
	case f = <-end:
	default:
		s.Error("the call has no answer yet")
		s.manual.Advance(time.Hour)
		f = <-end
	}
	return f
}

func (s *subject) is(err error, targets ...error) {
	s.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			s.Errorf("%v does not match %v", err, target)
		}
	}
}

func (s *subject) rulePanic() {
	f := s.answer(s.launch(context.Background(), func(context.Context) error { panic(errBoom) }))
	var own *pipeline.PanicError
	switch {
	case s.way == handle, s.way == execute:
		if f.panicked != errBoom { //nolint:errorlint // its own value
			s.Errorf("got %+v", f)
		}
	case !errors.As(f.err, &own) || own.Value != errBoom || !strings.Contains(string(own.Stack), "rulePanic"): //nolint:errorlint // likewise
		s.Errorf("got %+v", f)
	}
	s.free()
	s.healthy()
	s.free()
}

func (s *subject) ruleGoexit() {
	f := s.answer(s.launch(context.Background(), func(context.Context) error { runtime.Goexit(); return nil }))
	if s.way == future {
		s.is(f.err, pipeline.ErrGoexit)
	} else if !f.exited { // on the caller's goroutine
		s.Errorf("got %+v", f)
	}
	s.free()
	s.healthy()
	s.free()
}

func (s *subject) ruleDone() {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errGone)
	before := s.snapshot()
	for range 1000 {
		err := s.do(ctx, func(context.Context) error { s.Error("the function ran"); return nil })
		s.is(err, context.Canceled)
	}
	s.free()
	after := s.snapshot()
	for i, l := range after.RateLimiters {
		if l.Admitted != before.RateLimiters[i].Admitted || l.Available != permits {
			s.Errorf("permits were taken: %+v", l)
		}
	}
	for _, b := range after.Bulkheads {
		if b.Admitted != 0 || b.Rejected != 0 {
			s.Errorf("slots were taken: %+v", b)
		}
	}
	for _, r := range after.Retries {
		if r.Retries != 0 {
			s.Errorf("it was retried: %+v", r)
		}
	}
	for _, p := range after.Pipelines {
		if p.Calls.Cancelled != 1000 {
			s.Errorf("counted as %+v", p.Calls)
		}
	}
}

// wait makes a call that waits: for its backoff, behind others for a slot, or for
// a permit. release lets the others go.
func (s *subject) wait(ctx context.Context) (end <-chan fate, release func()) {
	s.Helper()
	fn, release := succeed, func() {}
	switch layer := s.kind.layer; {
	case layer == retryLayer:
		fn = fail
	case layer == bulkheadLayer:
		gate := make(chan struct{})
		for range slots {
			s.launch(context.Background(), func(context.Context) error { <-gate; return nil })
		}
		release = func() { close(gate); synctest.Wait() }
	case layer == limiterLayer:
		for range permits {
			s.healthy()
		}
	}
	synctest.Wait()
	end = s.launch(ctx, fn)
	synctest.Wait()
	return end, release
}

func (s *subject) mustBeWaiting(end <-chan fate) {
	s.Helper()
	select {
	case f := <-end:
		s.Fatalf("the call did not wait: %+v", f)
	default:
	}
}

func (s *subject) ruleCancelWaiting() {
	ctx, cancel := context.WithCancelCause(context.Background())
	end, release := s.wait(ctx)
	s.mustBeWaiting(end)
	cancel(errGone)
	f := s.answer(end)
	s.is(f.err, context.Canceled)
	if s.way != handle {
		s.is(f.err, errGone)
	}
	if s.kind.layer == retryLayer {
		s.is(f.err, errBoom)
	}
	release()
	s.free()
	if s.kind.layer == limiterLayer {
		s.manual.Advance(permitCost) // its place is the next one's
	}
	s.healthy()
	s.free()
}

func (s *subject) ruleDeadlineWaiting() {
	outer, err := timeout.New("outer", timeout.Config{Value: soon}, s.clk)
	if err != nil {
		s.Fatal(err)
	}
	inner := s.do
	s.do = func(ctx context.Context, fn func(context.Context) error) error {
		return outer.Do(ctx, func(ctx context.Context) error { return inner(ctx, fn) })
	}
	end, release := s.wait(context.Background())
	if s.kind.fits {
		s.mustBeWaiting(end)
		s.manual.Advance(soon - 1)
		synctest.Wait()
		s.mustBeWaiting(end)
		s.manual.Advance(1)
	}
	f := s.answer(end)
	switch layer := s.kind.layer; {
	case layer == bulkheadLayer:
		s.is(f.err, timeout.ErrExceeded, context.DeadlineExceeded)
		for _, b := range s.snapshot().Bulkheads {
			if b.Rejected != 0 {
				s.Error("counted as a refusal of the bulkhead")
			}
		}
	case layer == limiterLayer: // it does not fit: refused at once
		s.is(f.err, ratelimit.ErrLimited)
	case layer == retryLayer:
		s.is(f.err, retry.ErrOutOfTime, errBoom)
	}
	if errors.Is(f.err, context.Canceled) || errors.Is(f.err, bulkhead.ErrFull) {
		s.Errorf("got %v", f.err)
	}
	s.do = inner
	release()
	s.free()
}

func (s *subject) ruleCloseWaiting() {
	end, release := s.wait(context.Background())
	s.mustBeWaiting(end)
	if err := s.reg.Close(); err != nil {
		s.Error(err)
	}
	f := s.answer(end)
	s.is(f.err, registry.ErrClosed)
	release()
	s.free()
	s.closed()
}

// closed is what a closed registry is like.
func (s *subject) closed() {
	s.Helper()
	before := s.snapshot().Pipelines[0].Calls.Rejected
	err := s.do(context.Background(), func(context.Context) error { s.Error("the function ran"); return nil })
	s.is(err, registry.ErrClosed)
	if now := s.snapshot(); !now.Closed || now.Pipelines[0].Calls.Rejected != before+1 {
		s.Errorf("closed %v, counted as %+v", now.Closed, now.Pipelines[0].Calls)
	}
	if err := s.reg.Close(); err != nil {
		s.Error(err)
	}
	if err := s.reg.Drain(context.Background()); err != nil {
		s.Error(err)
	}
}

func (s *subject) ruleCloseRunning() {
	gate := make(chan struct{})
	var inside context.Context
	end := s.launch(context.Background(), func(ctx context.Context) error {
		inside = ctx
		<-gate
		return nil
	})
	synctest.Wait()
	for range 10 { // from anywhere
		go func() { _ = s.reg.Close() }()
	}
	synctest.Wait()
	if s.way == future {
		s.is(s.answer(end).err, registry.ErrClosed)
		s.is(context.Cause(inside), registry.ErrClosed)
		if n := s.snapshot().Pipelines[0].Abandoned.Running; n != 1 {
			s.Errorf("%d functions abandoned", n)
		}
		close(gate)
	} else { // it runs on its caller's goroutine, and goes on
		s.mustBeWaiting(end)
		close(gate)
		if f := s.answer(end); s.way == execute && f != (fate{}) {
			s.Errorf("got %+v", f)
		}
	}
	synctest.Wait()
	s.free()
	s.closed()
}

func (s *subject) ruleOverRelease() {
	switch layer := s.kind.layer; {
	case layer == bulkheadLayer:
		p, err := bulkhead.New("x", bulkhead.Config{MaxConcurrent: 1}, s.clk)
		if err != nil {
			s.Fatal(err)
		}
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, `"x"`) {
					s.Errorf("panicked with %q", text)
				}
			}()
			p.Release()
		}()
		if got := p.Snapshot(); got.Available != 1 || got.InUse != 0 || !p.TryAcquire() || p.TryAcquire() {
			s.Errorf("after it: %+v", got)
		}
	case layer == breakerLayer:
		c := circuitbreaker.Default()
		c.Apply(circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(1), circuitbreaker.FailureRatio(1), circuitbreaker.HalfOpenCalls(2), circuitbreaker.OpenFor(openFor))
		p, err := circuitbreaker.New("x", c, s.clk)
		if err != nil {
			s.Fatal(err)
		}
		first, _ := p.Allow()
		first.Failure()
		s.manual.Advance(openFor)
		probe, err := p.Allow()
		if err != nil {
			s.Fatal(err)
		}
		for range 3 {
			probe.Success()
			probe.Ignored()
		}
		if state := p.State(); state != circuitbreaker.HalfOpen {
			s.Errorf("one probe that was recorded several times made it %s", state)
		}
	}
}
