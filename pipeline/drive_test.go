package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// Every wait of a sync call moves a manual clock itself, event by event, until it
// is over: one goroutine is enough for a test.
func TestDrive_K5_EveryWaitOfASyncCallDrivesTheClock(t *testing.T) {
	backoff := retrying(retry.MaxAttempts(3), retry.Constant(s))
	permit := limited(ratelimit.PerSecond(1), ratelimit.MaxWait(5*s))
	slot := bulked(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(5*s))
	for _, c := range []struct {
		name   string
		build  layers
		event  time.Duration // when something happens on the clock
		what   func(w *world, cancel func())
		ends   time.Duration
		err    []error // none: 7
		before []error // what the function returns before that
	}{
		{name: "backoffs", build: backoff, ends: 2 * s, before: []error{errBoom, errBoom}},
		{name: "a backoff, cancelled", build: backoff, event: 500 * ms, what: func(_ *world, cancel func()) { cancel() }, ends: 500 * ms, err: []error{context.Canceled, errBoom}, before: []error{errBoom}},
		{name: "a backoff, closed", build: backoff, event: 500 * ms, what: func(w *world, _ func()) { _ = w.reg.Close() }, ends: 500 * ms, err: []error{errClosed, errBoom}, before: []error{errBoom}},
		{name: "a permit", build: permit, ends: s},
		{name: "a permit, cancelled", build: permit, event: 500 * ms, what: func(_ *world, cancel func()) { cancel() }, ends: 500 * ms, err: []error{context.Canceled}},
		{name: "a permit, sooner by SetRate", build: permit, event: 200 * ms, what: func(w *world, _ func()) { l, _ := w.reg.RateLimiter("x"); _ = l.SetRate(1, 500*ms, 1) }, ends: 600 * ms},
		{name: "a slot", build: slot, event: 3 * s, what: func(w *world, _ func()) { b, _ := w.reg.Bulkhead("x"); b.Release() }, ends: 3 * s},
		{name: "a slot, full", build: slot, ends: 5 * s, err: []error{bulkhead.ErrFull}},
		{name: "a slot, cancelled", build: slot, event: 500 * ms, what: func(_ *world, cancel func()) { cancel() }, ends: 500 * ms, err: []error{context.Canceled}},
		{name: "a slot, by SetLimit", build: slot, event: 500 * ms, what: func(w *world, _ func()) { b, _ := w.reg.Bulkhead("x"); _ = b.SetLimit(2) }, ends: 500 * ms},
		{name: "a slot, inside of the timeout", build: func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return slot(b).Timeout(2 * s) }, ends: 2 * s, err: []error{timeout.ErrExceeded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := build(w, "x", c.build)
			if l, ok := w.reg.RateLimiter("x"); ok {
				l.TryAcquire()
			}
			b, ok := w.reg.Bulkhead("x")
			if ok {
				b.TryAcquire()
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.what != nil {
				w.clk.AfterFunc(c.event, func() { c.what(w, cancel) })
			}
			v, err := p.Execute(ctx, func(context.Context) (int, error) {
				if len(c.before) > 0 {
					err := c.before[0]
					c.before = c.before[1:]
					return 0, err
				}
				return 7, nil
			})
			w.elapsed(c.ends)
			w.is(err, c.err...)
			if c.err == nil && (v != 7 || err != nil) {
				t.Errorf("got %d, %v", v, err)
			}
			if ok && b.Snapshot().InUse == 1 {
				b.Release()
			}
		})
	}
}

// K-1, O-2: with everything around it, a call of three attempts on one goroutine.
func TestDrive_K1_ThreeAttemptsOfAFullStack(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(2*s).Retry(retry.MaxAttempts(3), retry.Constant(s)).CircuitBreaker().
			RateLimit(ratelimit.Per(1, 10*s), ratelimit.MaxWait(time.Minute)).Bulkhead(bulkhead.MaxConcurrent(1))
	})
	var began []time.Duration
	v, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) {
		began = append(began, w.at())
		if len(began) < 3 {
			return 0, w.clk.Sleep(ctx, 5*s)
		}
		return 7, nil
	})
	if v != 7 || err != nil || len(began) != 3 || began[0] != 0 || began[1] != 10*s || began[2] != 20*s {
		t.Errorf("got %d, %v; attempts at %v", v, err, began)
	}
	w.elapsed(20 * s)
}

// L-5: who no longer fits after a change of the rate is refused at once.
func TestLimit_L5_AWaiterThatNoLongerFits(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", limited(ratelimit.PerSecond(1), ratelimit.MaxWait(2*s)))
		limiter, _ := a.reg.RateLimiter("x")
		limiter.TryAcquire()
		never, fn := a.fails(0), a.fails(0)
		first := a.start(a.Context(), p, fn.run)
		second := a.start(a.Context(), p, never.run)
		if err := limiter.SetRate(1, 2*s, 1); err != nil {
			a.Fatal(err)
		}
		if !second.ended() || first.ended() {
			a.Fatal("not refused at once, or both")
		}
		var le *ratelimit.Error
		if !errors.As(second.err, &le) || le.Wait <= 2*s {
			a.Errorf("got %#v", second.err)
		}
		if v, err := first.end(); v != 7 || err != nil || a.at() != 2*s {
			a.Errorf("got %d, %v at %v", v, err, a.at())
		}
		if n := never.calls(); n != 0 {
			a.Errorf("ran %d times", n)
		}
		if n := a.calls("x"); n.Rejected != 1 || n.Succeeded != 1 {
			a.Errorf("S-5: %+v", n)
		}
	})
}

// an attempt that was given up and runs on holds its slot, so that its own
// successor may find none; and Work tells of the one that ran.
func TestBulkhead_A5_A2_ARetryAfterAnAbandonedAttempt(t *testing.T) {
	for _, free := range []bool{false, true} {
		t.Run(map[bool]string{false: "held", true: "FreeOnTimeout"}[free], func(t *testing.T) {
			inForms(t, []form{async}, func(a *arena) {
				opts := []bulkhead.Option{bulkhead.MaxConcurrent(1)}
				if free {
					opts = append(opts, bulkhead.FreeOnTimeout())
				}
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Timeout(s).Retry(retry.MaxAttempts(2), retry.Constant(s)).Bulkhead(opts...)
				})
				fn := a.plan(step{takes: 10 * s, deaf: true, v: 1}, step{v: 2})
				r := a.start(a.Context(), p, fn.run)
				v, err := r.end()
				if r.over != 2*s {
					a.Errorf("ended at %v", r.over)
				}
				if _, over, _ := r.future.Work().Poll(); over {
					a.Error("the first attempt still runs, and the work is said to be over")
				}
				want := 1
				if free {
					want = 2
					if v != 2 || err != nil || fn.calls() != 2 {
						a.Errorf("got %d, %v", v, err)
					}
				} else {
					a.is(err, bulkhead.ErrFull, retry.ErrExhausted, timeout.ErrExceeded)
					_ = a.gaveUp(err)
				}
				a.advance(10 * s)
				if v, over, err := r.future.Work().Poll(); v != want || !over || err != nil {
					a.Errorf("work: %d, %v, %v; want the outcome of the last attempt that was entered", v, over, err)
				}
				if b := a.bulkhead(); b.InUse != 0 {
					a.Errorf("%+v", b)
				}
			})
		})
	}
}
