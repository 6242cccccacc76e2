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
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

var errLeft = errors.New("client went away")

// phase brings a call to where it waits or runs.
type phase struct {
	name   string
	layers func(*pipeline.Builder[int]) *pipeline.Builder[int]
	// reach makes the call and returns when it is in the phase, with how to end
	// what it began.
	reach func(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (f *pipeline.Future[int], leave func())
	last  bool // an attempt has failed before, with errBoom
	work  bool // a function is running, and will return 7
}

func thrice(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.Retry(retry.MaxAttempts(3), retry.Constant(0)).Timeout(time.Hour)
}

// failsOnce fails at the first attempt and has s for the second.
func failsOnce(s *stepped) func(context.Context) (int, error) {
	var n atomic.Int32
	return func(ctx context.Context) (int, error) {
		if n.Add(1) == 1 {
			return 0, errBoom
		}
		return s.run(ctx)
	}
}

func runs(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
	s := newStepped(7, nil)
	f := p.ExecuteAsync(ctx, s.run)
	w.await("the function", s.entered)
	return f, func() { close(s.gate) }
}

var phases = []phase{
	{name: "running", layers: twoSeconds, reach: runs, work: true},
	{name: "running without layers", layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b }, reach: runs, work: true},
	{
		name: "running again", layers: thrice, last: true, work: true,
		reach: func(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			s := newStepped(7, nil)
			f := p.ExecuteAsync(ctx, failsOnce(s))
			w.await("the second attempt", s.entered)
			return f, func() { close(s.gate) }
		},
	},
	{
		name: "stage", layers: thrice,
		reach: func(ctx context.Context, _ *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			return p.ExecuteFuture(ctx, giving(pipeline.NewPromise[int]().Future())), func() {}
		},
	},
	{
		name: "queue",
		layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return thrice(b).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1), bulkhead.MaxWait(time.Hour))
		},
		reach: func(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			slot, _ := w.reg.Bulkhead("x")
			slot.TryAcquire()
			return p.ExecuteAsync(ctx, returns(7, nil)), slot.Release
		},
	},
	{
		name: "queue of a later attempt", last: true,
		layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return thrice(b).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
		},
		reach: func(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			slot, _ := w.reg.Bulkhead("x")
			behind := make(chan error)
			f := p.ExecuteAsync(ctx, func(ctx context.Context) (int, error) {
				go func() { behind <- slot.Acquire(context.Background()) }()
				_ = w.clk.AwaitSleepers(ctx, 1) // it gets the slot that this attempt leaves
				return 0, errBoom
			})
			if err := <-behind; err != nil {
				w.Fatal(err)
			}
			for slot.Snapshot().Waiting == 0 {
				<-tick()
			}
			return f, slot.Release
		},
	},
	{
		name: "limiter",
		layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return thrice(b).RateLimit(ratelimit.Per(1, time.Minute), ratelimit.MaxWait(time.Hour))
		},
		reach: func(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			l, _ := w.reg.RateLimiter("x")
			l.TryAcquire()
			return p.ExecuteAsync(ctx, returns(7, nil)), func() {}
		},
	},
	{
		name: "limiter of a later attempt", last: true,
		layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return thrice(b).RateLimit(ratelimit.Per(1, time.Minute), ratelimit.MaxWait(time.Hour))
		},
		reach: func(ctx context.Context, _ *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			return p.ExecuteFuture(ctx, giving(failed(errBoom))), func() {}
		},
	},
	{
		name: "backoff", last: true,
		layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.Constant(time.Second)).Timeout(time.Hour)
		},
		reach: func(ctx context.Context, _ *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			return p.ExecuteFuture(ctx, giving(failed(errBoom))), func() {}
		},
	},
	{
		name: "fallback", layers: withSlowFallback,
		reach: func(ctx context.Context, w *world, p *pipeline.Pipeline[int]) (*pipeline.Future[int], func()) {
			asked := make(chan struct{})
			f := p.ExecuteFuture(context.WithValue(ctx, askedKey{}, asked), giving(failed(errBoom)))
			w.await("the fallback", asked)
			return f, func() {}
		},
	},
}

type askedKey struct{}

// withSlowFallback has a fallback that ends with its context alone.
func withSlowFallback(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.Fallback(func(ctx context.Context, _ error) (int, error) {
		close(ctx.Value(askedKey{}).(chan struct{}))
		<-ctx.Done()
		return 0, ctx.Err()
	})
}

// inEveryPhase has each call ended by end, and then left.
func inEveryPhase(t *testing.T, end func(w *world, f *pipeline.Future[int], cancel func()), check func(w *world, ph phase, err error)) {
	t.Helper()
	for _, ph := range phases {
		t.Run(ph.name, func(t *testing.T) {
			w := newWorldOn(t, clock.NewManual(epoch).Passive())
			p := build(w, "x", ph.layers)
			ctx, cancel := context.WithCancelCause(context.Background())
			f, leave := ph.reach(ctx, w, p)
			if _, done, _ := f.Poll(); done {
				t.Fatal("it is over before it could be ended")
			}
			end(w, f, func() { cancel(errLeft) })
			w.await("the end", f.Done())
			_, err := f.Get(context.Background())
			for w.clk.Pending() != 0 || waiting(w) { // the answer comes first
				<-tick()
			}
			if len(heard[timeout.Exceeded](w)) != 0 {
				t.Error("an event of a timeout")
			}
			leave()
			w.await("the work's end", f.Work().Done())
			check(w, ph, err)
			if n := len(heard[pipeline.LateSuccess](w)); (n == 1) != ph.work {
				t.Errorf("%d late successes", n)
			}
			if v, _, err := f.Work().Poll(); ph.work && (v != 7 || err != nil) {
				t.Errorf("work: %d %v", v, err)
			}
			cancel(nil)
		})
	}
}

func waiting(w *world) bool {
	s := w.reg.Snapshot()
	return len(s.RateLimiters) > 0 && s.RateLimiters[0].Waiting > 0 || len(s.Bulkheads) > 0 && s.Bulkheads[0].Waiting > 0
}

func TestCancel_A6_R11_InEveryPhase(t *testing.T) {
	inEveryPhase(t, func(w *world, f *pipeline.Future[int], _ func()) {
		if !f.Cancel() || f.Cancel() {
			w.Error("Cancel answered wrong")
		}
		if _, done, _ := f.Poll(); !done {
			w.Error("pending after Cancel")
		}
	}, func(w *world, ph phase, err error) {
		w.is(err, context.Canceled)
		w.isNot(err, timeout.ErrExceeded, context.DeadlineExceeded)
		if errors.Is(err, errBoom) != ph.last {
			w.Errorf("the last error: %v", err)
		}
		if c := w.calls("x"); ph.name != "running without layers" && c.Cancelled != 1 {
			w.Errorf("%+v", c)
		}
	})
}

func TestCancel_A6_R11_TheCallersContextInEveryPhase(t *testing.T) {
	inEveryPhase(t, func(_ *world, _ *pipeline.Future[int], cancel func()) { cancel() },
		func(w *world, ph phase, err error) {
			c := w.calls("x")
			if ph.name == "fallback" && c.Failed == 1 { // it heard of the end first, and said so
				w.is(err, context.Canceled, errBoom)
				return
			}
			w.is(err, context.Canceled, errLeft)
			w.isNot(err, timeout.ErrExceeded)
			if errors.Is(err, errBoom) != ph.last {
				w.Errorf("the last error: %v", err)
			}
			if ph.name != "running without layers" && c.Cancelled != 1 {
				w.Errorf("%+v", c)
			}
		})
}

func TestClose_X1_InEveryPhase(t *testing.T) {
	inEveryPhase(t, func(w *world, f *pipeline.Future[int], _ func()) {
		if err := w.reg.Close(); err != nil {
			w.Error(err)
		}
		if w.reg.Snapshot().Bulkheads == nil { // else the waiter is told on a goroutine of its own
			if _, done, _ := f.Poll(); !done {
				w.Error("pending after Close")
			}
		}
	}, func(w *world, ph phase, err error) {
		w.is(err, registry.ErrClosed)
		w.isNot(err, timeout.ErrExceeded)
		if errors.Is(err, errBoom) != ph.last {
			w.Errorf("the last error: %v", err)
		}
		if c := w.calls("x"); ph.name != "running without layers" && c.Rejected != 1 {
			w.Errorf("%+v", c)
		}
	})
}

// A call is cancelled while its last attempt is being judged.
func TestCancel_A6_R11_InTheMiddleOfADecision(t *testing.T) {
	w := newWorld(t)
	var f *pipeline.Future[int]
	promise := pipeline.NewPromise[int]()
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.Constant(time.Second)).RetryIf(func(int, error) bool { return f.Cancel() })
	})
	f = p.ExecuteFuture(t.Context(), giving(promise.Future()))
	promise.Complete(0, errBoom)
	_, err := f.Get(t.Context())
	w.is(err, context.Canceled, errBoom)
	if c := w.calls("x"); c.Cancelled != 1 {
		t.Errorf("%+v", c)
	}
}

// Who cancels a future gets no other result in its place.
func TestCancel_A6_O7_IsNoOccasionForTheFallback(t *testing.T) {
	w := newPassiveWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(time.Second).Fallback(func(context.Context, error) (int, error) {
			t.Error("the fallback was asked")
			return 0, nil
		}, fallback.On(context.Canceled))
	})
	s := newStepped(7, nil)
	f := p.ExecuteAsync(t.Context(), s.run)
	w.await("the function", s.entered)
	if !f.Cancel() {
		t.Error("Cancel returned false")
	}
	_, done, err := f.Poll()
	if !done {
		t.Error("pending after Cancel")
	}
	w.is(err, context.Canceled)
	close(s.gate)
	w.await("the work's end", f.Work().Done())
}

// A fallback that has begun is reached by Cancel, and one that has not never
// begins: 2,000 races, none of which may hang.
func TestCancel_A6_O7_AsTheFallbackBegins(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", withSlowFallback)
	for range 2000 {
		ctx := context.WithValue(t.Context(), askedKey{}, make(chan struct{}))
		promise := pipeline.NewPromise[int]()
		f := p.ExecuteFuture(ctx, giving(promise.Future()))
		var both sync.WaitGroup
		both.Go(func() { promise.Complete(0, errBoom) })
		both.Go(func() { f.Cancel() })
		both.Wait()
		f.Cancel()
		if _, err := f.Get(t.Context()); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// The caller's context ends at any moment of the call's own.
func TestCancel_A6_TheCallersContextAtAnyMoment(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.Constant(0)).RateLimit(ratelimit.PerSecond(1_000_000_000), ratelimit.MaxWait(time.Second)).
			Timeout(time.Hour).Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.Queue(10))
	})
	ended := 0
	for range 2000 {
		ctx, cancel := context.WithCancelCause(context.Background())
		var both sync.WaitGroup
		both.Go(func() { cancel(errLeft) })
		f := p.ExecuteAsync(ctx, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		_, err := f.Get(context.Background())
		w.is(err, errLeft)
		both.Wait()
		w.await("the work's end", f.Work().Done())
		ended++
	}
	if c := w.calls("x"); c.Cancelled != uint64(ended) {
		t.Errorf("%+v", c)
	}
}
