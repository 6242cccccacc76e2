package conform_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
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

// kind is one policy as the suite sees it.
type kind struct {
	name  string
	layer layers

	// alone makes the policy without pipeline and registry, and returns how to
	// call a function behind its handle, and its state as a registry would show it.
	// nil: it has no handle.
	alone func(t *testing.T, clk clock.Clock) (do doer, snapshot func() registry.Snapshot)

	// waits says that calls may have to wait; fits, that a wait may begin which
	// the caller's deadline is going to end.
	waits, fits bool

	// What a success allocates at most behind Execute, alone, and as a future.
	allocs, allocsAlone, future float64

	noContext bool // the handle takes no context: who uses it looks at it
}

// doer calls fn behind a policy and waits for the end.
type doer func(ctx context.Context, fn func(context.Context) error) error

// Alone, a timeout stands on a timer of the clock's own; behind a registry it is
// on the shared wheel. A future that may have to wait has what it needs for that
// from the start.
var kinds = []*kind{
	{name: "timeout", layer: timeoutLayer, alone: aloneTimeout, allocs: 1, allocsAlone: 7, future: 2},
	{name: "retry", layer: retryLayer, alone: aloneRetry, waits: true, allocs: 1, allocsAlone: 1, future: 5},
	{name: "bulkhead", layer: bulkheadLayer, alone: aloneBulkhead, waits: true, fits: true, future: 6},
	{name: "ratelimit", layer: limiterLayer, alone: aloneLimiter, waits: true, future: 6},
	{name: "circuitbreaker", layer: breakerLayer, alone: aloneBreaker, noContext: true, allocs: 1, future: 6},
	{name: "fallback", layer: fallbackLayer, future: 4},
}

func aloneTimeout(t *testing.T, clk clock.Clock) (doer, func() registry.Snapshot) {
	t.Helper()
	p, err := timeout.New("x", timeout.Config{Value: limit}, clk)
	if err != nil {
		t.Fatal(err)
	}
	return p.Do, func() registry.Snapshot {
		return registry.Snapshot{Timeouts: []timeout.Snapshot{p.Snapshot()}}
	}
}

func aloneRetry(t *testing.T, clk clock.Clock) (doer, func() registry.Snapshot) {
	t.Helper()
	c := retry.Default()
	c.Apply(retry.MaxAttempts(attempts), retry.Constant(backoff))
	p, err := retry.New("x", c, clk)
	if err != nil {
		t.Fatal(err)
	}
	return p.Do, func() registry.Snapshot { return registry.Snapshot{Retries: []retry.Snapshot{p.Snapshot()}} }
}

func aloneBulkhead(t *testing.T, clk clock.Clock) (doer, func() registry.Snapshot) {
	t.Helper()
	p, err := bulkhead.New("x", bulkhead.Config{MaxConcurrent: slots, Queue: -1, MaxWait: slotWait}, clk)
	if err != nil {
		t.Fatal(err)
	}
	do := func(ctx context.Context, fn func(context.Context) error) error {
		if err := p.Acquire(ctx); err != nil {
			return err
		}
		defer p.Release()
		return fn(ctx)
	}
	return do, func() registry.Snapshot { return registry.Snapshot{Bulkheads: []bulkhead.Snapshot{p.Snapshot()}} }
}

func aloneLimiter(t *testing.T, clk clock.Clock) (doer, func() registry.Snapshot) {
	t.Helper()
	p, err := ratelimit.New("x", ratelimit.Config{Limit: permits, Period: permits * permitCost, Burst: permits, MaxWait: permitWait}, clk)
	if err != nil {
		t.Fatal(err)
	}
	do := func(ctx context.Context, fn func(context.Context) error) error {
		if err := p.Acquire(ctx); err != nil {
			return err
		}
		return fn(ctx)
	}
	return do, func() registry.Snapshot {
		return registry.Snapshot{RateLimiters: []ratelimit.Snapshot{p.Snapshot()}}
	}
}

func aloneBreaker(t *testing.T, clk clock.Clock) (doer, func() registry.Snapshot) {
	t.Helper()
	p, err := circuitbreaker.New("x", circuitbreaker.Default(), clk)
	if err != nil {
		t.Fatal(err)
	}
	do := func(ctx context.Context, fn func(context.Context) error) (err error) {
		permit, err := p.Allow()
		if err != nil {
			return err
		}
		returned := false
		defer func() {
			if returned {
				permit.Record(err)
			} else {
				permit.Failure()
			}
		}()
		err = fn(ctx)
		returned = true
		return err
	}
	return do, func() registry.Snapshot {
		return registry.Snapshot{CircuitBreakers: []circuitbreaker.Snapshot{p.Snapshot()}}
	}
}

// way is how a policy is called.
type way string

const (
	handle  way = "handle"
	execute way = "Execute"
	future  way = "ExecuteAsync"
	stage   way = "ExecuteFuture"
)

// subject is one policy, called in one way.
type subject struct {
	*testing.T
	kind *kind
	way  way
	clk  clock.Clock
	do   doer

	manual   *clock.Manual                        // nil: the system's clock
	reg      *registry.Registry                   // nil: it stands alone
	p        *pipeline.Pipeline[int]              // likewise
	snapshot func() registry.Snapshot             // with the policy's row, at least
	future   atomic.Pointer[pipeline.Future[int]] // the last one
	events   chan policy.Event
}

// newSubject makes one on a clock: a passive manual one in the suite's bubbles.
func newSubject(t *testing.T, k *kind, way way, clk clock.Clock) *subject {
	t.Helper()
	s := &subject{T: t, kind: k, way: way, clk: clk, events: make(chan policy.Event, 100)}
	s.manual, _ = clk.(*clock.Manual)
	if way == handle {
		s.do, s.snapshot = k.alone(t, clk)
		return s
	}
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	b := k.layer.build(pipeline.New[int](reg, "x"), true, 0)
	if k.layer == fallbackLayer {
		b.Fallback(func(context.Context, error) (int, error) { return fromFallback, nil }, fallback.On(errFallback))
	}
	if s.p, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	s.reg, s.snapshot, s.do = reg, reg.Snapshot, s.through()
	if breaker, ok := reg.CircuitBreaker("x"); ok {
		breaker.ForceClosed() // the matrix opens it
	}
	return s
}

// through is how a function is called through the pipeline.
func (s *subject) through() doer {
	get := func(f *pipeline.Future[int]) error {
		s.future.Store(f)
		_, err := f.Get(context.Background())
		return err
	}
	switch s.way {
	case execute:
		return func(ctx context.Context, fn func(context.Context) error) error { return s.p.Run(ctx, fn) }
	case future:
		return func(ctx context.Context, fn func(context.Context) error) error {
			return get(s.p.ExecuteAsync(ctx, func(ctx context.Context) (int, error) { return 0, fn(ctx) }))
		}
	case stage: // one that has ended when the function returns
		return func(ctx context.Context, fn func(context.Context) error) error {
			return get(s.p.ExecuteFuture(ctx, func(ctx context.Context) *pipeline.Future[int] {
				p := pipeline.NewPromise[int]()
				p.Complete(0, fn(ctx))
				return p.Future()
			}))
		}
	case handle:
	}
	return nil
}

// fate is how a call ended.
type fate struct {
	err      error
	panicked any
	exited   bool
}

// launch makes a call on a goroutine of its own.
func (s *subject) launch(ctx context.Context, fn func(context.Context) error) <-chan fate {
	end := make(chan fate, 1)
	go func() {
		var f fate
		returned := false
		defer func() {
			if f.panicked = recover(); f.panicked == nil {
				f.exited = !returned
			}
			end <- f
		}()
		f.err = s.do(ctx, fn)
		returned = true
	}()
	return end
}

// free fails the test unless everything is back: slots, places, deadlines, and
// calls that are counted as started are counted as ended.
func (s *subject) free() {
	s.Helper()
	for _, what := range s.held() {
		s.Error(what)
	}
}

// soonFree is free on the system's clock. A machine that stops for longer than a
// timeout leaves a function behind its future, for a while.
func (s *subject) soonFree() {
	s.Helper()
	for end := time.Now().Add(time.Minute); len(s.held()) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	s.free()
}

// held says what is not back.
func (s *subject) held() (all []string) {
	found := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	now := s.snapshot()
	for _, p := range now.Pipelines {
		if c := p.Calls; c.InFlight != 0 || p.Abandoned.Running != 0 {
			found("%d calls in flight, %d functions abandoned", c.InFlight, p.Abandoned.Running)
		}
	}
	for _, b := range now.Bulkheads {
		if b.Available != slots || b.Waiting != 0 {
			found("%d slots available of %d, %d waiting", b.Available, slots, b.Waiting)
		}
	}
	for _, l := range now.RateLimiters {
		if l.Waiting != 0 {
			found("%d wait for a permit", l.Waiting)
		}
	}
	if now.Wheel.Pending != 0 || s.manual != nil && s.manual.Pending() != 0 {
		found("something is pending: %d deadlines, %v", now.Wheel.Pending, s.clk)
	}
	return all
}

// healthy makes a call that must succeed at once.
func (s *subject) healthy() {
	s.Helper()
	if f := s.answer(s.launch(context.Background(), succeed)); f != (fate{}) {
		s.Errorf("the next call ended with %+v", f)
	}
}

func succeed(context.Context) error { return nil }
func fail(context.Context) error    { return errBoom }
