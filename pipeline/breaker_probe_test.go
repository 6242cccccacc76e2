package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
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
	"resilience4cata.dev/go/registry/health"
)

// halfOpen trips the breaker and waits until it lets its one probe through.
func (a *arena) halfOpen(id string) {
	a.Helper()
	a.trip(id)
	a.advance(5 * time.Second)
	a.state(id, circuitbreaker.HalfOpen)
}

// abrupt makes a call whose function does not return, on a goroutine that may
// end with it.
func (a *arena) abrupt(p *pipeline.Pipeline[int], leave func()) {
	a.contained(a.Context(), p, func(context.Context) (int, error) { leave(); return 0, nil })
}

// abruptCaller makes a call that fails and whose context, which is foreign code,
// leaves when it is asked whether that was the caller's end.
func (a *arena) abruptCaller(p *pipeline.Pipeline[int], leave func()) {
	ctx := &errCtx{Context: a.Context()}
	a.contained(ctx, p, func(context.Context) (int, error) { ctx.f.Store(&leave); return 0, errBoom })
}

// contained makes a call that may end its goroutine.
func (a *arena) contained(ctx context.Context, p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		switch a.form {
		case inline:
			_, _ = p.Execute(ctx, fn)
		case async:
			_, _ = p.ExecuteAsync(ctx, fn).Get(context.Background())
		case staged:
			_, _ = p.ExecuteFuture(ctx, func(ctx context.Context) *pipeline.Future[int] {
				stage := pipeline.NewPromise[int]()
				stage.Complete(fn(ctx))
				return stage.Future()
			}).Get(context.Background())
		}
	}()
	<-done
	synctest.Wait()
}

// hangs never answers before its context ends.
func (a *arena) hangs() *work { return a.plan(step{takes: time.Hour, v: 7}) }

var errNotFound = errors.New("not found")

// ways are all the ways in which a probe may end, and what they say about the
// service: nothing, or that it is not well.
var ways = []struct {
	name    string
	failure bool
	forms   []form
	end     func(a *arena, p *pipeline.Pipeline[int])
}{
	{"error", true, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		_, _ = a.call(a.Context(), p, returns(0, errBoom))
	}},
	{"panic", true, forms, func(a *arena, p *pipeline.Pipeline[int]) { a.abrupt(p, func() { panic(errBoom) }) }},
	{"Goexit", true, forms, func(a *arena, p *pipeline.Pipeline[int]) { a.abrupt(p, runtime.Goexit) }},
	{"the caller's context panics", true, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		a.abruptCaller(p, func() { panic(errBoom) })
	}},
	{"the caller's context ends the goroutine", true, forms, func(a *arena, p *pipeline.Pipeline[int]) { a.abruptCaller(p, runtime.Goexit) }},
	{"timeout", true, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		_, err := a.call(a.Context(), p, a.hangs().run)
		a.is(err, timeout.ErrExceeded)
	}},
	{"timeout in the bulkhead's queue", true, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		b, _ := a.reg.Bulkhead("x")
		b.TryAcquire()
		_, err := a.call(a.Context(), p, a.hangs().run)
		a.is(err, timeout.ErrExceeded)
		b.Release()
	}},
	{"nil stage", true, []form{staged}, func(a *arena, p *pipeline.Pipeline[int]) {
		_, err := p.ExecuteFuture(a.Context(), func(context.Context) *pipeline.Future[int] { return nil }).Get(a.Context())
		a.is(err, pipeline.ErrNilStage)
	}},
	{"ignored error", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		_, err := a.call(a.Context(), p, returns(0, errNotFound))
		a.is(err, errNotFound)
	}},
	{"the caller cancels", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		ctx, cancel := context.WithCancel(a.Context())
		r := a.start(ctx, p, a.hangs().run)
		cancel()
		_, err := r.end()
		a.is(err, context.Canceled)
	}},
	{"the caller's deadline", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		ctx, cancel := a.withTimeout(time.Second)
		defer cancel()
		_, err := a.call(ctx, p, a.hangs().run)
		a.is(err, context.DeadlineExceeded)
		a.isNot(err, timeout.ErrExceeded)
	}},
	{"the caller cancels in the bulkhead's queue", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		b, _ := a.reg.Bulkhead("x")
		b.TryAcquire()
		ctx, cancel := context.WithCancel(a.Context())
		r := a.start(ctx, p, a.hangs().run)
		cancel()
		_, err := r.end()
		a.is(err, context.Canceled)
		b.Release()
	}},
	{"the caller cancels in the limiter's queue", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		l, _ := a.reg.RateLimiter("x")
		l.TryAcquire()
		ctx, cancel := context.WithCancel(a.Context())
		r := a.start(ctx, p, a.hangs().run)
		cancel()
		_, err := r.end()
		a.is(err, context.Canceled)
	}},
	{"Cancel", false, []form{async, staged}, func(a *arena, p *pipeline.Pipeline[int]) {
		r := a.start(a.Context(), p, a.hangs().run)
		if !r.future.Cancel() {
			a.Error("Cancel did not end it")
		}
		_, err := r.end()
		a.is(err, context.Canceled)
	}},
	{"limiter", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		l, _ := a.reg.RateLimiter("x")
		if err := errors.Join(l.SetRate(1, time.Hour, 1), l.Acquire(a.Context())); err != nil {
			a.Error(err)
		}
		_, err := a.call(a.Context(), p, a.hangs().run)
		a.is(err, ratelimit.ErrLimited)
		if err := l.SetRate(1, time.Second, 1); err != nil {
			a.Error(err)
		}
		a.advance(time.Second)
	}},
	{"bulkhead", false, forms, func(a *arena, p *pipeline.Pipeline[int]) {
		b, _ := a.reg.Bulkhead("x")
		b.TryAcquire()
		first, cancel := context.WithCancel(a.Context())
		go func() { _ = b.Acquire(first) }() // in the queue, which has one place
		synctest.Wait()
		_, err := a.call(a.Context(), p, a.hangs().run)
		a.is(err, bulkhead.ErrFull)
		cancel()
		synctest.Wait()
		b.Release()
	}},
}

// probed is a stack with all that a probe can end in.
func probed(b *pipeline.Builder[int]) *pipeline.Builder[int] {
	return b.CircuitBreaker(oneSample(circuitbreaker.Ignore(errNotFound))...).
		RateLimit(ratelimit.Per(1, time.Second), ratelimit.MaxWait(time.Minute)).
		Timeout(2*time.Second).
		Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
}

// Peers have been stuck in half-open after a panic, a Goexit, or an error that
// they ignore.
func TestBreaker_C3_AProbeComesBackOnEveryWayOut(t *testing.T) {
	for _, retried := range []bool{false, true} {
		for _, way := range ways {
			name := way.name
			if retried {
				name += ", below a retry"
			}
			t.Run(name, func(t *testing.T) {
				inForms(t, way.forms, func(a *arena) {
					p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
						if retried { // a context of its own for each attempt, and another way through the code
							b.Retry(retry.MaxAttempts(3), retry.AbortIf(func(error) bool { return true }))
						}
						return probed(b)
					})
					a.halfOpen("x")
					way.end(a, p)
					b := breakerOf(a.world, "x")
					if way.failure {
						a.state("x", circuitbreaker.Open)
						a.advance(5 * time.Second)
					} else if s := b.Snapshot(); s.State != circuitbreaker.HalfOpen || s.RetryAfterMs != 0 {
						a.Errorf("the probe's place is not free: %+v", s)
					}
					a.advance(time.Second) // for the limiter
					if v, err := a.call(a.Context(), p, returns(7, nil)); v != 7 || err != nil {
						a.Errorf("the next probe: %d, %v", v, err)
					}
					a.state("x", circuitbreaker.Closed)
				})
			})
		}
	}
}

func TestBreaker_C3_AProbeComesBackWhenTheRegistryIsClosed(t *testing.T) {
	for name, taken := range map[string]func(a *arena){
		"while it waits for a permit": func(a *arena) { l, _ := a.reg.RateLimiter("x"); l.TryAcquire() },
		"while it waits for a slot": func(a *arena) {
			b, _ := a.reg.Bulkhead("x")
			b.TryAcquire()
			a.Cleanup(b.Release)
		},
		"while it runs": func(*arena) {},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", probed)
				a.halfOpen("x")
				taken(a)
				r := a.start(a.Context(), p, a.hangs().run)
				if s := breakerOf(a.world, "x").Snapshot(); s.RetryAfterMs == 0 {
					a.Errorf("no probe is out: %+v", s)
				}
				if err := a.reg.Close(); err != nil {
					a.Error(err)
				}
				_, err := r.end()
				s := breakerOf(a.world, "x").Snapshot()
				if name == "while it runs" && a.form == inline { // it keeps its deadline, and misses it
					a.is(err, timeout.ErrExceeded)
					if s.State != circuitbreaker.Open {
						a.Errorf("%+v", s)
					}
					return
				}
				a.is(err, registry.ErrClosed)
				if s.State != circuitbreaker.HalfOpen || s.RetryAfterMs != 0 {
					a.Errorf("the probe's place is not free: %+v", s)
				}
			})
		})
	}
}

// The call may end between the breaker's answer and the place where that is
// noted: a listener can do it.
func TestBreaker_C3_AProbeComesBackFromACallThatEndedMeanwhile(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		future := make(chan *pipeline.Future[int], 1)
		reg, err := registry.New(registry.WithClock(a.clock), registry.WithListener(func(_ context.Context, e policy.Event) {
			if e, ok := e.(circuitbreaker.StateChanged); ok && e.To == circuitbreaker.HalfOpen {
				(<-future).Cancel()
			}
		}))
		if err != nil {
			a.Fatal(err)
		}
		a.reg = reg
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.Constant(5 * time.Second)).CircuitBreaker(oneSample()...)
		})
		fn := a.plan(step{err: errBoom})
		r := a.start(a.Context(), p, fn.run)
		future <- r.future
		_, err = r.end()
		a.is(err, context.Canceled, errBoom)
		if s := breakerOf(a.world, "x").Snapshot(); s.State != circuitbreaker.HalfOpen || s.RetryAfterMs != 0 || fn.calls() != 1 {
			a.Errorf("the probe's place is not free: %+v after %d calls", s, fn.calls())
		}
	})
}

func TestBreaker_C3_ALateResultOfAnEarlierGenerationChangesNothing(t *testing.T) {
	for name, last := range map[string]step{
		"success": {takes: 8 * time.Second, v: 7},
		"failure": {takes: 8 * time.Second, err: errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", broken())
				old := a.start(a.Context(), p, a.plan(last).run) // while it was closed
				a.halfOpen("x")
				probe := a.start(a.Context(), p, a.plan(step{takes: 30 * time.Second, v: 1}).run)
				_, _ = old.end()
				a.state("x", circuitbreaker.HalfOpen)
				if _, err := a.call(a.Context(), p, returns(1, nil)); !errors.Is(err, circuitbreaker.ErrOpen) {
					a.Errorf("the probe's place was given twice: %v", err)
				}
				_, _ = probe.end()
				a.state("x", circuitbreaker.Closed)
			})
		})
	}
}

func TestBreaker_C3_ProbesThatAreAllOutAreReplacedAfterOpenFor(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", broken())
		a.halfOpen("x")
		lost := a.start(a.Context(), p, a.plan(step{takes: time.Hour, v: 1}).run)
		_, err := a.call(a.Context(), p, returns(2, nil))
		var refusal *circuitbreaker.Error
		if !errors.As(err, &refusal) || refusal.Wait != 5*time.Second {
			a.Errorf("%v", err)
		}
		a.advance(5 * time.Second)
		if v, err := a.call(a.Context(), p, returns(2, nil)); v != 2 || err != nil {
			a.Errorf("no new generation of probes: %d, %v", v, err)
		}
		a.state("x", circuitbreaker.Closed)
		if v, err := lost.end(); v != 1 || err != nil {
			a.Errorf("the lost probe: %d, %v", v, err)
		}
		a.state("x", circuitbreaker.Closed)
	})
}

func TestBreaker_C4_StateAndRetryAfterAreTrueToTheClock(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", broken())
		_, _ = a.call(a.Context(), p, returns(0, errBoom))
		for waited := time.Duration(0); waited < 5*time.Second; waited += time.Second {
			_, err := a.call(a.Context(), p, returns(1, nil))
			var refusal *circuitbreaker.Error
			if !errors.As(err, &refusal) || refusal.Wait != 5*time.Second-waited {
				a.Errorf("+%v: %v", waited, err)
			}
			a.advance(time.Second)
		}
		a.state("x", circuitbreaker.HalfOpen) // nobody called
		if e := heard[circuitbreaker.StateChanged](a.world); len(e) != 1 {
			a.Errorf("State published something: %v", e)
		}
		if _, err := a.call(a.Context(), p, returns(1, nil)); err != nil {
			a.Error(err)
		}
		var chain []circuitbreaker.State
		for _, e := range heard[circuitbreaker.StateChanged](a.world) {
			chain = append(chain, e.From, e.To)
		}
		want := []circuitbreaker.State{"closed", "open", "open", "half-open", "half-open", "closed"}
		if diff := cmp.Diff(want, chain); diff != "" {
			a.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// rows is what a health report has for one id.
type rows struct {
	Status    string
	Reasons   []health.Reason
	Pipelines []struct {
		Order    []string
		Fallback registry.FallbackCounts
	}
	CircuitBreakers []map[string]any
}

func (w *world) health(id string) (code int, r rows) {
	w.Helper()
	rec := httptest.NewRecorder()
	health.Handler(w.reg).ServeHTTP(rec, httptest.NewRequest("GET", "/?id="+id, nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &r); err != nil {
		w.Fatalf("%v in %s", err, rec.Body)
	}
	return rec.Code, r
}

func TestBreakerAndFallback_S4_SnapshotAndHealthRows(t *testing.T) {
	w := newWorld(t)
	p := build(w, "reports", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.CircuitBreaker(oneSample()...).
			Fallback(func(_ context.Context, err error) (int, error) {
				if policy.NotStarted(err) {
					return 1, nil
				}
				return 0, errNotFound
			})
	})
	config := map[string]any{
		"failureRatio": .5, "minCalls": 1., "window": 1., "openFor": "5s", "halfOpenCalls": 1.,
		"timeWindow": "0s", "slowCall": "0s", "slowRatio": 0., "countRejections": false,
	}
	for _, c := range []struct {
		step     string
		do       func()
		status   string
		reasons  []health.Reason
		fallback registry.FallbackCounts
		row      map[string]any
	}{
		{
			"fresh", func() {}, "pass", nil,
			registry.FallbackCounts{},
			map[string]any{"state": "closed", "failureRatio": 0., "retryAfterMs": 0., "rejected": 0.},
		},
		{
			"a failure opens it, and the fallback fails", func() { _, _ = p.Execute(t.Context(), returns(0, errBoom)) }, "warn",
			[]health.Reason{{Policy: "circuitbreaker", ID: "reports", Status: health.Warn, Text: "open: next probe in 5000 ms"}},
			registry.FallbackCounts{Applied: 1, Failed: 1},
			map[string]any{"state": "open", "failureRatio": 1., "retryAfterMs": 5000., "rejected": 0.},
		},
		{
			"a refusal, which the fallback hides", func() { w.clk.Advance(1500*time.Millisecond + 1); _, _ = p.Execute(t.Context(), returns(7, nil)) }, "warn",
			[]health.Reason{{Policy: "circuitbreaker", ID: "reports", Status: health.Warn, Text: "open: next probe in 3500 ms"}},
			registry.FallbackCounts{Applied: 2, Failed: 1},
			map[string]any{"state": "open", "failureRatio": 1., "retryAfterMs": 3500., "rejected": 1.},
		},
		{
			"the time is over", func() { w.clk.Advance(3500 * time.Millisecond) }, "pass", nil,
			registry.FallbackCounts{Applied: 2, Failed: 1},
			map[string]any{"state": "half-open", "failureRatio": 1., "retryAfterMs": 0., "rejected": 1.},
		},
		{
			"a probe closes it", func() { _, _ = p.Execute(t.Context(), returns(7, nil)) }, "pass", nil,
			registry.FallbackCounts{Applied: 2, Failed: 1},
			map[string]any{"state": "closed", "failureRatio": 0., "retryAfterMs": 0., "rejected": 1.},
		},
	} {
		c.do()
		code, got := w.health("reports")
		c.row["id"], c.row["config"] = "reports", config
		if c.reasons == nil {
			c.reasons = []health.Reason{}
		}
		want := rows{Status: c.status, Reasons: c.reasons, CircuitBreakers: []map[string]any{c.row}}
		want.Pipelines = append(want.Pipelines, struct {
			Order    []string
			Fallback registry.FallbackCounts
		}{[]string{"fallback", "circuitbreaker"}, c.fallback})
		if diff := cmp.Diff(want, got); diff != "" || code != 200 {
			t.Errorf("%s: %d (-want +got)\n%s", c.step, code, diff)
		}
	}
	if c := w.calls("reports"); c.Failed != 1 || c.Succeeded != 2 {
		t.Errorf("S-5: %+v", c)
	}
}
