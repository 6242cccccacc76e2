package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// An event that was armed before the call and is due at its deadline comes first,
// and the function that waits for it is back before the deadline's own event.
func TestTimeout_T7_ReleasedByAnEarlierEventAtTheDeadline(t *testing.T) {
	type result struct {
		v   int
		err error
	}
	for name, call := range map[string]func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) result{
		"Execute": func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) (r result) {
			r.v, r.err = p.Execute(t.Context(), fn)
			return r
		},
		"Run": func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) (r result) {
			r.err = p.Run(t.Context(), func(ctx context.Context) error { _, err := fn(ctx); return err })
			return r
		},
		"ExecuteAsync": func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) (r result) {
			f := p.ExecuteAsync(t.Context(), fn)
			r.v, r.err = f.Get(t.Context())
			<-f.Work().Done()
			return r
		},
	} {
		for _, own := range []error{nil, errBoom} {
			t.Run(fmt.Sprint(name, "/", own), func(t *testing.T) {
				w := newWorld(t)
				var discarded []int
				p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return twoSeconds(b).OnDiscard(func(v int) { discarded = append(discarded, v) })
				})
				ready, early := make(chan struct{}), make(chan struct{})
				w.clk.AfterFunc(2*time.Second, func() { close(ready) })
				w.clk.AfterFunc(4*time.Second-1, func() { close(early) })
				until := func(ready <-chan struct{}) func(context.Context) (int, error) {
					return func(ctx context.Context) (int, error) {
						if err := w.clk.Wait(ctx, ready); err != nil {
							return 0, err
						}
						return 7, own
					}
				}
				r := call(p, until(ready))
				w.elapsed(2 * time.Second)
				var te *timeout.Error
				if r.v != 0 || !errors.As(r.err, &te) || !te.Started() {
					t.Errorf("released at the deadline: %d, %v", r.v, r.err)
				}
				if own != nil && name != "ExecuteAsync" { // a future does not wait for it
					w.is(r.err, own)
				} else if own == nil && name != "Run" && (len(discarded) != 1 || discarded[0] != 7) { // T-14
					t.Errorf("discarded %v", discarded)
				}
				if c := w.calls("x"); c.TimedOut != 1 || c.Started != 1 {
					t.Errorf("%+v", c)
				}
				// One nanosecond before the deadline it is in time.
				r = call(p, until(early))
				w.elapsed(4*time.Second - 1)
				if r.err != own || own == nil && name != "Run" && r.v != 7 { //nolint:errorlint // unchanged
					t.Errorf("released before the deadline: %d, %v", r.v, r.err)
				}
				if c := w.calls("x"); c.TimedOut != 1 || c.Started != 2 {
					t.Errorf("%+v", c)
				}
			})
		}
	}
}

// The same where the event and the deadline are timers of their own, on a passive
// clock and in a bubble.
func TestTimeout_T7_ReleasedAtTheDeadlineOnEveryClock(t *testing.T) {
	inForms(t, []form{inline, async}, func(a *arena) {
		p := build(a.world, "x", twoSeconds)
		for range 20 {
			ready := make(chan struct{})
			a.clock.AfterFunc(2*time.Second, func() { close(ready) })
			began := a.at()
			_, err := a.call(a.Context(), p, func(context.Context) (int, error) { <-ready; return 7, nil })
			if took := a.at() - began; took != 2*time.Second || !errors.Is(err, timeout.ErrExceeded) {
				a.Fatalf("after %v: %v", took, err)
			}
		}
		if c := a.calls("x"); c.TimedOut != 20 {
			a.Errorf("%+v", c)
		}
	})
}

// keepsTo are ways in which a function keeps to the deadline that its context
// tells, as connections do: by an error of its own, at that very instant.
var keepsTo = map[string]func(ctx context.Context) (own error){
	"derived": func(ctx context.Context) error {
		at, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), at)
		defer cancel()
		<-ctx.Done()
		return errors.Join(errBoom, ctx.Err())
	},
	"its own timer": func(ctx context.Context) error {
		at, _ := ctx.Deadline()
		<-time.After(time.Until(at))
		return errBoom
	},
	"asked through a derived context": func(ctx context.Context) error {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, key{}, 1), time.Hour)
		defer cancel()
		at, _ := ctx.Deadline()
		<-time.After(time.Until(at))
		return errBoom
	},
}

func TestTimeout_T2_T7_WhoKeepsToTheDeadlineThatHeWasToldIsTimedOut(t *testing.T) {
	for name, keep := range keepsTo {
		t.Run("bubble/"+name, func(t *testing.T) {
			inForms(t, []form{inline, async}, func(a *arena) {
				if a.manual != nil {
					return // its deadlines are not for timers of the system
				}
				p := build(a.world, "x", twoSeconds)
				for range 20 {
					began := a.at()
					_, err := a.call(a.Context(), p, func(ctx context.Context) (int, error) { return 0, keep(ctx) })
					var te *timeout.Error
					if took := a.at() - began; took != 2*time.Second || !errors.As(err, &te) {
						a.Fatalf("after %v: %v", took, err)
					}
					if a.form == inline { // a future does not wait for it
						a.is(err, errBoom)
					}
				}
				if c := a.calls("x"); c.TimedOut != 20 || c.Failed != 0 {
					a.Errorf("%+v", c)
				}
			})
		})
	}
}

// On the wheel, which comes round a tick or two later.
func TestTimeout_T2_T7_OnTheWheelWhoKeepsToTheDeadlineIsTimedOut(t *testing.T) {
	for _, calls := range []int{1, 200} { // a quiet wheel, and one that ticks
		for name, keep := range keepsTo {
			reg, err := registry.New()
			if err != nil {
				t.Fatal(err)
			}
			p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(20 * time.Millisecond).Build())
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					_, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) { return 0, keep(ctx) })
					var te *timeout.Error
					if !errors.As(err, &te) || !errors.Is(err, errBoom) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			s := reg.Snapshot()
			if c := s.Pipelines[0].Calls; c.TimedOut != uint64(calls) || s.Wheel.Pending != 0 {
				t.Errorf("%s: %+v, %d pending", name, c, s.Wheel.Pending)
			}
		}
	}
}

// twice is a pipeline within another one, with the same timeout, and with what
// may lie between the two. first says that the inner deadline was the earlier one:
// a wheel that goes quiet between the two takes the outer one to be at most as late
// as that lasts, which on a busy machine may be a while.
func twice(t *testing.T, reg *registry.Registry, limit time.Duration, between func(context.Context) (context.Context, context.CancelFunc)) (call func(fn func(context.Context) error) (first bool, err error)) {
	t.Helper()
	outer := pipeline.Must(pipeline.New[int](reg, "outer").Timeout(limit).Build())
	inner := pipeline.Must(pipeline.New[int](reg, "inner").Timeout(limit).Build())
	return func(fn func(context.Context) error) (first bool, err error) {
		var own, outers context.Context
		err = outer.Run(t.Context(), func(ctx context.Context) error {
			outers = ctx
			ctx, cancel := between(ctx)
			defer cancel()
			return inner.Run(ctx, func(ctx context.Context) error {
				own = ctx
				return fn(ctx)
			})
		})
		if own != nil {
			earlier, _ := own.Deadline()
			later, _ := outers.Deadline()
			first = earlier.Before(later)
		}
		return first, err
	}
}

type spanKey struct{}

var betweenTwo = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"nothing": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	"a value": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithValue(ctx, spanKey{}, 1), func() {}
	},
	"a derived context": context.WithCancel,
	"a value and a derived context": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithValue(ctx, spanKey{}, 1))
	},
}

// outerCounts wants n timeouts of the outer pipeline and none of the inner one, but
// for those that were the first.
func outerCounts(t *testing.T, reg *registry.Registry, n, first uint64) {
	t.Helper()
	if first > n/2 {
		t.Errorf("%d of %d inner deadlines are before the outer one", first, n)
	}
	for _, p := range reg.Snapshot().Pipelines {
		switch c := p.Calls; p.ID {
		case "outer":
			if c.TimedOut < n-first || c.TimedOut+c.Failed != n {
				t.Errorf("outer %+v, want %d timed out", c, n)
			}
		case "inner":
			if c.TimedOut > first || c.Cancelled+c.TimedOut != n {
				t.Errorf("inner %+v, want %d cancelled", c, n)
			}
		}
	}
}

func outerTimedOut(t *testing.T, err error) {
	t.Helper()
	// On a busy machine the outer one may have passed before the inner one began:
	// then it is its own cause.
	var te, cause *timeout.Error
	if !errors.As(err, &te) || te.Instance != "outer" || te.Cause == nil || errors.As(te.Cause, &cause) && cause.Instance != "outer" {
		t.Errorf("got %#v", err)
	}
}

func untilDone(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// Of two deadlines that pass together the outer one came first, always.
func TestTimeout_T10_OfEqualNestedTimeoutsTheOuterOneCounts(t *testing.T) {
	for name, between := range betweenTwo {
		t.Run("manual/"+name, func(t *testing.T) {
			w := newWorld(t)
			call := twice(t, w.reg, time.Second, between)
			for range 50 {
				_, err := call(func(ctx context.Context) error { return w.clk.Sleep(ctx, time.Minute) })
				outerTimedOut(t, err)
			}
			w.elapsed(50 * time.Second)
			outerCounts(t, w.reg, 50, 0)
		})
		t.Run("bubble/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, err := registry.New(registry.WithClock(clock.System()))
				if err != nil {
					t.Fatal(err)
				}
				call := twice(t, reg, time.Second, between)
				for range 100 {
					_, err := call(untilDone)
					outerTimedOut(t, err)
				}
				outerCounts(t, reg, 100, 0)
			})
		})
		if name != "nothing" && name != "a value" {
			continue // it hears of the outer one's end from another goroutine, which a busy machine may hold up
		}
		t.Run("wheel/"+name, func(t *testing.T) {
			reg, err := registry.New()
			if err != nil {
				t.Fatal(err)
			}
			call := twice(t, reg, 50*time.Millisecond, between)
			const n = 400
			var wg sync.WaitGroup
			var firsts atomic.Uint64
			for range n {
				wg.Go(func() {
					first, err := call(untilDone)
					if first {
						firsts.Add(1)
						return
					}
					outerTimedOut(t, err)
				})
			}
			wg.Wait()
			outerCounts(t, reg, n, firsts.Load())
		})
	}
}
