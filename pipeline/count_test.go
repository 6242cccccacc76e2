package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func TestCounts_S5_EveryCallOnceByItsFinalOutcome(t *testing.T) {
	slow := step{takes: time.Hour}
	twice := []retry.Option{retry.MaxAttempts(2), retry.Constant(0)}
	falls := func(v int, err error) func(*pipeline.Builder[int]) {
		return func(b *pipeline.Builder[int]) {
			b.Fallback(func(context.Context, error) (int, error) { return v, err })
		}
	}
	for _, c := range []struct {
		name   string
		build  func(b *pipeline.Builder[int])
		steps  []step
		before func(a *arena)
		cancel time.Duration // when the caller cancels; 0: never
		until  time.Duration // the caller's deadline; 0: none
		want   string
	}{
		{name: "ok", steps: []step{{v: 1}}, want: "succeeded"},
		{name: "its own error", steps: []step{{err: errBoom}}, want: "failed"},
		{name: "a driver's own deadline", steps: []step{{err: context.DeadlineExceeded}}, want: "failed"},
		{name: "a driver's own cancellation", steps: []step{{err: context.Canceled}}, want: "failed"},
		{name: "timeout", steps: []step{slow}, want: "timedOut"},
		{name: "ok in the second attempt", build: func(b *pipeline.Builder[int]) { b.Retry(twice...) }, steps: []step{slow, {v: 1}}, want: "succeeded"},
		{name: "timeouts to the end", build: func(b *pipeline.Builder[int]) { b.Retry(twice...) }, steps: []step{{err: errBoom}, slow}, want: "timedOut"},
		{name: "errors to the end", build: func(b *pipeline.Builder[int]) { b.Retry(twice...) }, steps: []step{slow, {err: errBoom}}, want: "failed"},
		{name: "a timeout, and no budget", build: func(b *pipeline.Builder[int]) { b.Retry(append(twice, retry.Budget(0, 0))...) }, steps: []step{slow}, want: "timedOut"},
		{name: "an error, and no budget", build: func(b *pipeline.Builder[int]) { b.Retry(append(twice, retry.Budget(0, 0))...) }, steps: []step{{err: errBoom}}, want: "failed"},
		{name: "MaxDuration cuts", build: func(b *pipeline.Builder[int]) { b.Retry(retry.MaxDuration(500 * ms)) }, steps: []step{slow}, want: "timedOut"},
		{name: "MaxDuration leaves no room", build: func(b *pipeline.Builder[int]) { b.Retry(retry.Constant(s), retry.MaxDuration(500*ms)) }, steps: []step{{err: errBoom}}, want: "timedOut"},
		{name: "the caller's deadline leaves no room", build: func(b *pipeline.Builder[int]) { b.Retry(retry.Constant(s)) }, steps: []step{{err: errBoom}}, until: 500 * ms, want: "cancelled"},
		{name: "the caller cancels", steps: []step{slow}, cancel: 500 * ms, want: "cancelled"},
		{name: "the caller's deadline", steps: []step{slow}, until: 500 * ms, want: "cancelled"},
		{name: "the caller cancels the backoff", build: func(b *pipeline.Builder[int]) { b.Retry(retry.Constant(s)) }, steps: []step{{err: errBoom}}, cancel: 500 * ms, want: "cancelled"},
		{name: "open", build: func(b *pipeline.Builder[int]) { b.CircuitBreaker() }, before: func(a *arena) { b, _ := a.reg.CircuitBreaker("x"); b.ForceOpen() }, steps: []step{{}}, want: "rejected"},
		{name: "limited", build: func(b *pipeline.Builder[int]) { b.RateLimit(ratelimit.PerSecond(1)) }, before: func(a *arena) { l, _ := a.reg.RateLimiter("x"); l.TryAcquire() }, steps: []step{{}}, want: "rejected"},
		{name: "limited, and no time", build: func(b *pipeline.Builder[int]) {
			b.RateLimit(ratelimit.PerSecond(1)).Retry(retry.Constant(0), retry.MaxDuration(500*ms))
		}, before: func(a *arena) { l, _ := a.reg.RateLimiter("x"); l.TryAcquire() }, steps: []step{{}}, want: "rejected"},
		{name: "a refusal after an error", build: func(b *pipeline.Builder[int]) {
			b.CircuitBreaker(circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(1)).Retry(retry.MaxAttempts(3), retry.Constant(0))
		}, steps: []step{{err: errBoom}}, want: "rejected"},
		{name: "closed", before: func(a *arena) { _ = a.reg.Close() }, steps: []step{{}}, want: "rejected"},
		{name: "a fallback's value", build: falls(9, nil), steps: []step{slow}, want: "succeeded"},
		{name: "a failed fallback counts as what it was asked for: timeout", build: falls(0, errBoom), steps: []step{slow}, want: "timedOut"},
		{name: "a failed fallback counts as what it was asked for: refusal", build: func(b *pipeline.Builder[int]) { falls(0, errBoom)(b); b.CircuitBreaker() }, before: func(a *arena) { b, _ := a.reg.CircuitBreaker("x"); b.ForceOpen() }, steps: []step{{}}, want: "rejected"},
		{name: "a fallback for another error", build: func(b *pipeline.Builder[int]) {
			b.Fallback(func(context.Context, error) (int, error) { return 9, nil }, fallback.On(errClosed))
		}, steps: []step{{err: errBoom}}, want: "failed"},
		{name: "value-based retry that runs out", build: func(b *pipeline.Builder[int]) { b.Retry(twice...).RetryIf(always) }, steps: []step{{v: 1}}, want: "succeeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					if c.build != nil {
						c.build(b)
					}
					return b.Timeout(s)
				})
				if c.before != nil {
					c.before(a)
				}
				ctx, cancel := context.WithCancel(a.Context())
				if c.until > 0 {
					cancel()
					ctx, cancel = a.withTimeout(c.until)
				}
				defer cancel()
				r := a.start(ctx, p, a.plan(c.steps...).run)
				if c.cancel > 0 {
					a.advance(c.cancel)
					cancel()
				}
				_, err := r.end()
				a.counted(c.want)
				if (err == nil) != (c.want == "succeeded") {
					a.Errorf("got %v", err)
				}
				a.advance(2 * time.Hour)
				a.counted(c.want)
			})
		})
	}
}

func TestCounts_S5_Cancel(t *testing.T) {
	inForms(t, []form{async, staged}, func(a *arena) {
		p := build(a.world, "x", twoSeconds)
		r := a.start(a.Context(), p, a.plan(step{takes: time.Hour}).run)
		r.future.Cancel()
		a.counted("cancelled") // before anybody can see that it is complete
	})
}

// The counters are set before the future completes, in whatever way that is seen.
func TestCounts_S5_BeforeTheFutureCompletes(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  step
		field func(registry.CallCounts) uint64
	}{
		{"ok", step{v: 1}, func(c registry.CallCounts) uint64 { return c.Succeeded }},
		{"error", step{err: errBoom}, func(c registry.CallCounts) uint64 { return c.Failed }},
		{"timeout", step{takes: time.Hour}, func(c registry.CallCounts) uint64 { return c.TimedOut }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inForms(t, []form{async, staged}, func(a *arena) {
				p := build(a.world, "x", twoSeconds)
				seen := make(chan uint64, 2)
				r := a.start(a.Context(), p, a.plan(c.step).run)
				r.future.OnComplete(func(int, error) { seen <- c.field(a.calls("x")) })
				go func() { <-r.future.Done(); seen <- c.field(a.calls("x")) }()
				_, _ = r.end()
				for range 2 {
					if n := <-seen; n != 1 {
						a.Errorf("a listener sees %d", n)
					}
				}
			})
		})
	}
}

// consistent checks what holds of every snapshot, and of two in turn.
func consistent(t *testing.T, last, now registry.Snapshot, queue int) {
	t.Helper()
	p, b, l, r := now.Pipelines[0], now.Bulkheads[0], now.RateLimiters[0], now.Retries[0]
	c := p.Calls
	ended := c.Succeeded + c.Failed + c.TimedOut + c.Cancelled + c.Rejected + c.Panicked
	if ended > c.Started || c.InFlight != int64(c.Started-ended) {
		t.Errorf("S-2: %+v", c)
	}
	if b.InUse < 0 || b.InUse > b.Limit || b.Available != b.Limit-b.InUse || b.Waiting < 0 || b.Waiting > queue {
		t.Errorf("S-2: %+v", b)
	}
	if l.Waiting < 0 || l.Available < 0 || l.Available > l.Config.Burst || p.Abandoned.Running < 0 || now.Wheel.Pending < 0 {
		t.Errorf("S-2: %+v, %+v, %+v", l, p.Abandoned, now.Wheel)
	}
	if len(last.Pipelines) == 0 {
		return
	}
	q := last.Pipelines[0]
	for i, n := range [][2]uint64{
		{q.Calls.Started, c.Started},
		{q.Calls.Succeeded, c.Succeeded},
		{q.Calls.Failed, c.Failed},
		{q.Calls.TimedOut, c.TimedOut},
		{q.Calls.Cancelled, c.Cancelled},
		{q.Calls.Rejected, c.Rejected},
		{q.Calls.Panicked, c.Panicked},
		{q.Abandoned.LateSuccess, p.Abandoned.LateSuccess},
		{q.Abandoned.LateFailure, p.Abandoned.LateFailure},
		{q.Abandoned.LatePanic, p.Abandoned.LatePanic},
		{last.Bulkheads[0].Admitted, b.Admitted},
		{last.Bulkheads[0].Rejected, b.Rejected},
		{last.RateLimiters[0].Admitted, l.Admitted},
		{last.RateLimiters[0].Rejected, l.Rejected},
		{last.Retries[0].Retries, r.Retries},
		{last.Retries[0].Exhausted, r.Exhausted},
		{last.Timeouts[0].TimedOut, now.Timeouts[0].TimedOut},
	} {
		if n[1] < n[0] {
			t.Errorf("S-2: counter %d went from %d to %d", i, n[0], n[1])
		}
	}
}

// Calls of all forms and with all outcomes, and a reader that never rests.
func TestCounts_S2_EverySnapshotIsConsistentUnderLoad(t *testing.T) {
	reg, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	const queue = 4
	p, err := pipeline.New[int](reg, "x").
		Retry(retry.MaxAttempts(2), retry.Constant(100*time.Microsecond), retry.AbortOn(bulkhead.ErrFull)).
		RateLimit(ratelimit.Per(200_000, s), ratelimit.MaxWait(ms)).Timeout(2*ms).
		Bulkhead(bulkhead.MaxConcurrent(3), bulkhead.Queue(queue)).Build()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var reader, callers sync.WaitGroup
	reader.Go(func() {
		var last registry.Snapshot
		for {
			now := reg.Snapshot()
			consistent(t, last, now, queue)
			last = now
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	for i := range 8 {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for range 200 {
				outcome := rnd.IntN(6)
				ctx, cancel := context.WithCancel(t.Context())
				fn := func(ctx context.Context) (int, error) {
					switch outcome {
					case 0:
						return 0, errBoom
					case 1:
						<-ctx.Done()
						return 0, ctx.Err()
					case 2:
						cancel()
						return 0, ctx.Err()
					case 3:
						return 0, retry.Permanent(errBoom)
					}
					return 1, nil
				}
				switch rnd.IntN(3) {
				case 0:
					_, _ = p.Execute(ctx, fn)
				case 1:
					_, _ = p.ExecuteAsync(ctx, fn).Get(context.Background())
				case 2:
					_, _ = p.ExecuteFuture(ctx, stageOf(fn)).Get(context.Background())
				}
				cancel()
			}
		})
	}
	callers.Wait()
	close(stop)
	reader.Wait()
	if err := reg.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := reg.Snapshot().Pipelines[0].Calls
	if ended := c.Succeeded + c.Failed + c.TimedOut + c.Cancelled + c.Rejected + c.Panicked; c.Started != 1600 || ended != 1600 {
		t.Errorf("S-2: idle, and %+v", c)
	}
}

func TestCounts_S2_AfterALowering(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", bulked(bulkhead.MaxConcurrent(2)))
		g := newGated()
		one, two := a.start(a.Context(), p, g.run), a.start(a.Context(), p, g.run)
		slots, _ := a.reg.Bulkhead("x")
		if err := slots.SetLimit(1); err != nil {
			a.Fatal(err)
		}
		if b := a.bulkhead(); b.Limit != 1 || b.InUse != 2 || b.Available != 0 {
			a.Errorf("%+v", b)
		}
		g.release()
		if _, err := a.call(a.Context(), p, g.run); !errors.Is(err, bulkhead.ErrFull) {
			a.Errorf("B-6: got %v", err)
		}
		g.open()
		_, _ = one.end()
		_, _ = two.end()
		if b := a.bulkhead(); b.Available != 1 {
			a.Errorf("%+v", b)
		}
	})
}

func TestField_SN02_ASnapshotSharesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t, inline, true)
		for _, id := range []string{"c", "a", "b"} {
			p := build(a.world, id, func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
				return tokens(2)(b).Retry(retry.On(errBoom), retry.Budget(.2, 1)).Timeout(1500 * ms).Bulkhead(bulkhead.MaxConcurrent(2))
			})
			_, _ = a.call(t.Context(), p, a.fails(1).run)
		}
		first, err := json.Marshal(a.reg.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		hurt := a.reg.Snapshot()
		slices.Reverse(hurt.Pipelines)
		for i := range hurt.Pipelines {
			slices.Reverse(hurt.Pipelines[i].Order)
			hurt.Retries[i].Config.Budget.Ratio = 99
			hurt.Bulkheads[i].InUse = 99
		}
		for range 20 {
			again, _ := json.Marshal(a.reg.Snapshot())
			if diff := cmp.Diff(string(first), string(again)); diff != "" {
				t.Fatal(diff)
			}
		}
		for _, part := range []string{`"value":"1.5s"`, `"limit":2,"inUse":0,"available":2`, `"findings":[`} {
			if !strings.Contains(string(first), part) {
				t.Errorf("no %s in %s", part, first)
			}
		}
		empty, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(empty.Snapshot()); strings.Contains(string(text), "null") {
			t.Errorf("null in %s", text)
		}
	})
}
