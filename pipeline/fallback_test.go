package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// stand is a fallback that notes what it was asked for.
type stand struct {
	v     int
	err   error
	asked []error
	ctxs  []context.Context
}

func (f *stand) in(ctx context.Context, err error) (int, error) {
	f.asked, f.ctxs = append(f.asked, err), append(f.ctxs, ctx)
	return f.v, f.err
}

// fellBack checks the counters of x and that each application was published.
func (w *world) fellBack(applied, failed uint64) {
	w.Helper()
	if got, want := w.pipeline("x").Fallback, (registry.FallbackCounts{Applied: applied, Failed: failed}); got != want {
		w.Errorf("counted %+v, want %+v", got, want)
	}
	if n := len(heard[fallback.Applied](w)); n != int(applied) {
		w.Errorf("%d events, want %d", n, applied)
	}
}

func TestConform_35_Fallback_ATimeoutWithAFallback(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		f := stand{v: 9}
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(500 * time.Millisecond).Fallback(f.in)
		})
		fn := a.plan(step{takes: time.Second, deaf: a.form != inline, v: 7}) // blocked; inline there is no way out but its own
		r := a.start(a.Context(), p, fn.run)
		if v, err := r.end(); v != 9 || err != nil {
			a.Errorf("%d, %v", v, err)
		}
		if r.over != 500*time.Millisecond {
			a.Errorf("at +%v, want +500ms", r.over)
		}
		a.advance(time.Second) // the blocked one ends
		a.fellBack(1, 0)
		if c := a.calls("x"); c.Succeeded != 1 || c.TimedOut != 0 {
			a.Errorf("S-5: %+v", c)
		}
	})
}

func TestConform_68_FallbackO7_OnceAfterTheLastAttempt(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers layers
		step   step
		calls  int
		is     []error
	}{
		{"no retry", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Minute) }, step{err: errBoom}, 1, []error{errBoom}},
		{"retries=1", retrying(retry.MaxAttempts(2)), step{err: errBoom}, 2, []error{errBoom, retry.ErrExhausted}},
		{"retries=2", retrying(retry.MaxAttempts(3)), step{err: errBoom}, 3, []error{errBoom, retry.ErrExhausted}},
		{"retries=1, limit 500, slow", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(2)).Timeout(500 * time.Millisecond)
		}, step{takes: time.Second}, 2, []error{timeout.ErrExceeded, retry.ErrExhausted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				f := stand{v: 9}
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return c.layers(b).Fallback(f.in) })
				fn := a.plan(c.step)
				if v, err := a.call(a.Context(), p, fn.run); v != 9 || err != nil {
					a.Errorf("%d, %v", v, err)
				}
				if n := fn.calls(); n != c.calls || len(f.asked) != 1 {
					a.Fatalf("%d calls, want %d; the fallback was asked %d times", n, c.calls, len(f.asked))
				}
				a.is(f.asked[0], c.is...)
				a.fellBack(1, 0)
				if e := heard[fallback.Applied](a.world); e[0].Err != f.asked[0] || e[0].ID() != "x" || e[0].Policy() != "fallback" { //nolint:errorlint // the very error
					a.Errorf("%+v", e)
				}
			})
		})
	}
}

func TestConform_69_FallbackS5_Counters(t *testing.T) {
	errSkipped := errors.New("skipped")
	for _, c := range []struct {
		name   string
		step   step
		failed error
		ok     bool
		is     []error
		counts registry.FallbackCounts
		calls  registry.CallCounts
	}{
		{"value", step{v: 7}, nil, true, nil, registry.FallbackCounts{}, registry.CallCounts{Started: 1, Succeeded: 1}},
		{"applied", step{err: errBoom}, nil, true, nil, registry.FallbackCounts{Applied: 1}, registry.CallCounts{Started: 1, Succeeded: 1}},
		{"fails too", step{err: errBoom}, errNotFound, false, []error{errBoom, errNotFound}, registry.FallbackCounts{Applied: 1, Failed: 1}, registry.CallCounts{Started: 1, Failed: 1}},
		{"fails too, after a timeout", step{takes: time.Hour}, errNotFound, false, []error{timeout.ErrExceeded, errNotFound}, registry.FallbackCounts{Applied: 1, Failed: 1}, registry.CallCounts{Started: 1, TimedOut: 1}},
		{"skipped", step{err: errSkipped}, nil, false, []error{errSkipped}, registry.FallbackCounts{}, registry.CallCounts{Started: 1, Failed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				f := stand{v: 9, err: c.failed}
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Timeout(2*time.Second).Fallback(f.in, fallback.SkipOn(errSkipped), fallback.If(func(error) bool { return true }))
				})
				_, err := a.call(a.Context(), p, a.plan(c.step).run)
				if (err == nil) != c.ok {
					a.Errorf("got %v", err)
				}
				a.is(err, c.is...)
				a.fellBack(c.counts.Applied, c.counts.Failed)
				if diff := cmp.Diff(c.calls, a.calls("x")); diff != "" {
					a.Errorf("S-5 (-want +got)\n%s", diff)
				}
			})
		})
	}
}

// A final refusal counts as rejected whatever else the fallback makes of it.
func TestFallback_S5_AFailedFallbackCountsAsWhatItWasAskedFor(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		f := stand{err: errNotFound}
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.CircuitBreaker(oneSample()...).RateLimit(ratelimit.Per(1, time.Hour)).Bulkhead(bulkhead.MaxConcurrent(1)).
				Fallback(f.in, fallback.On(circuitbreaker.ErrOpen, ratelimit.ErrLimited, bulkhead.ErrFull))
		})
		b, _ := a.reg.Bulkhead("x")
		b.TryAcquire()
		_, err := a.call(a.Context(), p, returns(7, nil))
		a.is(err, bulkhead.ErrFull, errNotFound)
		b.Release()
		_, err = a.call(a.Context(), p, returns(7, nil)) // O-6: the permit is spent
		a.is(err, ratelimit.ErrLimited, errNotFound)
		a.trip("x")
		_, err = a.call(a.Context(), p, returns(7, nil))
		a.is(err, circuitbreaker.ErrOpen, errNotFound)
		if !policy.NotStarted(err) {
			a.Errorf("%v says that something was started", err)
		}
		a.fellBack(3, 3)
		if c := a.calls("x"); c.Rejected != 3 || c.Failed != 0 {
			a.Errorf("%+v", c)
		}
	})
}

// What comes out of the fallback goes to an outer retry as a plain error: the
// mark was for the retry inside.
func TestFallback_O7_R4_SeesNoMarkOfPermanent(t *testing.T) {
	errGone := retry.Permanent(errors.New("gone"))
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(3)).Fallback(func(_ context.Context, err error) (int, error) {
				return 0, fmt.Errorf("no report: %w", err)
			})
		})
		outer := build(a.world, "outer", retrying(retry.MaxAttempts(2), retry.Constant(0)))
		fn := a.plan(step{err: errGone})
		_, err := outer.Execute(a.Context(), func(ctx context.Context) (int, error) { return a.call(ctx, p, fn.run) })
		if n := fn.calls(); n != 2 {
			a.Errorf("%d calls, want one for each attempt of the outer retry: %v", n, err)
		}
		a.is(err, errGone, retry.ErrExhausted) // its identity stays
		a.fellBack(2, 2)
	})
}

func TestFallback_O7_TheCallersOwnEndOnlyIfAsked(t *testing.T) {
	ends := map[string]func(a *arena, p *pipeline.Pipeline[int]) (int, error){
		"canceled": func(a *arena, p *pipeline.Pipeline[int]) (int, error) {
			ctx, cancel := context.WithCancel(a.Context())
			r := a.start(ctx, p, a.hangs().run)
			cancel()
			return r.end()
		},
		"deadline": func(a *arena, p *pipeline.Pipeline[int]) (int, error) {
			ctx, cancel := a.withTimeout(time.Second)
			defer cancel()
			return a.call(ctx, p, a.hangs().run)
		},
		"ended before": func(a *arena, p *pipeline.Pipeline[int]) (int, error) {
			ctx, cancel := context.WithCancel(a.Context())
			cancel()
			return a.call(ctx, p, a.hangs().run)
		},
		"its own error meanwhile": func(a *arena, p *pipeline.Pipeline[int]) (int, error) {
			ctx, cancel := context.WithCancel(a.Context())
			r := a.start(ctx, p, func(context.Context) (int, error) {
				cancel()
				return 0, errors.Join(errBoom, context.Canceled)
			})
			return r.end()
		},
	}
	asked := []error{context.Canceled, context.DeadlineExceeded}
	for _, c := range []struct {
		name string
		opts []fallback.Option
		want bool
	}{
		{"by default", nil, false},
		{"asked by On", []fallback.Option{fallback.On(asked...)}, true},
		{"asked by If", []fallback.Option{fallback.If(func(error) bool { return true })}, true},
		{"asked and skipped", []fallback.Option{fallback.On(asked...), fallback.SkipOn(asked...)}, false},
	} {
		for how, end := range ends {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				inEveryForm(t, func(a *arena) {
					f := stand{v: 9}
					p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
						return b.Timeout(2*time.Second).Fallback(f.in, c.opts...)
					})
					v, err := end(a, p)
					if !c.want {
						if err == nil || len(f.asked) != 0 || a.calls("x").Cancelled != 1 {
							a.Errorf("%d, %v, asked for %v, %+v", v, err, f.asked, a.calls("x"))
						}
						a.fellBack(0, 0)
						return
					}
					if v != 9 || err != nil || a.calls("x").Succeeded != 1 {
						a.Errorf("%d, %v, %+v", v, err, a.calls("x"))
					}
					a.fellBack(1, 0)
				})
			})
		}
	}
}

func TestFallback_O7_NeverForAClosedRegistry(t *testing.T) {
	anyError := fallback.If(func(error) bool { return true })
	t.Run("before the call", func(t *testing.T) {
		inEveryForm(t, func(a *arena) {
			f := stand{v: 9}
			p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				return b.Fallback(f.in, fallback.On(registry.ErrClosed), anyError)
			})
			if err := a.reg.Close(); err != nil {
				a.Error(err)
			}
			_, err := a.call(a.Context(), p, returns(7, nil))
			a.is(err, registry.ErrClosed)
			a.fellBack(0, 0)
		})
	})
	t.Run("in a backoff", func(t *testing.T) {
		inEveryForm(t, func(a *arena) {
			f := stand{v: 9}
			p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				return b.Retry(retry.Constant(time.Second)).Fallback(f.in, fallback.On(errBoom), anyError)
			})
			r := a.start(a.Context(), p, returns(0, errBoom))
			if err := a.reg.Close(); err != nil {
				a.Error(err)
			}
			_, err := r.end()
			a.is(err, registry.ErrClosed, errBoom)
			a.fellBack(0, 0)
		})
	})
}

func TestFallback_O7_ItsContextIsTheCallersAndNoTimeoutBoundsIt(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		type key struct{}
		ctx := context.WithValue(a.Context(), key{}, "caller")
		var got context.Context
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(time.Second).Retry(retry.MaxDuration(2 * time.Second)).Fallback(func(c context.Context, _ error) (int, error) {
				got = c
				return 9, a.clock.Sleep(c, time.Hour)
			})
		})
		r := a.start(ctx, p, returns(0, retry.Permanent(errBoom)))
		if v, err := r.end(); v != 9 || err != nil || a.at() != time.Hour {
			a.Errorf("%d, %v at +%v", v, err, a.at())
		}
		if got.Value(key{}) != "caller" {
			a.Error("not the caller's context")
		}
		if _, has := got.Deadline(); has {
			a.Error("it has a deadline")
		}
		if (got == ctx) != (a.form == inline) {
			a.Errorf("the caller's context itself: %v", got == ctx)
		}
		if retry.Attempt(got) != 0 {
			a.Errorf("attempt %d", retry.Attempt(got))
		}
	})
}

func TestFallback_O7_A6_CancelEndsItsContext(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		var cause error
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Fallback(func(ctx context.Context, _ error) (int, error) {
				<-ctx.Done()
				cause = ctx.Err()
				return 9, nil
			})
		})
		r := a.start(a.Context(), p, returns(0, errBoom))
		if r.ended() {
			a.Error("it has ended by itself")
		}
		if !r.future.Cancel() || r.future.Cancel() {
			a.Error("Cancel answered wrong")
		}
		_, err := r.end()
		a.is(err, context.Canceled)
		a.is(cause, context.Canceled)
		if c := a.calls("x"); c.Cancelled != 1 {
			a.Errorf("%+v", c)
		}
	})
}

func TestFallback_O7_K6_AsyncOnAFreshGoroutine(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		gate := make(chan struct{})
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.CircuitBreaker(oneSample()...).Timeout(time.Second).Fallback(func(context.Context, error) (int, error) { <-gate; return 9, nil })
		})
		hung := a.start(a.Context(), p, a.hangs().run)
		a.advance(time.Second)                                  // the deadline's goroutine is not it, or this would hang
		refused := a.start(a.Context(), p, returns(0, errBoom)) // nor is the caller's
		if hung.ended() || refused.ended() {
			a.Error("the fallback has not been waited for")
		}
		close(gate)
		for _, r := range []*running{hung, refused} {
			if v, err := r.end(); v != 9 || err != nil {
				a.Errorf("%d, %v", v, err)
			}
		}
	})
}

func TestFallback_A7_O7_PanicAndGoexitInside(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic(errNotFound) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Bulkhead(bulkhead.MaxConcurrent(1)).Fallback(func(context.Context, error) (int, error) { leave(); return 9, nil })
				})
				if a.form == inline { // its own panic passes through
					returned, done := false, make(chan struct{})
					var value any
					go func() {
						defer close(done)
						defer func() { value = recover() }()
						_, _ = p.Execute(a.Context(), returns(0, errBoom))
						returned = true
					}()
					<-done
					if returned || name == "panic" && value != errNotFound { //nolint:errorlint // the very value
						a.Errorf("returned %v, panicked with %v", returned, value)
					}
				} else {
					_, err := a.call(a.Context(), p, returns(0, errBoom))
					if name == "panic" {
						var panicked *pipeline.PanicError
						if !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
							a.Errorf("%v", err)
						}
						a.is(err, errNotFound)
					} else {
						a.is(err, pipeline.ErrGoexit)
					}
					a.is(err, errBoom) // O-7: what it was asked for
				}
				synctest.Wait()
				a.fellBack(1, 1)
				if c := a.calls("x"); c.Panicked != 1 {
					a.Errorf("%+v", c)
				}
			})
		})
	}
}

// The function's own panic is no error, and so nothing for a fallback; an async
// one is an error by the time that the caller hears of it.
func TestFallback_O7_APanicOfTheFunction(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		f := stand{v: 9}
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Fallback(f.in) })
		a.abrupt(p, func() { panic(errBoom) })
		if a.form == inline {
			a.fellBack(0, 0)
			if c := a.calls("x"); c.Panicked != 1 {
				a.Errorf("%+v", c)
			}
			return
		}
		a.fellBack(1, 0)
		a.is(f.asked[0], errBoom)
	})
}
