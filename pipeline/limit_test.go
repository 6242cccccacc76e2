package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

func limited(opts ...ratelimit.Option) layers {
	return func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.RateLimit(opts...) }
}

// tokens is a limiter with so many permits, and no more for a long time.
func tokens(n int) layers { return limited(ratelimit.Per(n, 10_000*time.Hour)) }

func TestLimit_L2_RefusedAtOnceWithRetryAfter(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", limited(ratelimit.PerSecond(1)))
		fn := a.fails(0)
		_, _ = a.call(a.Context(), p, fn.run)
		a.advance(300 * ms)
		for range 3 { // a refusal changes nothing
			_, err := a.call(a.Context(), p, fn.run)
			var le *ratelimit.Error
			if !errors.As(err, &le) || le.RetryAfter() != 700*ms || le.Started() || !policy.NotStarted(err) {
				a.Errorf("got %#v", err)
			}
			a.is(err, ratelimit.ErrLimited)
		}
		a.advance(700 * ms)
		if v, err := a.call(a.Context(), p, fn.run); v != 7 || err != nil {
			a.Errorf("got %d, %v when it is due", v, err)
		}
		if n := a.calls("x"); n.Rejected != 3 || n.Succeeded != 2 || fn.calls() != 2 {
			a.Errorf("S-5: %+v, %d calls", n, fn.calls())
		}
		if l := a.reg.Snapshot().RateLimiters[0]; l.Admitted != 2 || l.Rejected != 3 {
			a.Errorf("%+v", l)
		}
	})
}

func TestLimit_L3_AWaitThatDoesNotFitIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		name              string
		wait              time.Duration
		callers, duration time.Duration
		fits              bool
	}{
		{"exactly MaxWait", s, 0, 0, true},
		{"a nanosecond more than MaxWait", s - 1, 0, 0, false},
		{"exactly the caller's deadline", 5 * s, s, 0, false},
		{"a nanosecond before the caller's deadline", 5 * s, s + 1, 0, true},
		{"exactly what is left of MaxDuration", 5 * s, 0, s, false},
		{"a nanosecond before MaxDuration", 5 * s, 0, s + 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					b.RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(c.wait))
					if c.duration > 0 {
						b.Retry(retry.MaxAttempts(1), retry.MaxDuration(c.duration))
					}
					return b
				})
				limiter, _ := a.reg.RateLimiter("x")
				limiter.TryAcquire()
				ctx := a.Context()
				if c.callers > 0 {
					var cancel context.CancelFunc
					ctx, cancel = a.withTimeout(c.callers)
					defer cancel()
				}
				fn := a.fails(0)
				v, err := a.call(ctx, p, fn.run)
				if c.fits {
					if v != 7 || err != nil || a.at() != s {
						a.Errorf("got %d, %v at %v", v, err, a.at())
					}
					return
				}
				a.is(err, ratelimit.ErrLimited)
				var re *retry.Error
				if errors.As(err, &re) || !policy.NotStarted(err) {
					a.Errorf("R-13: no attempt was entered, got %#v", err)
				}
				if a.at() != 0 || fn.calls() != 0 {
					a.Errorf("refused at %v, %d calls", a.at(), fn.calls())
				}
				a.counted("rejected")
			})
		})
	}
}

// W1, W2, W3 are due at 1, 2, 3 s; who leaves gives its place to those behind.
func TestField_RL01_L7_MistakesAreFoundAtBuild(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []ratelimit.Option
		path string
	}{
		{"rate 0", []ratelimit.Option{ratelimit.PerSecond(0)}, "limit"},
		{"rate -1", []ratelimit.Option{ratelimit.PerSecond(-1)}, "limit"},
		{"burst -5", []ratelimit.Option{ratelimit.PerSecond(1), ratelimit.Burst(-5)}, "burst"},
		{"period 0", []ratelimit.Option{ratelimit.Per(1, 0)}, "period"},
		{"period -1", []ratelimit.Option{ratelimit.Per(1, -1)}, "period"},
		{"wait -1", []ratelimit.Option{ratelimit.PerSecond(1), ratelimit.MaxWait(-1)}, "maxWait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p, err := pipeline.New[int](w.reg, "x").Timeout(s).RateLimit(c.opts...).Build()
			if p != nil || err == nil {
				t.Fatalf("built: %v", err)
			}
			found := false
			for _, e := range policy.ConfigErrors(err) {
				if strings.HasSuffix(e.Path, c.path) && e.Policy == "ratelimit" && e.ID == "x" && e.Got != "" && e.Hint != "" {
					found = true
				}
			}
			if !found {
				t.Errorf("no error names %s: %v", c.path, err)
			}
			sn := w.reg.Snapshot()
			if len(sn.Pipelines)+len(sn.RateLimiters)+len(sn.Timeouts) != 0 {
				t.Errorf("registered: %+v", sn)
			}
		})
	}
}

func TestField_RL10_L4_ACancelledWaiterGivesItsPlaceBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		cancel  []int           // of 0, 1, 2
		runs    []time.Duration // 0: never
		newcome time.Duration
	}{
		{"first", []int{0}, []time.Duration{0, s, 2 * s}, 3 * s},
		{"middle", []int{1}, []time.Duration{s, 0, 2 * s}, 3 * s},
		{"tail", []int{2}, []time.Duration{s, 2 * s, 0}, 3 * s},
		{"all", []int{0, 1, 2}, []time.Duration{0, 0, 0}, s},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", limited(ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute)))
				_, _ = a.call(a.Context(), p, a.fails(0).run)
				var waiting [3]*running
				var works [3]*work
				var cancels [3]context.CancelFunc
				for i := range waiting {
					ctx, cancel := context.WithCancel(a.Context())
					defer cancel()
					works[i], cancels[i] = a.fails(0), cancel
					waiting[i] = a.start(ctx, p, works[i].run)
				}
				a.advance(500 * ms)
				for _, i := range c.cancel {
					cancels[i]()
					if !waiting[i].ended() {
						a.Fatal("R-11: a cancelled waiter does not return at once")
					}
					a.is(waiting[i].err, context.Canceled)
					a.isNot(waiting[i].err, ratelimit.ErrLimited)
				}
				newcomer := a.fails(0)
				last := a.start(a.Context(), p, newcomer.run)
				_, _ = last.end()
				for i, w := range works {
					_, _ = waiting[i].end()
					if c.runs[i] == 0 {
						if w.calls() != 0 {
							a.Errorf("W%d ran although it was cancelled", i+1)
						}
					} else if diff := cmp.Diff([]time.Duration{c.runs[i]}, w.began()); diff != "" {
						a.Errorf("W%d: %s", i+1, diff)
					}
				}
				if diff := cmp.Diff([]time.Duration{c.newcome}, newcomer.began()); diff != "" {
					a.Errorf("newcomer: %s", diff)
				}
			})
		})
	}
}

func TestField_RL10_ManyCancelledWaitersLeaveNothing(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", limited(ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute)))
		_, _ = a.call(a.Context(), p, a.fails(0).run)
		never := a.fails(0)
		for range 1000 {
			ctx, cancel := context.WithCancel(a.Context())
			r := a.start(ctx, p, never.run)
			cancel()
			if !r.ended() {
				a.Fatal("not at once")
			}
		}
		fn := a.fails(0)
		_, err := a.call(a.Context(), p, fn.run)
		if err != nil || fn.began()[0] != s || never.calls() != 0 {
			a.Errorf("the next one: %v at %v; cancelled ones ran %d times", err, fn.began(), never.calls())
		}
	})
}

func TestField_RL06_AfterAnIdleSpell(t *testing.T) {
	for _, burst := range []int{1, 3} {
		t.Run(map[int]string{1: "burst 1", 3: "burst 3"}[burst], func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", limited(ratelimit.PerSecond(1), ratelimit.Burst(burst), ratelimit.MaxWait(time.Hour)))
				_, _ = a.call(a.Context(), p, a.fails(0).run)
				for range 2 {
					a.advance(30 * s)
					from := a.at()
					fn := a.plan(step{})
					for range 100 {
						if _, err := a.call(a.Context(), p, fn.run); err != nil {
							a.Fatal(err)
						}
					}
					for i, at := range fn.began() {
						if want := time.Duration(max(0, i-burst+1)) * s; at-from != want {
							a.Fatalf("call %d ran after %v, want %v", i, at-from, want)
						}
					}
				}
			})
		})
	}
}

func TestField_RL12_L8_ARush(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", limited(ratelimit.PerSecond(1), ratelimit.Burst(3), ratelimit.MaxWait(5*s)))
		fn := a.plan(step{})
		calls := make([]*running, 0, 1000)
		cancels := make([]context.CancelFunc, 0, 1000)
		for range 1000 {
			ctx, cancel := context.WithCancel(a.Context())
			defer cancel()
			cancels = append(cancels, cancel)
			calls = append(calls, a.start(ctx, p, fn.run))
		}
		l := a.reg.Snapshot().RateLimiters[0]
		if l.Admitted != 3 || l.Waiting != 5 || l.Rejected != 992 || fn.calls() != 3 {
			a.Fatalf("%+v, %d ran", l, fn.calls())
		}
		for _, r := range calls[8:] {
			var le *ratelimit.Error
			if !r.ended() || !errors.As(r.err, &le) || le.Wait <= 0 || le.Wait > 6*s {
				a.Fatalf("got %#v", r.err)
			}
		}
		a.advance(s)
		cancels[4]() // is due in a second
		for i := range 4 {
			want := []int{4, 5, 6, 7}[i]
			if n := fn.calls(); n != want {
				a.Fatalf("%d ran after %v, want %d", n, a.at(), want)
			}
			a.advance(s)
		}
		if l := a.reg.Snapshot().RateLimiters[0]; l.Admitted != 7 || l.Waiting != 0 {
			a.Errorf("%+v", l)
		}
	})
}

func TestLimit_O3_TheWaitIsOutsideTheTimeout(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(200*ms).RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(5*s))
		})
		_, _ = a.call(a.Context(), p, a.fails(0).run)
		fn := a.plan(step{takes: 300 * ms}, step{takes: 100 * ms, v: 7})
		_, err := a.call(a.Context(), p, fn.run)
		a.is(err, timeout.ErrExceeded)
		if a.at() != 1200*ms || fn.began()[0] != s {
			a.Errorf("began %v, ended at %v", fn.began(), a.at())
		}
		if v, err := a.call(a.Context(), p, fn.run); v != 7 || err != nil || a.at() != 2100*ms {
			a.Errorf("got %d, %v at %v", v, err, a.at())
		}
	})
}

// One limiter for the pipelines of several result types, by name; and one bucket.
func TestLimit_G1_OneLimiterForPipelinesOfDifferentResultTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t, inline, true)
		shared := []ratelimit.Option{ratelimit.PerSecond(3), ratelimit.Name("backend")}
		ints := build(a.world, "ints", limited(shared...))
		texts, err := pipeline.New[string](a.reg, "texts").RateLimit(shared...).Timeout(s).Build()
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := pipeline.New[[]byte](a.reg, "bytes").RateLimit(ratelimit.Name("backend")).Build()
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if _, err := ints.Execute(ctx, returns(1, nil)); err != nil {
			t.Error(err)
		}
		if v, err := texts.ExecuteAsync(ctx, func(context.Context) (string, error) { return "v", nil }).Get(ctx); v != "v" || err != nil {
			t.Error(v, err)
		}
		promise := pipeline.NewPromise[[]byte]()
		promise.Complete([]byte("v"), nil)
		if v, err := bytes.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[[]byte] { return promise.Future() }).Get(ctx); string(v) != "v" || err != nil {
			t.Error(v, err)
		}
		for name, err := range map[string]error{
			"ints":  ints.Run(ctx, func(context.Context) error { return nil }),
			"texts": texts.Run(ctx, func(context.Context) error { return nil }),
			"bytes": bytes.Run(ctx, func(context.Context) error { return nil }),
		} {
			var le *ratelimit.Error
			if !errors.As(err, &le) || le.ID() != "backend" {
				t.Errorf("%s: got %v, want a refusal by the shared limiter", name, err)
			}
		}
		if l := a.reg.Snapshot().RateLimiters; len(l) != 1 || l[0].ID != "backend" || l[0].Admitted != 3 || l[0].Rejected != 3 {
			t.Errorf("%+v", l)
		}
	})
}

// MaxWait belongs to the layer, the bucket to the instance.
func TestLimit_G1_TheWaitIsTheLayers(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		patient := build(a.world, "patient", limited(ratelimit.PerSecond(1), ratelimit.MaxWait(5*s), ratelimit.Name("backend")))
		hasty := build(a.world, "hasty", limited(ratelimit.PerSecond(1), ratelimit.Name("backend")))
		fn := a.plan(step{})
		_, _ = a.call(a.Context(), hasty, fn.run)
		r := a.start(a.Context(), patient, fn.run)
		if r.ended() {
			a.Fatal("does not wait")
		}
		_, err := a.call(a.Context(), hasty, fn.run)
		var le *ratelimit.Error
		if !errors.As(err, &le) || le.Wait != 2*s {
			a.Errorf("got %v, want a refusal with the place behind the waiter", err)
		}
		if _, err := r.end(); err != nil || a.at() != s {
			a.Errorf("%v at %v", err, a.at())
		}
	})
}
