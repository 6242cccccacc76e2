package pipeline_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// How a call ends that had no success, and what its error says.
func TestRetry_R13_EveryUnsuccessfulEnd(t *testing.T) {
	opened := func(b *pipeline.Builder[int]) {
		b.CircuitBreaker(circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(1), circuitbreaker.OpenFor(time.Hour))
	}
	for _, c := range []struct {
		name     string
		opts     []retry.Option
		build    func(b *pipeline.Builder[int])
		steps    []step
		then     func(a *arena, cancel func()) // after a second
		is       []error
		isNot    []error
		attempts int
		last     error
	}{
		{name: "exhausted", steps: []step{{err: errBoom}}, is: []error{retry.ErrExhausted}, attempts: 3, last: errBoom},
		{name: "exhausted with one attempt", opts: []retry.Option{retry.MaxAttempts(1)}, steps: []step{{err: errBoom}}, is: []error{retry.ErrExhausted}, attempts: 1, last: errBoom},
		{
			name: "no budget", opts: []retry.Option{retry.Budget(0, 1)}, steps: []step{{err: errBoom}},
			is: []error{retry.ErrBudget}, isNot: []error{retry.ErrExhausted}, attempts: 2, last: errBoom,
		},
		{
			name: "out of time", opts: []retry.Option{retry.Constant(10 * s), retry.MaxDuration(5 * s)}, steps: []step{{err: errBoom}},
			is: []error{retry.ErrOutOfTime, context.DeadlineExceeded}, isNot: []error{retry.ErrExhausted, context.Canceled}, attempts: 1, last: errBoom,
		},
		{
			name: "closed in the backoff", opts: []retry.Option{retry.Constant(10 * s)}, steps: []step{{err: errBoom}},
			then: func(a *arena, _ func()) { _ = a.reg.Close() },
			is:   []error{registry.ErrClosed}, isNot: []error{context.Canceled, retry.ErrExhausted}, attempts: 1, last: errBoom,
		},
		{
			name: "cancelled in the backoff", opts: []retry.Option{retry.Constant(10 * s)}, steps: []step{{err: errBoom}},
			then: func(_ *arena, cancel func()) { cancel() },
			is:   []error{context.Canceled}, isNot: []error{retry.ErrExhausted}, attempts: 1, last: errBoom,
		},
		{
			name: "then the breaker is open", build: opened, steps: []step{{err: errBoom}},
			is: []error{circuitbreaker.ErrOpen}, isNot: []error{retry.ErrExhausted}, attempts: 2, last: errBoom,
		},
		{
			name: "in the last attempt the breaker is open", build: opened, opts: []retry.Option{retry.MaxAttempts(2)}, steps: []step{{err: errBoom}},
			is: []error{circuitbreaker.ErrOpen, retry.ErrExhausted}, attempts: 2, last: errBoom,
		},
		{
			name: "in the last attempts there is no permit", build: func(b *pipeline.Builder[int]) { tokens(1)(b) }, opts: []retry.Option{retry.Constant(0), retry.MaxDelay(ms)}, steps: []step{{err: errBoom}},
			is: []error{ratelimit.ErrLimited, retry.ErrExhausted}, attempts: 3, last: errBoom,
		},
		{
			name: "a permit too late", build: func(b *pipeline.Builder[int]) { b.RateLimit(ratelimit.PerSecond(1)) }, opts: []retry.Option{retry.Constant(0), retry.MaxDuration(s)}, steps: []step{{err: errBoom}},
			is: []error{retry.ErrOutOfTime, ratelimit.ErrLimited}, isNot: []error{retry.ErrExhausted}, attempts: 2, last: errBoom,
		},
		{
			name: "the last attempt timed out in the queue", build: func(b *pipeline.Builder[int]) {
				b.Timeout(2*s).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
			},
			opts: []retry.Option{retry.MaxAttempts(2), retry.Constant(3 * s)}, steps: []step{{err: errBoom}},
			then: func(a *arena, _ func()) { b, _ := a.reg.Bulkhead("x"); b.TryAcquire() },
			is:   []error{timeout.ErrExceeded, retry.ErrExhausted}, attempts: 2, last: errBoom,
		},
		{
			name: "an error that is not retried comes after others", opts: []retry.Option{retry.AbortOn(errClosed)}, steps: []step{{err: errBoom}, {err: retry.Permanent(errPlain)}},
			is: []error{errPlain}, isNot: []error{errBoom, retry.ErrExhausted},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					if c.build != nil {
						c.build(b)
					}
					return b.Retry(append([]retry.Option{retry.MaxAttempts(3), retry.Constant(ms)}, c.opts...)...)
				})
				ctx, cancel := context.WithCancel(a.Context())
				defer cancel()
				r := a.start(ctx, p, a.plan(c.steps...).run)
				if c.then != nil {
					a.advance(s)
					c.then(a, cancel)
				}
				v, err := r.end()
				if v != 0 {
					a.Errorf("value %d", v)
				}
				a.is(err, c.is...)
				a.isNot(err, c.isNot...)
				if slots, ok := a.reg.Bulkhead("x"); ok && slots.Snapshot().InUse == 1 {
					slots.Release()
				}
				if c.attempts == 0 {
					if errors.As(err, new(*retry.Error)) {
						a.Errorf("not unchanged: %#v", err)
					}
					return
				}
				a.is(err, c.last)
				re := a.gaveUp(err)
				if re.Attempts != c.attempts || re.Last != c.last || re.Instance != "x" || re.Policy() != "retry" || !re.Started() { //nolint:errorlint // unchanged
					a.Errorf("%#v", re)
				}
				for _, reason := range c.is {
					a.is(re.Reason, reason)
				}
				if policy.NotStarted(err) || !policy.Started(err) {
					a.Errorf("NotStarted: %v", err)
				}
			})
		})
	}
}

var errPlain = errors.New("plain")

// If no attempt was entered, the last refusal comes back unchanged.
func TestRetry_R13_NoAttemptWasEntered(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *pipeline.Builder[int])
		opts  []retry.Option
		is    error
		tried int
	}{
		{"open", func(b *pipeline.Builder[int]) { b.CircuitBreaker() }, nil, circuitbreaker.ErrOpen, 1},
		{"open, asked for", func(b *pipeline.Builder[int]) { b.CircuitBreaker() }, []retry.Option{retry.On(circuitbreaker.ErrOpen), retry.MaxDelay(ms)}, circuitbreaker.ErrOpen, 3},
		{"full", func(b *pipeline.Builder[int]) { b.Bulkhead(bulkhead.MaxConcurrent(1)) }, nil, bulkhead.ErrFull, 3},
		{"full, for too long", func(b *pipeline.Builder[int]) { b.Bulkhead(bulkhead.MaxConcurrent(1)) }, []retry.Option{retry.Constant(s), retry.MaxDuration(s)}, bulkhead.ErrFull, 1},
		{"full, without a budget", func(b *pipeline.Builder[int]) { b.Bulkhead(bulkhead.MaxConcurrent(1)) }, []retry.Option{retry.Budget(0, 0)}, bulkhead.ErrFull, 1},
		{"limited", func(b *pipeline.Builder[int]) { tokens(1)(b) }, []retry.Option{retry.MaxDelay(ms)}, ratelimit.ErrLimited, 3},
		{"timed out in the queue", func(b *pipeline.Builder[int]) {
			b.Timeout(s).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
		}, nil, timeout.ErrExceeded, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					c.build(b)
					return b.Retry(append([]retry.Option{retry.MaxAttempts(3), retry.Constant(ms)}, c.opts...)...)
				})
				if b, ok := a.reg.CircuitBreaker("x"); ok {
					b.ForceOpen()
				}
				if l, ok := a.reg.RateLimiter("x"); ok {
					l.TryAcquire()
				}
				if b, ok := a.reg.Bulkhead("x"); ok {
					b.TryAcquire()
					defer b.Release()
				}
				fn := a.fails(0)
				_, err := a.call(a.Context(), p, fn.run)
				a.is(err, c.is)
				if e, ok := err.(policy.Error); !ok || e.Policy() == "retry" || e.Started() || !policy.NotStarted(err) { //nolint:errorlint // unchanged
					a.Errorf("got %#v", err)
				}
				if n := a.reg.Snapshot().Retries[0].Retries; int(n) != c.tried-1 || fn.calls() != 0 {
					a.Errorf("%d retries, want %d; %d calls", n, c.tried-1, fn.calls())
				}
			})
		})
	}
}

// The last refusal comes back also where MaxDuration ends the wait of a later
// attempt; and that is what the call counts as.
func TestRetry_R13_S5_ARefusalThenOutOfTimeInTheQueue(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		is      error
		counted string
	}{
		{"refused", time.Hour, bulkhead.ErrFull, "rejected"},
		{"timed out in the queue", 500 * ms, timeout.ErrExceeded, "timedOut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Retry(retry.MaxAttempts(5), retry.Constant(100*ms), retry.MaxDuration(s)).
						Timeout(c.timeout).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(600*ms))
				})
				slots, _ := a.reg.Bulkhead("x")
				slots.TryAcquire()
				_, err := a.call(a.Context(), p, a.fails(0).run)
				a.is(err, c.is)
				if errors.As(err, new(*retry.Error)) || !policy.NotStarted(err) || a.at() != s {
					a.Errorf("got %#v at %v", err, a.at())
				}
				a.counted(c.counted)
				slots.Release()
			})
		})
	}
}

func TestRetry_R13_Elapsed(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []retry.Option
		want time.Duration
	}{
		{"from the first attempt's end", nil, 400 * ms},
		{"from its start, with MaxDuration", []retry.Option{retry.MaxDuration(time.Hour)}, 500 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", retrying(append(c.opts, retry.MaxAttempts(2), retry.Constant(300*ms))...))
				_, err := a.call(a.Context(), p, a.plan(step{takes: 100 * ms, err: errBoom}).run)
				if re := a.gaveUp(err); re.Elapsed != c.want {
					a.Errorf("elapsed %v, want %v", re.Elapsed, c.want)
				}
			})
		})
	}
}

// T-10: the pipeline that timed out is named, and alone counts it.
func TestRetry_T10_R10_NestedPipelines(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		outer := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(10*s).Retry(retry.MaxAttempts(3), retry.Constant(0))
		})
		inner := build(a.world, "y", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(s) })
		limit := build(a.world, "z", limited(ratelimit.PerSecond(1)))
		fn := a.plan(step{takes: time.Hour})
		_, err := a.call(a.Context(), outer, func(ctx context.Context) (int, error) { return inner.Execute(ctx, fn.run) })
		var te *timeout.Error
		if !errors.As(err, &te) || te.Instance != "y" || fn.calls() != 3 || a.at() != 3*s {
			a.Errorf("got %#v after %d calls", te, fn.calls())
		}
		a.counted("failed") // to the outer pipeline it is the function's own error
		if n := a.calls("y"); n.TimedOut != 3 {
			a.Errorf("%+v", n)
		}

		// A refusal inside of the function says when to come again.
		fn = a.plan(step{err: errBoom}, step{v: 7})
		v, err := a.call(a.Context(), outer, func(ctx context.Context) (int, error) { return limit.Execute(ctx, fn.run) })
		if v != 7 || err != nil || a.at() != 4*s {
			a.Errorf("got %d, %v at %v", v, err, a.at())
		}
	})
}

// A refused attempt has its number, too: the function sees those of its own.
func TestRetry_R15_AttemptsAreNumberedByTheRetry(t *testing.T) {
	for name, l := range map[string]layers{
		"":        func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b },
		"timeout": func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Minute) },
		"breaker": func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.CircuitBreaker() },
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return l(b.RateLimit(ratelimit.Per(1, 2*s)).Retry(retry.MaxAttempts(5), retry.Constant(s)))
				})
				numbers := func() (got []int) {
					fn := a.plan(step{err: errBoom})
					_, _ = a.call(a.Context(), p, fn.run)
					key := retry.IdempotencyKey(fn.ctx(1))
					for n := range fn.calls() {
						got = append(got, retry.Attempt(fn.ctx(n+1)))
						if k := retry.IdempotencyKey(fn.ctx(n + 1)); k != key || k == "" {
							a.Errorf("keys %q and %q", key, k)
						}
					}
					return got
				}
				if diff := cmp.Diff([]int{1, 3, 5}, numbers()); diff != "" {
					a.Error(diff)
				}
				// The first is refused: the last call has had the permit.
				if diff := cmp.Diff([]int{2, 4}, numbers()); diff != "" {
					a.Error(diff)
				}
			})
		})
	}
}

// A call that is ended while RetryIf looks at a permanent error gives away that
// error without its mark: the next retry decides anew.
func TestRetry_R4_A6_TheMarkStaysInsideWhoeverEndsTheCall(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		var f atomic.Pointer[pipeline.Future[int]]
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(2), retry.Constant(0)).RetryIf(func(int, error) bool {
				f.Load().Cancel()
				return true
			})
		})
		r := a.start(a.Context(), p, a.plan(step{takes: s, err: retry.Permanent(errBoom)}).run)
		f.Store(r.future)
		a.advance(s)
		_, err := r.end()
		a.is(err, context.Canceled, errBoom)
		outer := build(a.world, "outer", retrying(retry.MaxAttempts(3), retry.Constant(0)))
		fn := a.plan(step{err: err})
		_, _ = a.call(a.Context(), outer, fn.run)
		if n := fn.calls(); n != 3 {
			a.Errorf("%d attempts, want 3: the mark has leaked", n)
		}
	})
}
