package pipeline_test

import (
	"context"
	"errors"
	"slices"
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
)

// all are the layers, each with room for a call, in an order that is not theirs.
func all() []func(*pipeline.Builder[int]) {
	return []func(*pipeline.Builder[int]){
		func(b *pipeline.Builder[int]) { b.Bulkhead(bulkhead.MaxConcurrent(1)) },
		func(b *pipeline.Builder[int]) { b.Timeout(s) },
		func(b *pipeline.Builder[int]) { b.RateLimit(ratelimit.Per(4, time.Hour)) },
		func(b *pipeline.Builder[int]) {
			b.CircuitBreaker(circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(1), circuitbreaker.OpenFor(time.Hour))
		},
		func(b *pipeline.Builder[int]) { b.Retry(retry.MaxAttempts(3), retry.Constant(ms)) },
		func(b *pipeline.Builder[int]) {
			b.Fallback(func(context.Context, error) (int, error) { return -1, nil }, fallback.On(ratelimit.ErrLimited))
		},
	}
}

func TestOrder_O1_TheOrderOfBuilderCallsNeverMatters(t *testing.T) {
	const text = "x: fallback > retry(3) > circuitbreaker(1) > ratelimit(4/1h) > timeout(1s) > bulkhead(1)"
	var want []policy.Event
	for _, swap := range []int{0, 1, 2, 3, 4, 5} {
		synctest.Test(t, func(t *testing.T) {
			a := newArena(t, inline, true)
			layers := all()
			slices.Reverse(layers[:swap])
			layers = append(layers[swap:], layers[:swap]...)
			p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				for _, add := range layers {
					add(b)
				}
				return b
			})
			if p.String() != text {
				t.Errorf("%d: %s", swap, p)
			}
			if diff := cmp.Diff([]string{"fallback", "retry", "circuitbreaker", "ratelimit", "timeout", "bulkhead"}, a.pipeline("x").Order); diff != "" {
				t.Error(diff)
			}
			// Three attempts fail; the fourth is the breaker's fourth failure; the
			// fifth finds it open; and the breaker is asked before the limiter.
			for range 3 {
				_, _ = a.call(t.Context(), p, a.plan(step{err: errBoom}).run)
			}
			if l := a.reg.Snapshot().RateLimiters[0]; l.Admitted != 4 || l.Rejected != 0 {
				t.Errorf("%d: %+v", swap, l)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if swap == 0 {
				want = a.events
			} else if got, want := kinds(a.events), kinds(want); !slices.Equal(got, want) {
				t.Errorf("%d: events %v, want %v", swap, got, want)
			}
		})
	}
}

func kinds(events []policy.Event) (kinds []string) {
	for _, e := range events {
		kinds = append(kinds, e.Policy())
	}
	return kinds
}

// Each layer refuses or ends a call before the ones inside of it are asked.
func TestOrder_O1_AnOuterLayerIsAskedFirst(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.CircuitBreaker().RateLimit(ratelimit.Per(1, time.Hour)).Timeout(s).Bulkhead(bulkhead.MaxConcurrent(1))
		})
		breaker, _ := a.reg.CircuitBreaker("x")
		slots, _ := a.reg.Bulkhead("x")
		slots.TryAcquire()
		fn := a.fails(0)
		refused := func(want error, admitted, full uint64) {
			a.Helper()
			_, err := a.call(a.Context(), p, fn.run)
			a.is(err, want)
			s := a.reg.Snapshot()
			if l, b := s.RateLimiters[0], s.Bulkheads[0]; l.Admitted != admitted || b.Rejected != full {
				a.Errorf("%v: permits %d, refused by the bulkhead %d", want, l.Admitted, b.Rejected)
			}
		}
		breaker.ForceOpen()
		refused(circuitbreaker.ErrOpen, 0, 0)
		breaker.ForceClosed()
		refused(bulkhead.ErrFull, 1, 1) // O-6: and the permit stays spent
		slots.Release()
		refused(ratelimit.ErrLimited, 1, 1)
		breaker.ForceOpen()
		refused(circuitbreaker.ErrOpen, 1, 1)
		if n := fn.calls(); n != 0 {
			a.Errorf("ran %d times", n)
		}
		if n := a.calls("x"); n.Rejected != 4 {
			a.Errorf("S-5: %+v", n)
		}
	})
}

func TestOrder_O2_TheInnerLayersRunOncePerAttempt(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return tokens(10)(b).Retry(retry.MaxAttempts(4), retry.Constant(s)).Timeout(300*ms).
				Bulkhead(bulkhead.MaxConcurrent(1)).
				CircuitBreaker(circuitbreaker.MinCalls(3), circuitbreaker.CountWindow(10), circuitbreaker.FailureRatio(.5), circuitbreaker.OpenFor(time.Hour))
		})
		fn := a.plan(step{takes: 250 * ms, err: errBoom}, step{takes: 250 * ms, err: errBoom}, step{takes: s})
		_, err := a.call(a.Context(), p, fn.run)
		if diff := cmp.Diff([]time.Duration{0, 1250 * ms, 2500 * ms}, fn.began()); diff != "" {
			a.Error(diff)
		}
		if a.at() != 3800*ms { // a full timeout for the third; then the breaker is open for the fourth
			a.Errorf("ended at %v", a.at())
		}
		a.is(err, circuitbreaker.ErrOpen, timeout.ErrExceeded, retry.ErrExhausted)
		if re := a.gaveUp(err); re.Attempts != 4 || !re.Started() {
			a.Errorf("%#v", re)
		}
		sn := a.reg.Snapshot()
		if sn.RateLimiters[0].Admitted != 3 || sn.Bulkheads[0].Admitted != 3 || sn.Timeouts[0].TimedOut != 1 || sn.CircuitBreakers[0].Rejected != 1 {
			a.Errorf("%+v", sn)
		}
		a.counted("rejected")
	})
}

func TestOrder_O3_TheWaitForASlotIsInsideTheTimeout(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(500*ms).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1))
		})
		first := a.start(a.Context(), p, a.plan(step{takes: 300 * ms, v: 1}).run)
		fn := a.plan(step{takes: 300 * ms, v: 2})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, timeout.ErrExceeded)
		if a.at() != 500*ms || fn.calls() != 1 || fn.began()[0] != 300*ms {
			a.Errorf("began %v, ended at %v", fn.began(), a.at())
		}
		if v, err := first.end(); v != 1 || err != nil {
			a.Errorf("got %d, %v", v, err)
		}
	})
}

func TestOrder_O4_NothingIsHeldInABackoff(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return tokens(10)(b).Retry(retry.MaxAttempts(2), retry.Constant(s)).Timeout(300 * ms).
				Bulkhead(bulkhead.MaxConcurrent(1)).CircuitBreaker()
		})
		r := a.start(a.Context(), p, a.plan(step{takes: 100 * ms, err: errBoom}, step{v: 7}).run)
		a.advance(200 * ms)
		sn := a.reg.Snapshot()
		if sn.Bulkheads[0].InUse != 0 || sn.RateLimiters[0].Admitted != 1 || sn.Wheel.Pending != 0 {
			a.Errorf("%+v", sn)
		}
		if v, err := r.end(); v != 7 || err != nil {
			a.Errorf("got %d, %v", v, err)
		}
	})
}

func TestField_TO02_O5_ADoneContextTakesNothingFromAnyLayer(t *testing.T) {
	stacks := map[string]layers{
		"retry":    retrying(retry.MaxAttempts(3), retry.Constant(0)),
		"breaker":  func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.CircuitBreaker() },
		"limiter":  tokens(1),
		"timeout":  twoSeconds,
		"bulkhead": bulked(bulkhead.MaxConcurrent(1)),
		"all": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return tokens(1)(b).Retry(retry.MaxAttempts(3), retry.Constant(0)).CircuitBreaker().Timeout(s).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)).
				Fallback(func(context.Context, error) (int, error) { return -1, nil })
		},
	}
	for name, stack := range stacks {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", stack)
				ctx, cancel := context.WithCancelCause(a.Context())
				gone := errors.New("gone")
				cancel(gone)
				never := a.fails(0)
				for range 1000 {
					if a.form == inline { // without a goroutine for each
						if _, err := p.Execute(ctx, never.run); !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
							a.Fatalf("got %v", err)
						}
						continue
					}
					if _, err := a.call(ctx, p, never.run); !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
						a.Fatalf("got %v", err)
					}
				}
				if n := never.calls(); n != 0 {
					a.Errorf("ran %d times", n)
				}
				sn := a.reg.Snapshot()
				for _, l := range sn.RateLimiters {
					if l.Admitted != 0 || l.Rejected != 0 || l.Available != 1 {
						a.Errorf("%+v", l)
					}
				}
				for _, b := range sn.Bulkheads {
					if b.Admitted != 0 || b.Rejected != 0 || b.Available != 1 {
						a.Errorf("%+v", b)
					}
				}
				for _, r := range sn.Retries {
					if r.Retries != 0 || r.Exhausted != 0 {
						a.Errorf("%+v", r)
					}
				}
				if n := a.calls("x"); n.Cancelled != 1000 || n.Started != 1000 {
					a.Errorf("S-5: %+v", n)
				}
				if v, err := a.call(a.Context(), p, never.run); v != 7 || err != nil {
					a.Errorf("a live call: %d, %v", v, err)
				}
			})
		})
	}
}

func TestOrder_O6_APermitStaysSpentForEachAttempt(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return tokens(10)(b).Retry(retry.MaxAttempts(3), retry.Constant(s)).Bulkhead(bulkhead.MaxConcurrent(1))
		})
		slots, _ := a.reg.Bulkhead("x")
		slots.TryAcquire()
		_, err := a.call(a.Context(), p, a.fails(0).run)
		a.is(err, bulkhead.ErrFull)
		if l := a.reg.Snapshot().RateLimiters[0]; l.Admitted != 3 {
			a.Errorf("%+v", l)
		}
		slots.Release()
	})
}
