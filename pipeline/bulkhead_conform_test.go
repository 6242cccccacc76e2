package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
)

func TestConform_36_37_38_LimitAndQueue(t *testing.T) {
	for _, c := range []struct{ limit, queue int }{{3, 0}, {10, 0}, {10, 10}, {5, 5}, {2, 2}} {
		t.Run(fmt.Sprintf("%d,%d", c.limit, c.queue), func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", bulked(bulkhead.MaxConcurrent(c.limit), bulkhead.Queue(c.queue)))
				g := newGated()
				var calls []*running
				enter := func(want string) {
					a.Helper()
					before := g.running.Load()
					r := a.start(a.Context(), p, g.run)
					calls = append(calls, r)
					got := "waits"
					switch {
					case r.ended() && errors.Is(r.err, bulkhead.ErrFull):
						got = "rejected"
					case g.running.Load() == before+1:
						got = "runs"
					}
					if got != want {
						a.Errorf("call %d %s, want %s", len(calls), got, want)
					}
				}
				for range c.limit {
					enter("runs")
				}
				for range c.queue {
					enter("waits")
				}
				enter("rejected")
				g.release() // one goes: exactly one waiter starts, or exactly one more may
				if c.queue == 0 {
					enter("runs")
				} else {
					if n := g.running.Load(); int(n) != c.limit {
						a.Errorf("%d run after one has left", n)
					}
					enter("waits")
				}
				enter("rejected")
				g.open()
				for _, r := range calls {
					_, _ = r.end()
				}
				if b := a.bulkhead(); int(b.Admitted) != c.limit+c.queue+1 || b.Rejected != 2 || b.Available != c.limit {
					a.Errorf("44: %+v", b)
				}
				if int(g.peak.Load()) != c.limit {
					a.Errorf("peak %d", g.peak.Load())
				}
			})
		})
	}
}

func TestConform_39_UnderPressure(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		for i, every := range []time.Duration{25 * ms, 5 * ms} {
			id := fmt.Sprint("x", i)
			p := build(a.world, id, bulked(bulkhead.MaxConcurrent(5)))
			fn := a.plan(step{takes: 50 * ms, v: 7})
			calls := make([]*running, 0, 100)
			for range 100 {
				calls = append(calls, a.start(a.Context(), p, fn.run))
				if b := a.reg.Snapshot().Bulkheads[i]; b.InUse > 5 {
					a.Fatalf("%+v", b)
				}
				a.advance(every)
			}
			ok, full := 0, 0
			for _, r := range calls {
				switch v, err := r.end(); {
				case v == 7 && err == nil:
					ok++
				case errors.Is(err, bulkhead.ErrFull):
					full++
				default:
					a.Errorf("got %d, %v", v, err)
				}
			}
			if n := a.calls(id); int(n.Succeeded) != ok || int(n.Rejected) != full || ok != fn.calls() || i == 0 && full != 0 || i == 1 && full == 0 {
				a.Errorf("%d ok, %d full: %+v", ok, full, n)
			}
		}
	})
}

func TestConform_41_TheWaitEnds(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		short := build(a.world, "short", bulked(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(50*ms), bulkhead.Name("shared")))
		long := build(a.world, "long", bulked(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(2*s), bulkhead.Name("shared")))
		g := newGated()
		holder := a.start(a.Context(), short, g.run)
		never := a.fails(0)
		_, err := a.call(a.Context(), short, never.run)
		var full *bulkhead.Error
		if !errors.As(err, &full) || full.Waited != 50*ms || a.at() != 50*ms {
			a.Errorf("got %#v at %v", err, a.at())
		}
		ctx, cancel := context.WithCancel(a.Context())
		r := a.start(ctx, long, never.run)
		a.advance(500 * ms)
		cancel()
		if !r.ended() || r.over != 550*ms {
			a.Fatal("a cancelled waiter does not return at once")
		}
		a.is(r.err, context.Canceled)
		a.isNot(r.err, bulkhead.ErrFull)
		g.open()
		_, _ = holder.end()
		slots, _ := a.reg.Bulkhead("shared")
		if err := slots.SetLimit(0); err != nil {
			a.Fatal(err)
		}
		_, err = a.call(a.Context(), short, never.run)
		a.is(err, bulkhead.ErrFull)
		if n := never.calls(); n != 0 {
			a.Errorf("%d calls ran", n)
		}
	})
}

func TestConform_43_SharedByNameOnly(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		one := build(a.world, "one", bulked(bulkhead.MaxConcurrent(1), bulkhead.Name("shared")))
		two := build(a.world, "two", bulked(bulkhead.MaxConcurrent(1), bulkhead.Name("shared")))
		other := build(a.world, "other", bulked(bulkhead.MaxConcurrent(1)))
		g := newGated()
		holder := a.start(a.Context(), one, g.run)
		_, err := a.call(a.Context(), two, a.fails(0).run)
		var full *bulkhead.Error
		if !errors.As(err, &full) || full.ID() != "shared" {
			a.Errorf("shared: got %v", err)
		}
		if _, err := a.call(a.Context(), other, a.fails(0).run); err != nil {
			a.Errorf("not shared: got %v", err)
		}
		g.open()
		_, _ = holder.end()
		if b := a.reg.Snapshot().Bulkheads; len(b) != 2 || b[0].ID != "other" || b[1].ID != "shared" {
			a.Errorf("%+v", b)
		}
	})
}

// A fails and sleeps; B enters meanwhile; A's retry finds no slot.
func TestConform_46_O4_TheSlotIsFreeInTheBackoff(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(1)).Retry(retry.MaxAttempts(2), retry.Constant(s), retry.On(errBoom))
		})
		fn := a.plan(step{err: errBoom})
		first := a.start(a.Context(), p, fn.run)
		if b := a.bulkhead(); b.InUse != 0 {
			a.Errorf("in use in the backoff: %+v", b)
		}
		a.advance(100 * ms)
		second := a.start(a.Context(), p, a.plan(step{takes: 2 * s, v: 7}).run)
		_, err := first.end()
		if a.at() != s || fn.calls() != 1 {
			a.Errorf("ended at %v after %d calls", a.at(), fn.calls())
		}
		a.is(err, bulkhead.ErrFull, errBoom, retry.ErrExhausted)
		re := a.gaveUp(err)
		if re.Attempts != 2 || re.Last != errBoom || !re.Started() { //nolint:errorlint // unchanged
			a.Errorf("%#v", re)
		}
		if v, err := second.end(); v != 7 || err != nil {
			a.Errorf("B: %d, %v", v, err)
		}
		if n := a.calls("x"); n.Rejected != 1 || n.Succeeded != 1 {
			a.Errorf("S-5: %+v", n)
		}
	})
}

// O-2: with a third call in the queue, a retry goes to its back.
func TestConform_46_O2_ARetryQueuesAnew(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)).Retry(retry.MaxAttempts(2), retry.Constant(s), retry.On(errBoom))
		})
		fn := a.plan(step{takes: 500 * ms, err: errBoom})
		first := a.start(a.Context(), p, fn.run)
		second := a.start(a.Context(), p, a.plan(step{takes: 2 * s, v: 2}).run) // at 500 ms
		a.advance(600 * ms)
		third := a.start(a.Context(), p, a.plan(step{takes: 2 * s, v: 3}).run) // takes the place in the queue
		_, err := first.end()
		a.is(err, bulkhead.ErrFull, errBoom)
		if a.at() != 1500*ms || fn.calls() != 1 {
			a.Errorf("ended at %v after %d calls", a.at(), fn.calls())
		}
		for i, r := range []*running{second, third} {
			if v, err := r.end(); v != i+2 || err != nil {
				a.Errorf("got %d, %v", v, err)
			}
		}
	})
}

func TestConform_48_RefusalsAreRetriedWhereADelayIsConfigured(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(3), bulkhead.Queue(3)).
				Retry(retry.Unlimited(), retry.Constant(100*ms), retry.MaxDuration(3*s))
		})
		g := newGated()
		var calls []*running
		for range 6 {
			calls = append(calls, a.start(a.Context(), p, g.run))
		}
		seventh := a.start(a.Context(), p, g.run)
		a.advance(950 * ms)
		if seventh.ended() {
			a.Fatalf("failed while full: %v", seventh.err)
		}
		g.release()
		g.release()
		a.advance(100 * ms)
		if b := a.bulkhead(); b.InUse != 3 || b.Waiting != 2 {
			a.Errorf("it did not come in: %+v", b)
		}
		g.open()
		for _, r := range append(calls, seventh) {
			if v, err := r.end(); v != 7 || err != nil {
				a.Errorf("got %d, %v", v, err)
			}
		}
		if n := a.bulkhead().Rejected; n != 10 {
			a.Errorf("%d refusals, want one at 0, 100, … 900 ms", n)
		}
	})
}

func TestConform_49_R3_RefusalsThatAreNotRetried(t *testing.T) {
	for _, c := range []struct {
		name     string
		opts     []retry.Option
		attempts int
	}{
		{"a: On without it", []retry.Option{retry.MaxAttempts(5), retry.Constant(s), retry.On(errBoom)}, 1},
		{"b: AbortOn with it", []retry.Option{retry.MaxAttempts(5), retry.Constant(s), retry.AbortOn(bulkhead.ErrFull)}, 1},
		{"c: one attempt", []retry.Option{retry.MaxAttempts(1), retry.Constant(s)}, 1},
		{"no delay", []retry.Option{retry.MaxAttempts(5), retry.Constant(0)}, 1},
		{"no delay, but asked for", []retry.Option{retry.MaxAttempts(5), retry.Constant(0), retry.On(bulkhead.ErrFull)}, 5},
		{"ten of a microsecond", []retry.Option{retry.MaxAttempts(11), retry.Constant(time.Microsecond)}, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Bulkhead(bulkhead.MaxConcurrent(1)).Retry(c.opts...)
				})
				slots, _ := a.reg.Bulkhead("x")
				slots.TryAcquire()
				fn := a.fails(0)
				_, err := a.call(a.Context(), p, fn.run)
				full, ok := err.(*bulkhead.Error) //nolint:errorlint // R-13: no attempt was entered, the refusal comes back unchanged
				if !ok || full.Instance != "x" || full.Started() {
					a.Errorf("got %#v", err)
				}
				if n := int(a.bulkhead().Rejected); n != c.attempts || fn.calls() != 0 {
					a.Errorf("%d refusals, want %d", n, c.attempts)
				}
				if want := time.Duration(c.attempts-1) * time.Microsecond; c.attempts == 11 && a.at() != want || c.attempts == 1 && a.at() != 0 {
					a.Errorf("ended at %v", a.at())
				}
				a.counted("rejected")
				slots.Release()
			})
		})
	}
}

func TestField_RE08_O4_NothingIsHeldAcrossBackoffs(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return tokens(1000)(b.Bulkhead(bulkhead.MaxConcurrent(2))).Retry(retry.MaxAttempts(5), retry.Constant(s), retry.AbortOn(context.Canceled))
		})
		fn := a.plan(step{err: errBoom})
		for range 99 {
			_, err := a.call(a.Context(), p, fn.run)
			a.is(err, retry.ErrExhausted)
		}
		last := a.start(a.Context(), p, fn.run)
		for range 4 {
			if b := a.bulkhead(); b.InUse != 0 {
				a.Fatalf("in use in a backoff: %+v", b)
			}
			at := a.at()
			if v, err := a.call(a.Context(), p, a.fails(0).run); v != 7 || err != nil || a.at() != at {
				a.Errorf("a second caller: %d, %v after %v", v, err, a.at()-at)
			}
			a.advance(s)
		}
		_, _ = last.end()
		l := a.reg.Snapshot().RateLimiters[0]
		if fn.calls() != 500 || l.Admitted != 504 {
			a.Errorf("%d calls, %d tokens", fn.calls(), l.Admitted)
		}
		fn = a.plan(step{err: errBoom}, step{err: context.Canceled})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, context.Canceled)
		if b := a.bulkhead(); fn.calls() != 2 || b.Available != 2 {
			a.Errorf("%d calls, %+v", fn.calls(), b)
		}
		if diff := cmp.Diff(uint64(506), a.reg.Snapshot().RateLimiters[0].Admitted); diff != "" {
			a.Error(diff)
		}
	})
}
