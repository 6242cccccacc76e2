package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// Package context tells of the caller's end on a goroutine of its own. Whoever has
// the answer of the call finds nothing of it: no place in the queue, no probe of
// the breaker, no deadline.
func TestAsync_A6_B7_WhoHasTheAnswerFindsNothingOfTheCall(t *testing.T) {
	rounds := 2000
	if raceEnabled {
		rounds = 500
	}
	t.Run("the place in the queue", func(t *testing.T) {
		w := newPassiveWorld(t)
		p := build(w, "x", bulked(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)))
		slots, _ := w.reg.Bulkhead("x")
		slots.TryAcquire()
		defer slots.Release()
		for round := range rounds {
			ctx, cancel := context.WithCancel(t.Context())
			f := p.ExecuteAsync(ctx, returns(1, nil))
			go cancel()
			if _, err := f.Get(t.Context()); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if n := slots.Snapshot().Waiting; n != 0 {
				t.Fatalf("round %d: %d waiting", round, n)
			}
		}
	})
	t.Run("the probe", func(t *testing.T) {
		w := newPassiveWorld(t)
		p := build(w, "x", func(b builder) builder {
			return b.CircuitBreaker(circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second), circuitbreaker.HalfOpenCalls(1))
		})
		breaker, _ := w.reg.CircuitBreaker("x")
		_, _ = p.Execute(t.Context(), returns(0, errBoom))
		w.clk.Advance(time.Second)
		for round := range rounds {
			ctx, cancel := context.WithCancel(t.Context())
			f := p.ExecuteFuture(ctx, giving(pipeline.NewPromise[int]().Future()))
			go cancel()
			if _, err := f.Get(t.Context()); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			permit, err := breaker.Allow()
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			permit.Ignored()
		}
	})
	t.Run("the deadline", func(t *testing.T) {
		for _, clk := range []clock.Clock{clock.System(), clock.NewManual(epoch).Passive()} {
			reg, err := registry.New(registry.WithClock(clk))
			if err != nil {
				t.Fatal(err)
			}
			p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(time.Hour).Build())
			for round := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				f := p.ExecuteFuture(ctx, giving(pipeline.NewPromise[int]().Future()))
				go cancel()
				if _, err := f.Get(t.Context()); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if n := reg.Snapshot().Wheel.Pending; n != 0 {
					t.Fatalf("round %d: %d deadlines pending", round, n)
				}
			}
		}
	})
}

// A fallback may be for the end of the caller's context. While its rules are asked,
// the call can be cancelled still, and then there is no fallback.
func TestCancel_A6_WhileTheFallbacksRulesAreAsked(t *testing.T) {
	w := newPassiveWorld(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	p := pipeline.Must(pipeline.New[int](w.reg, "x").Timeout(time.Hour).Bulkhead(bulkhead.MaxConcurrent(1)).
		Fallback(func(context.Context, error) (int, error) {
			t.Error("the fallback ran")
			return 9, nil
		}, fallback.If(func(error) bool {
			close(asked)
			<-answer
			return true
		})).Build())
	ctx, cancel := context.WithCancel(t.Context())
	stage, stopped := pipeline.NewPromise[int](), make(chan struct{})
	stage.OnCancel(func() { close(stopped) })
	f := p.ExecuteFuture(ctx, giving(stage.Future()))
	cancel()
	<-asked
	if s := w.reg.Snapshot(); s.Bulkheads[0].InUse != 0 || s.Wheel.Pending != 0 { // B-7: whoever left holds nothing
		t.Errorf("while the rules are asked: %+v, %d deadlines", s.Bulkheads[0], s.Wheel.Pending)
	}
	if !f.Cancel() || f.Cancel() {
		t.Error("Cancel must report true once")
	}
	if v, done, err := f.Poll(); !done || err != context.Canceled { //nolint:errorlint // that very value
		t.Errorf("%d, done %v, %v", v, done, err)
	}
	<-stopped // in Cancel: the rules are asked still
	close(answer)
}

// What hangs for long does not collect those who have given up waiting for it.
func TestView_A9_ACanceledOneIsNotHeldByItsOrigin(t *testing.T) {
	type key struct{}
	w := newPassiveWorld(t)
	p := build(w, "x", twoSeconds)
	hanging := pipeline.NewPromise[int]()
	var values []weak.Pointer[[1024]byte]
	for range 100 {
		value := new([1024]byte)
		values = append(values, weak.Make(value))
		ctx := context.WithValue(t.Context(), key{}, value)
		p.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[int] { return hanging.Future().View() })
	}
	kept := hanging.Future().View()
	w.clk.Advance(2 * time.Second)
	collected(t, values)
	if !hanging.Complete(7, nil) {
		t.Error("the origin was cancelled")
	}
	if v, done, err := kept.Poll(); v != 7 || !done || err != nil {
		t.Errorf("the view that was not canceled: %d, %v, %v", v, done, err)
	}
}

// A future may be kept for ever. The function that made it is not kept with it.
func TestFuture_A8_DoesNotKeepTheFunction(t *testing.T) {
	w := newPassiveWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var futures []*pipeline.Future[int]
	var values []weak.Pointer[[1024]byte]
	for _, layers := range []layers{twoSeconds, retrying(retry.MaxAttempts(2))} {
		p := build(w, string(rune('a'+len(futures))), layers)
		for _, err := range []error{nil, errBoom} {
			value := new([1024]byte)
			values = append(values, weak.Make(value))
			f := p.ExecuteAsync(ctx, func(context.Context) (int, error) { return int(value[0]), err })
			for !done(f) {
				w.clk.Advance(time.Minute)
				runtime.Gosched()
			}
			futures = append(futures, f)
		}
	}
	collected(t, values)
	runtime.KeepAlive(futures)
}

func done(f *pipeline.Future[int]) bool { _, done, _ := f.Poll(); return done }

// collected fails the test unless the collector takes all that is pointed to.
func collected(t *testing.T, all []weak.Pointer[[1024]byte]) {
	t.Helper()
	left := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		runtime.GC()
		left = 0
		for _, p := range all {
			if p.Value() != nil {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	t.Errorf("%d of %d values are held", left, len(all))
}

// A bulkhead refuses on the goroutine that moves the clock. What the retry makes of
// that does not run there.
func TestAsync_K6_TheAttemptAfterARefusedWaitHasItsOwnGoroutine(t *testing.T) {
	clk := clock.NewManual(epoch).Passive()
	var free func()
	reg, err := registry.New(registry.WithClock(clk), registry.WithListener(func(_ context.Context, e policy.Event) {
		if _, full := e.(bulkhead.Full); full {
			free()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.Must(pipeline.New[int](reg, "x").Retry(retry.Constant(0), retry.On(bulkhead.ErrFull)).
		Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(time.Second)).Build())
	slots, _ := reg.Bulkhead("x")
	free = slots.Release
	slots.TryAcquire()
	advanced := make(chan struct{})
	f := p.ExecuteAsync(t.Context(), func(context.Context) (int, error) {
		select {
		case <-advanced:
			return 7, nil
		case <-time.After(time.Minute):
			return 0, errors.New("it ran in Advance")
		}
	})
	clk.Advance(time.Second)
	close(advanced)
	if v, err := f.Get(t.Context()); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// X-1 holds for a pipeline without layers, too, which counts no call.
func TestNoLayers_X1_AClosedRegistryRefuses(t *testing.T) {
	for _, drained := range []bool{false, true} {
		w := newWorld(t)
		p := build(w, "plain", func(b builder) builder { return b })
		stage := pipeline.NewPromise[int]()
		pending := p.ExecuteFuture(t.Context(), giving(stage.Future()))
		if drained {
			if err := w.reg.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			stage.Complete(7, nil)
			if v, done, err := pending.Poll(); v != 7 || !done || err != nil {
				t.Errorf("drained: %d, %v, %v", v, done, err)
			}
		} else {
			if err := w.reg.Close(); err != nil {
				t.Fatal(err)
			}
			if _, done, err := pending.Poll(); !done || !errors.Is(err, registry.ErrClosed) {
				t.Errorf("closed: done %v, %v", done, err)
			}
		}
		ran := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
		_, err := p.Execute(t.Context(), ran)
		_, _, async := p.ExecuteAsync(t.Context(), ran).Poll()
		_, _, staged := p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { t.Error("it ran"); return nil }).Poll()
		run := p.Run(t.Context(), func(context.Context) error { t.Error("it ran"); return nil })
		for _, err := range []error{err, async, staged, run} {
			if !errors.Is(err, registry.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		if c := w.calls("plain"); c.Started != 0 {
			t.Errorf("counted: %+v", c)
		}
	}
}

// O-7: what the fallback sees, an outer retry may retry, with and without a retry
// of its own.
func TestFallback_O7_SeesNoMarkOfPermanent(t *testing.T) {
	for name, own := range map[string]layers{"no retry": twoSeconds, "a retry": retrying()} {
		w := newWorld(t)
		var seen []error
		inner := pipeline.Must(own(pipeline.New[int](w.reg, "inner")).
			Fallback(func(_ context.Context, err error) (int, error) { seen = append(seen, err); return 0, err }).Build())
		outer := build(w, "outer", retrying(retry.MaxAttempts(3)))
		_, err := outer.Execute(t.Context(), func(ctx context.Context) (int, error) {
			return inner.Execute(ctx, returns(0, retry.Permanent(errBoom)))
		})
		if len(seen) != 3 || !errors.Is(seen[0], errBoom) || !errors.Is(err, errBoom) {
			t.Errorf("%s: the fallback saw %v; %v", name, seen, err)
		}
	}
}

// leavingError ends the goroutine of who asks what it is.
type leavingError struct{ error }

func (leavingError) Is(error) bool { runtime.Goexit(); return false }

// C-3: a probe's place comes back whatever the user's code does while the outcome
// is judged.
func TestBreaker_C3_X3_AnErrorThatLeavesWhileItIsJudgedLosesNoProbe(t *testing.T) {
	w := newWorld(t)
	p := pipeline.Must(pipeline.New[int](w.reg, "x").
		CircuitBreaker(circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second), circuitbreaker.HalfOpenCalls(1), circuitbreaker.Ignore(context.Canceled)).
		FailIf(func(_ int, err error) bool { return err != nil }).Build())
	_, _ = p.Execute(t.Context(), returns(0, errBoom))
	w.clk.Advance(time.Second)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = p.Execute(t.Context(), returns(0, leavingError{errBoom}))
		t.Error("it returned")
	}()
	<-over
	breaker, _ := w.reg.CircuitBreaker("x")
	if s := breaker.State(); s != circuitbreaker.Open { // the probe has failed
		t.Errorf("state %s, want open", s)
	}
	w.clk.Advance(time.Second)
	if v, err := p.Execute(t.Context(), returns(7, nil)); v != 7 || err != nil {
		t.Errorf("the next probe: %d, %v", v, err)
	}
}
