package pipeline_test

import (
	"context"
	"errors"
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
)

// oneSample are the options of a breaker that the first failure opens.
func oneSample(more ...circuitbreaker.Option) []circuitbreaker.Option {
	return append([]circuitbreaker.Option{circuitbreaker.CountWindow(1), circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(5 * time.Second)}, more...)
}

// broken is a pipeline with such a breaker and nothing else.
func broken(more ...circuitbreaker.Option) layers {
	return func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.CircuitBreaker(oneSample(more...)...) }
}

func breakerOf(w *world, id string) *circuitbreaker.Policy {
	w.Helper()
	b, ok := w.reg.CircuitBreaker(id)
	if !ok {
		w.Fatalf("no breaker %q", id)
	}
	return b
}

func (w *world) state(id string, want circuitbreaker.State) {
	w.Helper()
	if got := breakerOf(w, id).State(); got != want {
		w.Errorf("+%v: the breaker %s is %s, want %s", w.at(), id, got, want)
	}
}

// trip opens a breaker that the first failure opens.
func (w *world) trip(id string) {
	w.Helper()
	permit, err := breakerOf(w, id).Allow()
	if err != nil {
		w.Fatal(err)
	}
	permit.Failure()
	w.state(id, circuitbreaker.Open)
}

// which says of each error which of the sentinels it matches: the first, by name.
func which(errs []error) (names []string) {
	for _, err := range errs {
		switch {
		case err == nil:
			names = append(names, "ok")
		case errors.Is(err, circuitbreaker.ErrOpen):
			names = append(names, "open")
		case errors.Is(err, bulkhead.ErrFull):
			names = append(names, "full")
		case errors.Is(err, errBoom):
			names = append(names, "E")
		default:
			names = append(names, err.Error())
		}
	}
	return names
}

func TestConform_62_BreakerC1_FourFailuresAtThreeQuartersOpen(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.CircuitBreaker(circuitbreaker.CountWindow(4), circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(.75), circuitbreaker.OpenFor(time.Hour))
		})
		fn := a.plan(step{err: errBoom})
		var got []error
		for range 7 {
			_, err := a.call(a.Context(), p, fn.run)
			got = append(got, err)
		}
		if diff := cmp.Diff([]string{"E", "E", "E", "E", "open", "open", "open"}, which(got)); diff != "" {
			a.Errorf("(-want +got)\n%s", diff)
		}
		if n := fn.calls(); n != 4 {
			a.Errorf("the function was entered %d times, want 4", n)
		}
		var refusal *circuitbreaker.Error
		if !errors.As(got[6], &refusal) || refusal.Instance != "x" || refusal.RetryAfter() != time.Hour || !policy.NotStarted(got[6]) {
			a.Errorf("C-4: the refusal is %#v", refusal)
		}
		if c := a.calls("x"); c.Failed != 4 || c.Rejected != 3 {
			a.Errorf("S-5: %+v", c)
		}
	})
}

func TestConform_64_BreakerR3_AnOpenBreakerIsRetriedOnlyIfNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		rules   []retry.Option
		retried bool
	}{
		{"by default not", nil, false},
		{"AbortOn", []retry.Option{retry.AbortOn(circuitbreaker.ErrOpen), retry.On(circuitbreaker.ErrOpen)}, false},
		{"a predicate does not name it", []retry.Option{retry.If(func(error) bool { return true })}, false},
		{"On names it", []retry.Option{retry.On(circuitbreaker.ErrOpen)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				opts := append([]retry.Option{retry.MaxAttempts(21), retry.Constant(100 * time.Millisecond)}, c.rules...)
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Retry(opts...).CircuitBreaker(oneSample(circuitbreaker.OpenFor(time.Second))...)
				})
				a.trip("x")
				fn := a.plan(step{v: 7})
				v, err := a.call(a.Context(), p, fn.run)
				if c.retried { // the breaker says when to come back
					if v != 7 || err != nil || a.at() != time.Second {
						a.Errorf("%d, %v at +%v, want 7 at +1s", v, err, a.at())
					}
					return
				}
				a.is(err, circuitbreaker.ErrOpen)
				a.isNot(err, retry.ErrExhausted)
				if a.at() != 0 || fn.calls() != 0 || !policy.NotStarted(err) {
					a.Errorf("at +%v, %d calls: %v", a.at(), fn.calls(), err)
				}
				if n := a.calls("x").Rejected; n != 1 {
					a.Errorf("rejected %d", n)
				}
			})
		})
	}
}

func TestConform_66_BreakerC2_WhetherAFullBulkheadOpens(t *testing.T) {
	for _, c := range []struct {
		name   string
		count  []circuitbreaker.Option
		queued []bulkhead.Option
		holds  int
		want   []string
	}{
		{"(1, none) counted", []circuitbreaker.Option{circuitbreaker.CountRejections()}, nil, 1, []string{"full", "full", "full", "open", "open"}},
		{"(1, 1) counted", []circuitbreaker.Option{circuitbreaker.CountRejections()}, []bulkhead.Option{bulkhead.Queue(1)}, 2, []string{"full", "full", "full", "open", "open"}},
		{"(1, 1) by default", nil, []bulkhead.Option{bulkhead.Queue(1)}, 2, []string{"full", "full", "full", "full", "full"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.CircuitBreaker(append(c.count, circuitbreaker.CountWindow(3), circuitbreaker.MinCalls(3), circuitbreaker.FailureRatio(1), circuitbreaker.OpenFor(time.Hour))...).
						Bulkhead(append(c.queued, bulkhead.MaxConcurrent(1))...)
				})
				holds := a.plan(step{takes: time.Second, v: 7})
				var holders []*running
				for range c.holds {
					holders = append(holders, a.start(a.Context(), p, holds.run))
				}
				var got []error
				for range c.want {
					_, err := a.call(a.Context(), p, returns(0, nil))
					got = append(got, err)
				}
				if diff := cmp.Diff(c.want, which(got)); diff != "" {
					a.Errorf("(-want +got)\n%s", diff)
				}
				for _, r := range holders {
					if v, err := r.end(); v != 7 || err != nil {
						a.Errorf("a holder: %d, %v", v, err)
					}
				}
			})
		})
	}
}

// Without On the open breaker ends the retry at once; a delay below the rest of
// the open time takes a MaxDelay, since the breaker's own hint is honored.
func TestConform_67_BreakerR13_ARetryThatMeetsItsBreaker(t *testing.T) {
	named := retry.On(errBoom, circuitbreaker.ErrOpen)
	for _, c := range []struct {
		name     string
		rules    []retry.Option
		openFor  time.Duration
		ok       bool
		calls    int
		attempts int
		is       []error
	}{
		{"by default", nil, 100 * time.Millisecond, false, 5, 6, []error{circuitbreaker.ErrOpen, errBoom}},
		{"retried too fast", []retry.Option{named, retry.MaxDelay(time.Millisecond)}, 100 * time.Millisecond, false, 5, 11, []error{circuitbreaker.ErrOpen, errBoom, retry.ErrExhausted}},
		{"retried when the breaker says so", []retry.Option{named}, 100 * time.Millisecond, true, 6, 7, nil},
		{"never open", []retry.Option{named}, 0, true, 6, 6, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Retry(append([]retry.Option{retry.MaxAttempts(11), retry.Constant(0)}, c.rules...)...).
						CircuitBreaker(circuitbreaker.CountWindow(5), circuitbreaker.MinCalls(5), circuitbreaker.FailureRatio(1), circuitbreaker.OpenFor(c.openFor))
				})
				fn := a.fails(5)
				v, err := a.call(a.Context(), p, fn.run)
				if n := fn.calls(); n != c.calls {
					a.Errorf("%d calls, want %d", n, c.calls)
				}
				if retries := a.reg.Snapshot().Retries[0].Retries; int(retries) != c.attempts-1 {
					a.Errorf("%d attempts, want %d", retries+1, c.attempts)
				}
				if c.ok {
					if v != 7 || err != nil {
						a.Errorf("%d, %v", v, err)
					}
					return
				}
				a.is(err, c.is...)
				var gaveUp *retry.Error
				if !errors.As(err, &gaveUp) || gaveUp.Attempts != c.attempts || gaveUp.Last != errBoom || !gaveUp.Started() { //nolint:errorlint // the very error
					a.Errorf("%#v", gaveUp)
				}
				if n := a.calls("x").Rejected; n != 1 {
					a.Errorf("S-5: a final refusal is %+v", a.calls("x"))
				}
			})
		})
	}
}

func TestBreaker_C2_ATimeoutIsAFailureAtTheInstantItWins(t *testing.T) {
	for name, opts := range map[string][]circuitbreaker.Option{
		"plain":                 nil,
		"ignoring it is no way": {circuitbreaker.Ignore(timeout.ErrExceeded, context.DeadlineExceeded)},
	} {
		for _, retried := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inEveryForm(t, func(a *arena) {
					p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
						if retried {
							b.Retry(retry.MaxAttempts(2))
						}
						return b.Timeout(2 * time.Second).CircuitBreaker(oneSample(append(opts, circuitbreaker.OpenFor(time.Hour))...)...)
					})
					fn := a.plan(step{takes: 5 * time.Second, deaf: true, v: 7}) // ignores its context
					r := a.start(a.Context(), p, fn.run)
					a.advance(2*time.Second - 1)
					a.state("x", circuitbreaker.Closed)
					a.advance(1)
					a.state("x", circuitbreaker.Open)
					if ended := r.ended(); ended && a.form == inline {
						a.Error("the function has returned already")
					}
					a.advance(4 * time.Second)
					_, err := r.end()
					a.is(err, timeout.ErrExceeded)
					a.state("x", circuitbreaker.Open) // its late success changes nothing
					if e := heard[circuitbreaker.StateChanged](a.world); len(e) != 1 {
						a.Errorf("%v", e)
					}
				})
			})
		}
	}
}

// One attempt is one sample, also if its function comes back after the deadline.
func TestBreaker_C2_ATimeoutIsOneSampleWhateverComesLater(t *testing.T) {
	for name, last := range map[string]step{
		"value": {takes: 3 * time.Second, deaf: true, v: 1},
		"error": {takes: 3 * time.Second, deaf: true, err: errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Timeout(2*time.Second).CircuitBreaker(circuitbreaker.CountWindow(4), circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(.25))
				})
				_, _ = a.call(a.Context(), p, a.plan(last).run)
				a.advance(3 * time.Second)
				for range 2 {
					if _, err := a.call(a.Context(), p, returns(1, nil)); err != nil {
						a.Error(err)
					}
					a.state("x", circuitbreaker.Closed) // two or three samples are not enough
				}
				_, _ = a.call(a.Context(), p, returns(1, nil))
				a.state("x", circuitbreaker.Open) // the fourth: one in four failed
			})
		})
	}
}

func TestBreaker_C2_RefusalsBehindItAreNoSamplesUnlessCounted(t *testing.T) {
	limited := func(opts ...ratelimit.Option) layers {
		return func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.RateLimit(append(opts, ratelimit.Per(1, time.Hour))...)
		}
	}
	occupied := func(opts ...bulkhead.Option) layers {
		return func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(append(opts, bulkhead.MaxConcurrent(1))...)
		}
	}
	for _, c := range []struct {
		name   string
		layers layers
		is     error
	}{
		{"limiter", limited(), ratelimit.ErrLimited},
		{"limiter, the wait is too long", limited(ratelimit.MaxWait(time.Minute)), ratelimit.ErrLimited},
		{"bulkhead", occupied(), bulkhead.ErrFull},
		{"bulkhead, after a wait", occupied(bulkhead.MaxWait(time.Second)), bulkhead.ErrFull},
	} {
		for _, counted := range []bool{false, true} {
			name, want, opts := c.name, circuitbreaker.Closed, oneSample()
			if counted {
				name, want, opts = name+", counted", circuitbreaker.Open, oneSample(circuitbreaker.CountRejections())
			}
			t.Run(name, func(t *testing.T) {
				inEveryForm(t, func(a *arena) {
					p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
						return c.layers(b).CircuitBreaker(opts...)
					})
					if l, ok := a.reg.RateLimiter("x"); ok {
						l.TryAcquire()
					}
					if b, ok := a.reg.Bulkhead("x"); ok {
						b.TryAcquire()
						defer b.Release()
					}
					_, err := a.call(a.Context(), p, returns(7, nil))
					a.is(err, c.is)
					a.state("x", want)
				})
			})
		}
	}
}

func TestBreaker_C2_FailIfLooksAtValues(t *testing.T) {
	errNotFound := errors.New("not found")
	for _, c := range []struct {
		name  string
		step  step
		state circuitbreaker.State
		asked int
	}{
		{"a bad value", step{v: 503}, circuitbreaker.Open, 1},
		{"a good value", step{v: 200}, circuitbreaker.Closed, 1},
		{"an error that is none to it", step{v: 200, err: errBoom}, circuitbreaker.Closed, 1},
		{"an error that is ignored", step{v: 503, err: errNotFound}, circuitbreaker.Closed, 0},
		{"a panic of its own, with a value", step{v: -1}, circuitbreaker.Closed, 1},
		{"a panic of its own, with an error", step{v: -1, err: errBoom}, circuitbreaker.Open, 1},
		{"a timeout", step{takes: 3 * time.Second, v: 200}, circuitbreaker.Open, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				asked := 0
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.CircuitBreaker(oneSample(circuitbreaker.Ignore(errNotFound))...).Timeout(2 * time.Second).
						FailIf(func(v int, _ error) bool {
							asked++
							if v < 0 {
								panic("FailIf")
							}
							return v >= 500
						})
				})
				v, err := a.call(a.Context(), p, a.plan(c.step).run)
				if c.step.takes == 0 && (v != c.step.v || err != c.step.err) { //nolint:errorlint // the very error
					a.Errorf("FailIf changed the result: %d, %v", v, err)
				}
				a.state("x", c.state)
				if asked != c.asked {
					a.Errorf("asked %d times, want %d", asked, c.asked)
				}
				if e := heard[policy.CallbackPanic](a.world); len(e) > 1 || (len(e) == 1) != (c.step.v < 0) {
					a.Errorf("X-3: %v", e)
				}
			})
		})
	}
}

// FailIf is for the samples; what the caller gets and the retry does is another
// matter.
func TestBreaker_O2_EveryAttemptIsASample(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(3), retry.Constant(time.Second)).
				CircuitBreaker(circuitbreaker.CountWindow(3), circuitbreaker.MinCalls(3), circuitbreaker.FailureRatio(.6), circuitbreaker.OpenFor(time.Hour))
		})
		if v, err := a.call(a.Context(), p, a.fails(2).run); v != 7 || err != nil {
			a.Errorf("%d, %v", v, err)
		}
		a.state("x", circuitbreaker.Open) // two of three failed
	})
}

func TestBreaker_G1_OneInstanceForPipelinesOfDifferentTypes(t *testing.T) {
	w := newWorld(t)
	shared := append(oneSample(), circuitbreaker.Name("db"))
	rows := build(w, "rows", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.CircuitBreaker(shared...) })
	names, err := pipeline.New[string](w.reg, "names").CircuitBreaker(circuitbreaker.Name("db")).
		FailIf(func(v string, _ error) bool { return v == "" }).Build()
	if err != nil {
		t.Fatal(err)
	}
	bytes := pipeline.As[[]byte](names) // without the hook

	call := func() (errs []error) {
		_, err := rows.Execute(t.Context(), returns(1, nil))
		errs = append(errs, err)
		_, err = names.Execute(t.Context(), func(context.Context) (string, error) { return "x", nil })
		errs = append(errs, err)
		_, err = bytes.Execute(t.Context(), func(context.Context) ([]byte, error) { return nil, nil })
		return append(errs, err)
	}
	if diff := cmp.Diff([]string{"ok", "ok", "ok"}, which(call())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := names.Execute(t.Context(), func(context.Context) (string, error) { return "", nil }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"open", "open", "open"}, which(call())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w.clk.Advance(5 * time.Second)
	if diff := cmp.Diff([]string{"ok", "ok", "ok"}, which(call())); diff != "" {
		t.Errorf("the probe of one closes it for all (-want +got)\n%s", diff)
	}
	s := w.reg.Snapshot().CircuitBreakers
	if len(s) != 1 || s[0].ID != "db" || s[0].Rejected != 3 {
		t.Errorf("%+v", s)
	}
}
