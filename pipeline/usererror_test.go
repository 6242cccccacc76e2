package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
)

// typedNil is the classic: a nil pointer in an error, whose Unwrap reads a field.
type typedNil struct{ inner error }

func (e *typedNil) Error() string {
	if e == nil {
		return "typed nil"
	}
	return "not nil"
}

func (e *typedNil) Unwrap() error { return e.inner }

// moody is an error whose Is leaves once it is bad.
type moody struct {
	bad   atomic.Bool
	leave func()
}

func newMoody(leave func()) *moody {
	m := &moody{leave: leave}
	m.bad.Store(true)
	return m
}

func (m *moody) Error() string { return "moody" }

func (m *moody) Is(error) bool {
	if m.bad.Load() {
		m.leave()
	}
	return false
}

// busy is an error whose hint panics.
type busy struct{}

func (busy) Error() string             { return "busy" }
func (busy) RetryAfter() time.Duration { panic("hint") }

// A hint that panics is none: the delay is the retry's own, and the call goes on.
func TestUserError_X3_R7_AHintThatPanicsIsNone(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", retrying(retry.MaxAttempts(2), retry.Constant(3*s)))
		r := a.start(a.Context(), p, a.plan(step{err: busy{}}, step{v: 7}).run)
		if v, err := r.end(); v != 7 || err != nil || r.panicked != nil || r.over != 3*s {
			a.Errorf("got %d, %v, panic %v, at %v", v, err, r.panicked, r.over)
		}
		if e := heard[policy.CallbackPanic](a.world); len(e) != 1 || e[0].Value != "hint" || e[0].Policy() != "retry" {
			a.Errorf("%+v", e)
		}
		a.counted("succeeded")
	})
}

var errOdd = errors.New("odd")

// walked are layers that look into the function's error.
var walked = map[string]layers{
	"retry": retrying(retry.MaxAttempts(3), retry.Constant(s)),
	"AbortOn": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(3), retry.AbortOn(errNotFound))
	},
	"SkipOn": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Fallback(func(context.Context, error) (int, error) { return 9, nil }, fallback.SkipOn(errNotFound))
	},
	"On, below a breaker": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.CircuitBreaker().Fallback(func(context.Context, error) (int, error) { return 9, nil }, fallback.On(errNotFound))
	},
}

// An error whose own method panics, or ends the goroutine, ends its call, and not
// the process: of the async forms, where nobody else could.
func TestUserError_A7_AMethodOfTheFunctionsErrorThatLeaves(t *testing.T) {
	for name, l := range walked {
		for how, err := range map[string]error{
			"typed nil": (*typedNil)(nil),
			"panic":     newMoody(func() { panic(errOdd) }),
			"Goexit":    newMoody(runtime.Goexit),
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inEveryForm(t, func(a *arena) {
					p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return l(b).Timeout(time.Hour) })
					fn := a.plan(step{takes: s, err: err})
					r := a.start(a.Context(), p, fn.run)
					a.advance(s)
					if !r.ended() {
						a.Fatal("pending")
					}
					a.counted("panicked")
					if a.form == inline { // where it passes through
						if (r.panicked == nil) != (how == "Goexit") || r.err != nil {
							a.Errorf("panicked with %v, returned %v", r.panicked, r.err)
						}
						return
					}
					var pe *pipeline.PanicError
					switch {
					case how == "Goexit":
						a.is(r.err, pipeline.ErrGoexit)
					case !errors.As(r.err, &pe) || len(pe.Stack) == 0:
						a.Errorf("got %v", r.err)
					case how == "panic":
						a.is(r.err, errOdd)
					}
					if n := fn.calls(); n != 1 {
						a.Errorf("%d attempts", n)
					}
					if _, over, work := r.future.Work().Poll(); !over || work != err { //nolint:errorlint // the function's own
						a.Errorf("work: %v %v", over, work)
					}
				})
			})
		}
	}
}

// What a breaker is told of such an error is a failure, once; the caller gets the
// error as it is.
func TestUserError_X3_C1_ABreakerThatLooksIntoTheError(t *testing.T) {
	for name, l := range map[string]layers{
		"Ignore": broken(circuitbreaker.Ignore(errNotFound)),
		"FailIf": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return broken(circuitbreaker.Ignore(errNotFound))(b).FailIf(func(_ int, err error) bool { return err != nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", l)
				bad := newMoody(func() { panic(errOdd) })
				r := a.start(a.Context(), p, returns(0, bad))
				if _, err := r.end(); err != error(bad) || r.panicked != nil { //nolint:errorlint // the very error
					a.Errorf("got %v, panic %v", err, r.panicked)
				}
				a.state("x", circuitbreaker.Open)
				if e := heard[policy.CallbackPanic](a.world); len(e) != 1 || e[0].Policy() != "circuitbreaker" {
					a.Errorf("%+v", e)
				}
				a.counted("failed")
			})
		})
	}
}

// A hook that ends the goroutine ends its call at once, not at its timeout.
func TestUserError_A7_GoexitInRetryIf(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(time.Hour).Retry(retry.MaxAttempts(2), retry.Constant(0)).CircuitBreaker(oneSample()...).
				RetryIf(func(int, error) bool { runtime.Goexit(); return false })
		})
		r := a.start(a.Context(), p, a.plan(step{takes: s, v: 1, err: errBoom}).run)
		a.advance(s)
		if !r.ended() {
			a.Fatal("pending")
		}
		a.is(r.err, pipeline.ErrGoexit)
		if isOpen(r.future.Work().Done()) {
			a.Error("the work is not done")
		}
		if r.future.Cancel() {
			a.Error("Cancel ended it")
		}
		a.counted("panicked")
	})
}

// The end of the caller's context is matched with what the fallback is for: with
// the error of the attempt before, and with the cause of the end.
func TestUserError_A6_O7_TheEndOfTheCallersContextIsMatched(t *testing.T) {
	for name, c := range map[string]struct {
		build layers
		step  func(bad error) step
		cause func(bad error) error
	}{
		"the attempt's error": {
			build: retrying(retry.Constant(time.Hour)),
			step:  func(bad error) step { return step{err: bad} },
			cause: func(error) error { return errLeft },
		},
		"the cause": {
			build: func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(2 * time.Hour) },
			step:  func(error) step { return step{takes: s, deaf: true, err: errBoom} },
			cause: func(bad error) error { return bad },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inForms(t, []form{async, staged}, func(a *arena) {
				mood := &moody{leave: func() { panic(errOdd) }}
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return c.build(b).Fallback(func(context.Context, error) (int, error) { return 9, nil }, fallback.On(errNotFound))
				})
				ctx, cancel := context.WithCancelCause(a.Context())
				r := a.start(ctx, p, a.plan(c.step(mood)).run)
				mood.bad.Store(true)
				cancel(c.cause(mood))
				if !r.ended() {
					a.Fatal("pending")
				}
				mood.bad.Store(false)
				a.is(r.err, context.Canceled, c.cause(mood))
				if len(heard[policy.CallbackPanic](a.world)) == 0 {
					a.Error("nobody heard of the panic")
				}
				a.counted("cancelled")
				a.advance(s)
			})
		})
	}
}
