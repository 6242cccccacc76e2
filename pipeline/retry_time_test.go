package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// counted checks how the only call of "x" was counted.
func (a *arena) counted(want string) {
	a.Helper()
	n := a.calls("x")
	got := map[string]uint64{
		"succeeded": n.Succeeded, "failed": n.Failed, "timedOut": n.TimedOut,
		"cancelled": n.Cancelled, "rejected": n.Rejected, "panicked": n.Panicked,
	}
	if n.Started != 1 || got[want] != 1 {
		a.Errorf("S-5: want one call %s, got %+v", want, n)
	}
}

// gaveUp returns the retry's error, and checks that it is the outermost one.
func (a *arena) gaveUp(err error) *retry.Error {
	a.Helper()
	re, ok := err.(*retry.Error) //nolint:errorlint // R-13: it is the error itself
	if !ok {
		a.Fatalf("R-13: got %T %v, want a *retry.Error", err, err)
	}
	return re
}

// 500 ms are left of a total; three attempts of 300 ms each do not fit in.
func TestRetry_Seed1_R8_WhatIsLeftBoundsTheAttempts(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay time.Duration
		began []time.Duration
		ends  time.Duration
		cut   bool // the last attempt
	}{
		{"no delay", 0, []time.Duration{0, 300 * ms}, 500 * ms, true},
		{"delays use up the same budget", 150 * ms, []time.Duration{0, 450 * ms}, 500 * ms, true},
		{"no attempt that cannot begin", 200 * ms, []time.Duration{0}, 300 * ms, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Retry(retry.MaxAttempts(3), retry.Constant(c.delay), retry.MaxDuration(500*ms)).Timeout(300 * ms)
				})
				fn := a.plan(step{takes: s})
				_, err := a.call(a.Context(), p, fn.run)
				if diff := cmp.Diff(c.began, fn.began()); diff != "" {
					a.Error(diff)
				}
				if a.at() != c.ends {
					a.Errorf("ended at %v, want %v", a.at(), c.ends)
				}
				a.is(err, retry.ErrOutOfTime, context.DeadlineExceeded)
				a.counted("timedOut")
				re := a.gaveUp(err)
				if re.Attempts != len(c.began) || re.Elapsed != c.ends || !re.Started() {
					a.Errorf("%#v", re)
				}
				a.is(context.Cause(fn.ctx(1)), timeout.ErrExceeded)
				if c.cut {
					last := fn.ctx(len(c.began))
					a.is(context.Cause(last), retry.ErrOutOfTime)
					a.is(last.Err(), context.DeadlineExceeded)
					if end, ok := last.Deadline(); !ok || end.Sub(a.begun) != c.ends {
						a.Errorf("T-11: the last attempt's deadline is %v", end.Sub(a.begun))
					}
				}
				if n := a.reg.Snapshot().Timeouts[0].TimedOut; n != 1 {
					a.Errorf("%d attempts timed out, want 1", n)
				}
				if n := a.reg.Snapshot().Retries[0].OutOfTime; n != 1 {
					a.Errorf("out of time %d times, want 1", n)
				}
			})
		})
	}
}

func TestField_RE10_R8_TheOuterLimitEndsTheAttempts(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(10), retry.Constant(0), retry.MaxDuration(500*ms)).Timeout(s)
		})
		fn := a.plan(step{takes: 300 * ms, err: errBoom})
		_, err := a.call(a.Context(), p, fn.run)
		if a.at() != 500*ms {
			a.Errorf("ended at %v", a.at())
		}
		a.is(err, retry.ErrOutOfTime)
		a.isNot(err, timeout.ErrExceeded)
		a.is(context.Cause(fn.ctx(2)), retry.ErrOutOfTime)
		if last := a.gaveUp(err).Last; a.form == inline { // the second attempt has said something, too
			a.is(last, context.DeadlineExceeded)
		} else if last != errBoom { //nolint:errorlint // unchanged
			a.Errorf("last error %v", last)
		}
		a.counted("timedOut")
		a.advance(5 * s)
		if n := fn.calls(); n != 2 {
			a.Errorf("%d attempts, want 2", n)
		}
		if n := a.reg.Snapshot().Timeouts[0].TimedOut; n != 0 {
			a.Errorf("the timeout counts %d", n)
		}
	})
}

func TestRetry_R8_EqualDeadlinesAreTheTimeouts(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(3), retry.Constant(0), retry.MaxDuration(500*ms)).Timeout(500 * ms)
		})
		fn := a.plan(step{takes: s})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, timeout.ErrExceeded, retry.ErrOutOfTime) // the attempt's; and no time for another
		a.is(context.Cause(fn.ctx(1)), timeout.ErrExceeded)
		if n := a.reg.Snapshot().Timeouts[0].TimedOut; n != 1 || fn.calls() != 1 {
			a.Errorf("timed out %d, calls %d", n, fn.calls())
		}
	})
}

func TestRetry_R8_MaxDurationWithoutATimeoutLayer(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.MaxDuration(500*ms)))
		fn := a.plan(step{takes: 800 * ms, deaf: true, v: 7})
		r := a.start(a.Context(), p, fn.run)
		_, err := r.end()
		want := 500 * ms
		if a.form == inline {
			want = 800 * ms // T-3
		}
		if r.over != want {
			a.Errorf("ended at %v, want %v", r.over, want)
		}
		a.is(err, retry.ErrOutOfTime, context.DeadlineExceeded)
		a.isNot(err, timeout.ErrExceeded)
		a.counted("timedOut")
		a.advance(s)
		// A stage that was cancelled keeps its value.
		if n := a.pipeline("x").Abandoned.LateSuccess; n != 1 {
			a.Errorf("%d late successes", n)
		}
	})
}

// The attempt's context knows, when it is cut, by what.
func TestRetry_R8_AStageThatIsCutKnowsByWhat(t *testing.T) {
	inForms(t, []form{staged}, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(3), retry.Constant(0), retry.MaxDuration(s)).Timeout(900 * ms)
		})
		promise := pipeline.NewPromise[int]()
		var seen context.Context
		f := p.ExecuteFuture(a.Context(), func(ctx context.Context) *pipeline.Future[int] {
			seen = ctx
			if a.manual != nil {
				a.manual.Advance(500 * ms) // before the timeout starts
			} else {
				_ = a.clock.Sleep(context.Background(), 500*ms)
			}
			return promise.Future()
		})
		a.advance(500*ms - 1)
		if _, done, _ := f.Poll(); done {
			a.Error("ended early")
		}
		a.advance(1)
		_, done, err := f.Poll()
		if !done {
			a.Fatal("not cut at MaxDuration")
		}
		a.is(err, retry.ErrOutOfTime)
		a.isNot(err, timeout.ErrExceeded)
		a.is(context.Cause(seen), retry.ErrOutOfTime)
		a.isNot(context.Cause(seen), timeout.ErrExceeded)
	})
}

func TestRetry_R8_R9_ReserveIsKeptBack(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.MaxAttempts(3), retry.Constant(50*ms), retry.MaxDuration(500*ms), retry.Reserve(100*ms)))
		fn := a.plan(step{takes: 200 * ms, err: errBoom})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, retry.ErrOutOfTime)
		if diff := cmp.Diff([]time.Duration{0, 250 * ms}, fn.began()); diff != "" {
			a.Error(diff)
		}
		if a.at() != 400*ms {
			a.Errorf("ended at %v, want what MaxDuration leaves less the reserve", a.at())
		}
	})
}

func TestRetry_R9_ADelayThatDoesNotFitIsNotSlept(t *testing.T) {
	const takes, delay = 100 * ms, 200 * ms
	for _, c := range []struct {
		name    string
		max     time.Duration // MaxDuration
		callers time.Duration // the caller's deadline
		reserve time.Duration
		calls   int
		counted string
	}{
		{"exactly MaxDuration", takes + delay, 0, 0, 1, "timedOut"},
		{"a nanosecond less", takes + delay + 1, 0, 0, 2, "timedOut"},
		{"MaxDuration less Reserve", takes + delay + 10*ms, 0, 10 * ms, 1, "timedOut"},
		{"exactly the caller's deadline", 0, takes + delay, 0, 1, "cancelled"},
		{"a nanosecond less than the caller's deadline", 0, takes + delay + 1, 0, 2, "cancelled"},
		{"the caller's deadline less Reserve", 0, takes + delay + 10*ms, 10 * ms, 1, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				opts := []retry.Option{retry.MaxAttempts(5), retry.Constant(delay), retry.Reserve(c.reserve)}
				if c.max > 0 {
					opts = append(opts, retry.MaxDuration(c.max))
				}
				p := build(a.world, "x", retrying(opts...))
				ctx := a.Context()
				if c.callers > 0 {
					var cancel context.CancelFunc
					ctx, cancel = a.withTimeout(c.callers)
					defer cancel()
				}
				fn := a.plan(step{takes: takes, err: errBoom})
				_, err := a.call(ctx, p, fn.run)
				if n := fn.calls(); n != c.calls {
					a.Errorf("%d calls, want %d", n, c.calls)
				}
				a.is(err, context.DeadlineExceeded)
				a.counted(c.counted)
				if c.calls > 1 { // and the second one is cut, as its own error may say
					return
				}
				a.is(err, errBoom, retry.ErrOutOfTime)
				if a.at() != takes {
					a.Errorf("ended at %v: it slept", a.at())
				}
				if n := len(heard[retry.Retrying](a.world)); n != 0 {
					a.Errorf("%d retries", n)
				}
			})
		})
	}
}

// hinted is an error that knows when to come again.
type hinted struct{ after time.Duration }

func (h *hinted) Error() string             { return "come again in " + h.after.String() }
func (h *hinted) RetryAfter() time.Duration { return h.after }

func TestField_RE06_R10_AskedForWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  []retry.Option
		hint  time.Duration
		slept []time.Duration
		why   error
	}{
		{"longer than the budget", []retry.Option{retry.Constant(s), retry.MaxDuration(15 * time.Minute), retry.MaxDelay(0)}, 30 * time.Minute, nil, retry.ErrOutOfTime},
		{"capped by MaxDelay", []retry.Option{retry.Constant(s), retry.MaxDelay(30 * s)}, 24 * time.Hour, []time.Duration{30 * s, 30 * s}, retry.ErrExhausted},
		{"shorter than the backoff", []retry.Option{retry.Constant(3 * s)}, s, []time.Duration{3 * s, 3 * s}, retry.ErrExhausted},
		{"longer than the backoff", []retry.Option{retry.Constant(s)}, 3 * s, []time.Duration{3 * s, 3 * s}, retry.ErrExhausted},
		{"nothing", []retry.Option{retry.Constant(s)}, -1, []time.Duration{s, s}, retry.ErrExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", retrying(c.opts...))
				hint := &hinted{c.hint}
				fn := a.plan(step{err: errors.Join(errBoom, hint)})
				_, err := a.call(a.Context(), p, fn.run)
				var slept []time.Duration
				for _, e := range heard[retry.Retrying](a.world) {
					slept = append(slept, e.Delay)
				}
				if diff := cmp.Diff(c.slept, slept); diff != "" {
					a.Error(diff)
				}
				if n := fn.calls(); n != len(c.slept)+1 {
					a.Errorf("%d calls", n)
				}
				a.is(err, c.why, hint)
			})
		})
	}
}

func TestRetry_R11_Conform_16_CancelledInBackoff(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.MaxAttempts(5), retry.Constant(10*s)))
		ctx, cancel := context.WithCancelCause(a.Context())
		gone := errors.New("the client went away")
		fn := a.plan(step{takes: s, err: errBoom})
		r := a.start(ctx, p, fn.run)
		a.advance(3 * s)
		cancel(gone)
		if !r.ended() {
			a.Fatal("not at once")
		}
		a.is(r.err, context.Canceled, gone, errBoom)
		a.isNot(r.err, retry.ErrExhausted)
		re := a.gaveUp(r.err)
		if re.Attempts != 1 || re.Last != errBoom || !errors.Is(re.Reason, context.Canceled) || re.Elapsed != 2*s { //nolint:errorlint // unchanged
			a.Errorf("%#v", re)
		}
		if n := fn.calls(); n != 1 {
			a.Errorf("%d calls", n)
		}
		a.counted("cancelled")
	})
}

func TestRetry_R11_CancelledInTheWaitOfALaterAttempt(t *testing.T) {
	for name, layer := range map[string]layers{
		"limiter": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.RateLimit(ratelimit.Per(1, 10*s), ratelimit.MaxWait(time.Minute))
		},
		"queue": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(5))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return layer(b.Retry(retry.MaxAttempts(5), retry.Constant(s)))
				})
				ctx, cancel := context.WithCancel(a.Context())
				fn := a.plan(step{err: errBoom})
				r := a.start(ctx, p, fn.run)
				slots, _ := a.reg.Bulkhead("x")
				if slots != nil && !slots.TryAcquire() {
					a.Fatal("R-11, O-4: a slot is held in the backoff")
				}
				a.advance(2 * s)
				if r.ended() || fn.calls() != 1 {
					a.Fatalf("it does not wait: %v, %d calls", r.err, fn.calls())
				}
				cancel()
				if !r.ended() {
					a.Fatal("not at once")
				}
				if slots != nil {
					slots.Release()
				}
				a.is(r.err, context.Canceled, errBoom)
				_ = a.gaveUp(r.err)
				a.counted("cancelled")
				if n := fn.calls(); n != 1 {
					a.Errorf("%d calls", n)
				}
			})
		})
	}
}

func TestRetry_R12_Conform_16_AGoodValueWinsOverTheCallersEnd(t *testing.T) {
	inForms(t, []form{inline}, func(a *arena) { // a future has ended by then
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(3), retry.Constant(s)).Timeout(10 * s)
		})
		ctx, cancel := context.WithCancel(a.Context())
		v, err := a.call(ctx, p, func(context.Context) (int, error) { cancel(); return 7, nil })
		if v != 7 || err != nil {
			a.Errorf("got %d, %v", v, err)
		}
		a.counted("succeeded")
	})
}

func TestConform_16_CancelledBeforeAndDuringAnAttempt(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.MaxAttempts(5), retry.Constant(s)))
		ctx, cancel := context.WithCancel(a.Context())
		fn := a.plan(step{takes: s, deaf: true, err: errBoom})
		r := a.start(ctx, p, fn.run)
		cancel()
		_, err := r.end()
		a.is(err, context.Canceled)
		if a.form == inline {
			a.is(err, errBoom)
		}
		a.counted("cancelled")
		_, err = a.call(ctx, p, fn.run)
		a.is(err, context.Canceled)
		a.advance(10 * s)
		if n := fn.calls(); n != 1 {
			a.Errorf("%d calls", n)
		}
		if n := a.reg.Snapshot().Retries[0].Retries; n != 0 {
			a.Errorf("%d retries", n)
		}
	})
}

func TestRetry_R16_UnlimitedAttemptsObey(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.Unlimited(), retry.Constant(100*ms), retry.MaxDuration(s)))
		fn := a.plan(step{err: errBoom})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, retry.ErrOutOfTime, errBoom)
		if n := fn.calls(); n != 10 || a.at() != 900*ms {
			a.Errorf("R-8, R-9: %d calls until %v", n, a.at())
		}
		fn = a.plan(step{err: errBoom}, step{err: retry.Permanent(errBoom)})
		_, err = a.call(a.Context(), p, fn.run)
		if n := fn.calls(); n != 2 || errors.As(err, new(*retry.Error)) {
			a.Errorf("R-3: %d calls, %v", n, err)
		}
		ctx, cancel := a.withTimeout(250 * ms)
		defer cancel()
		fn = a.plan(step{err: errBoom})
		_, err = a.call(ctx, p, fn.run)
		a.is(err, retry.ErrOutOfTime)
		if n := fn.calls(); n != 3 {
			a.Errorf("R-9: %d calls", n)
		}
	})
}

func TestConform_6_MaxDurationStopsManyRetries(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.MaxAttempts(1000), retry.Constant(0), retry.MaxDuration(s)))
		fn := a.plan(step{takes: 100 * ms, deaf: true, err: errBoom})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, retry.ErrOutOfTime, errBoom)
		if n := fn.calls(); n != 10 || a.at() != s {
			a.Errorf("%d calls until %v", n, a.at())
		}
	})
}

func TestConform_32_RetryOfTimeouts(t *testing.T) {
	for _, c := range []struct {
		name   string
		step   step
		is     []error
		isNot  error
		ends   time.Duration
		counts string
	}{
		{"timeout", step{takes: s}, []error{timeout.ErrExceeded, retry.ErrExhausted}, errBoom, s, "timedOut"},
		{"error", step{takes: 10 * ms, err: errBoom}, []error{errBoom, retry.ErrExhausted}, timeout.ErrExceeded, 20 * ms, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Timeout(500*ms).Retry(retry.MaxAttempts(2), retry.Constant(0))
				})
				fn := a.plan(c.step)
				_, err := a.call(a.Context(), p, fn.run)
				a.is(err, c.is...)
				a.isNot(err, c.isNot)
				if n := fn.calls(); n != 2 || a.at() != c.ends {
					a.Errorf("%d calls until %v", n, a.at())
				}
				a.counted(c.counts)
			})
		})
	}
}

func TestConform_33_TimeoutsThatTheRulesDoNotRetry(t *testing.T) {
	for name, rule := range map[string]retry.Option{
		"On without it": retry.On(errBoom), "AbortOn with it": retry.AbortOn(timeout.ErrExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Timeout(500*ms).Retry(retry.MaxAttempts(2), retry.Constant(0), rule)
				})
				fn := a.plan(step{takes: s})
				_, err := a.call(a.Context(), p, fn.run)
				a.is(err, timeout.ErrExceeded)
				if n := fn.calls(); n != 1 || a.at() != 500*ms {
					a.Errorf("%d calls until %v", n, a.at())
				}
				a.counted("timedOut")
			})
		})
	}
}
