package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

func bulked(opts ...bulkhead.Option) layers {
	return func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Bulkhead(opts...) }
}

// gated is work that runs until it is let go, and tells how many run at once.
type gated struct {
	gate          chan struct{}
	running, peak atomic.Int64
	ran           atomic.Int64
}

func newGated() *gated { return &gated{gate: make(chan struct{})} }

func (g *gated) run(context.Context) (int, error) {
	n := g.running.Add(1)
	for p := g.peak.Load(); n > p; p = g.peak.Load() {
		if g.peak.CompareAndSwap(p, n) {
			break
		}
	}
	<-g.gate
	g.running.Add(-1)
	g.ran.Add(1)
	return 7, nil
}

// release lets one go, or all.
func (g *gated) release() { g.gate <- struct{}{}; synctest.Wait() }
func (g *gated) open()    { close(g.gate); synctest.Wait() }

func (a *arena) bulkhead() bulkhead.Snapshot { return a.reg.Snapshot().Bulkheads[0] }

func TestBulkhead_B2_QueueAndMaxWait(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    []bulkhead.Option
		waiting int           // of ten newcomers
		gone    time.Duration // when those who wait give up; 0: never
	}{
		{"neither", nil, 0, 0},
		{"Queue alone", []bulkhead.Option{bulkhead.Queue(3)}, 3, 0},
		{"MaxWait alone", []bulkhead.Option{bulkhead.MaxWait(s)}, 10, s},
		{"both", []bulkhead.Option{bulkhead.Queue(3), bulkhead.MaxWait(s)}, 3, s},
		{"Queue 0", []bulkhead.Option{bulkhead.Queue(0), bulkhead.MaxWait(s)}, 0, 0},
		{"MaxWait 0", []bulkhead.Option{bulkhead.Queue(3), bulkhead.MaxWait(0)}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", bulked(append(c.opts, bulkhead.MaxConcurrent(1))...))
				g := newGated()
				holder := a.start(a.Context(), p, g.run)
				var calls []*running
				for range 10 {
					calls = append(calls, a.start(a.Context(), p, g.run))
				}
				if b := a.bulkhead(); b.Waiting != c.waiting || b.Rejected != uint64(10-c.waiting) {
					a.Errorf("%d wait, %d rejected; want %d waiting", b.Waiting, b.Rejected, c.waiting)
				}
				full := 0
				check := func(from int, after time.Duration) {
					for _, r := range calls[from:] {
						if !r.ended() {
							continue
						}
						full++
						var fe *bulkhead.Error
						if !errors.As(r.err, &fe) || fe.Waited != after || r.over != after || fe.Limit != 1 || !policy.NotStarted(r.err) {
							a.Errorf("got %#v at %v, want a refusal after %v", r.err, r.over, after)
						}
						a.is(r.err, bulkhead.ErrFull)
					}
				}
				check(0, 0)
				calls = calls[:c.waiting]
				a.advance(10 * s)
				full = 0
				check(0, c.gone)
				if want := map[bool]int{true: c.waiting, false: 0}[c.gone > 0]; full != want {
					a.Errorf("%d gave up, want %d", full, want)
				}
				g.open()
				if _, err := holder.end(); err != nil {
					a.Error(err)
				}
				for _, r := range calls {
					_, _ = r.end()
				}
				if want := 1 + c.waiting - full; int(g.ran.Load()) != want {
					a.Errorf("%d ran, want %d", g.ran.Load(), want)
				}
			})
		})
	}
}

func TestBulkhead_B2_FirstInFirstOut(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", bulked(bulkhead.MaxConcurrent(1), bulkhead.Queue(10)))
		var order []int
		g := newGated()
		calls := []*running{a.start(a.Context(), p, g.run)}
		for i := range 5 {
			calls = append(calls, a.start(a.Context(), p, func(ctx context.Context) (int, error) {
				order = append(order, i)
				return g.run(ctx)
			}))
		}
		for range calls {
			g.release()
		}
		for _, r := range calls {
			_, _ = r.end()
		}
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, order); diff != "" {
			a.Error(diff)
		}
	})
}

func TestField_TO07_B4_ATimeoutInTheQueueInEveryForm(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		shared := []bulkhead.Option{bulkhead.MaxConcurrent(1), bulkhead.MaxWait(time.Minute), bulkhead.Name("shared")}
		holder := build(a.world, "holder", bulked(shared...))
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Timeout(50 * ms).Bulkhead(shared...)
		})
		held := a.start(a.Context(), holder, a.plan(step{takes: 200 * ms}).run)
		fn := a.fails(0)
		r := a.start(a.Context(), p, fn.run)
		a.advance(50 * ms)
		if !r.ended() || r.over != 50*ms {
			a.Fatal("not at its timeout")
		}
		var te *timeout.Error
		if !errors.As(r.err, &te) || te.Started() || te.Cause != nil || !policy.NotStarted(r.err) {
			a.Errorf("got %#v", r.err)
		}
		a.isNot(r.err, bulkhead.ErrFull)
		if b := a.bulkhead(); b.Waiting != 0 || b.Rejected != 0 || b.InUse != 1 {
			a.Errorf("%+v", b)
		}
		_, _ = held.end()
		a.advance(s)
		if n := fn.calls(); n != 0 {
			a.Errorf("ran %d times", n)
		}
		a.counted("timedOut")
	})
}

func TestField_BH06_A5_TheSlotIsHeldUntilTheFunctionHasReturned(t *testing.T) {
	for _, free := range []bool{false, true} {
		t.Run(map[bool]string{false: "held", true: "FreeOnTimeout"}[free], func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				opts := []bulkhead.Option{bulkhead.MaxConcurrent(1)}
				if free {
					opts = append(opts, bulkhead.FreeOnTimeout())
				}
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
					return b.Timeout(50 * ms).Bulkhead(opts...)
				})
				r := a.start(a.Context(), p, a.plan(step{takes: 540 * ms, deaf: true}).run)
				a.advance(100 * ms)
				second := a.fails(0)
				_, err := a.call(a.Context(), p, second.run)
				// A stage is cancelled, and counts as ended.
				freed := a.form == staged || free && a.form == async
				if ran := second.calls() == 1; ran != freed || !freed && !errors.Is(err, bulkhead.ErrFull) {
					a.Errorf("the second call: %v", err)
				}
				if b := a.bulkhead(); (b.InUse == 0) != freed {
					a.Errorf("%+v", b)
				}
				running := int64(0)
				if a.form == async {
					running = 1
				}
				if n := a.pipeline("x").Abandoned.Running; n != running {
					a.Errorf("abandoned.running %d, want %d", n, running)
				}
				_, err = r.end()
				a.is(err, timeout.ErrExceeded)
				if want := map[bool]time.Duration{true: 540 * ms, false: 50 * ms}[a.form == inline]; r.over != want {
					a.Errorf("ended at %v, want %v", r.over, want)
				}
				a.advance(s)
				if b := a.bulkhead(); b.InUse != 0 || b.Available != 1 {
					a.Errorf("not released, or twice: %+v", b)
				}
			})
		})
	}
}

func TestField_BH01_GrantsDoNotGoToThoseWhoGaveUp(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", bulked(bulkhead.MaxConcurrent(8), bulkhead.MaxWait(50*ms)))
		for range 10 {
			g := newGated()
			var calls []*running
			for range 16 {
				calls = append(calls, a.start(a.Context(), p, g.run))
			}
			a.advance(50 * ms)
			for _, r := range calls[8:] {
				if !r.ended() {
					a.Fatal("waits for too long")
				}
				a.is(r.err, bulkhead.ErrFull)
			}
			g.open()
			for _, r := range calls[:8] {
				_, _ = r.end()
			}
			if b := a.bulkhead(); b.Available != 8 || b.Waiting != 0 || g.peak.Load() != 8 || g.ran.Load() != 8 {
				a.Fatalf("%+v, peak %d, ran %d", b, g.peak.Load(), g.ran.Load())
			}
		}
	})
}

func TestField_BH03_BH09_ARush(t *testing.T) {
	for _, c := range []struct {
		name              string
		limit, queue, all int
		names             []string // of the pipelines that share it
	}{
		{"BH03 no queue", 100, 0, 10_000, []string{"one"}},
		{"BH03 two pipelines", 100, 0, 10_000, []string{"one", "two"}},
		{"BH09 a queue", 4, 6, 1000, []string{"one"}},
	} {
		if raceEnabled {
			c.all = min(c.all, 1000) // each goroutine costs a hundred times as much
		}
		t.Run(c.name, func(t *testing.T) {
			for _, f := range forms {
				t.Run(string(f), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						a := newArena(t, f, false)
						var ps []*pipeline.Pipeline[int]
						for _, name := range c.names {
							ps = append(ps, build(a.world, name, bulked(bulkhead.MaxConcurrent(c.limit), bulkhead.Queue(c.queue), bulkhead.Name("shared"))))
						}
						g, results := newGated(), make(chan error, c.all)
						for i := range c.all {
							go func() {
								p := ps[i%len(ps)]
								var err error
								switch f {
								case inline:
									_, err = p.Execute(t.Context(), g.run)
								case async:
									_, err = p.ExecuteAsync(t.Context(), g.run).Get(t.Context())
								case staged:
									_, err = p.ExecuteFuture(t.Context(), stageOf(g.run)).Get(t.Context())
								}
								results <- err
							}()
						}
						synctest.Wait()
						if b := a.bulkhead(); b.InUse != c.limit || b.Waiting != c.queue || int(b.Rejected) != c.all-c.limit-c.queue {
							t.Fatalf("%+v", b)
						}
						if n := len(results); n != c.all-c.limit-c.queue {
							t.Errorf("%d have returned", n)
						}
						g.open()
						full := 0
						for range c.all {
							if err := <-results; errors.Is(err, bulkhead.ErrFull) {
								full++
							} else if err != nil {
								t.Error(err)
							}
						}
						if full != c.all-c.limit-c.queue || int(g.peak.Load()) != c.limit || int(g.ran.Load()) != c.limit+c.queue {
							t.Errorf("full %d, peak %d, ran %d", full, g.peak.Load(), g.ran.Load())
						}
						if b := a.bulkhead(); b.Available != c.limit || b.Waiting != 0 {
							t.Errorf("%+v", b)
						}
					})
				})
			}
		})
	}
}

func TestField_BH08_DeadWaitersTakeNoPlace(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		p := build(a.world, "x", bulked(bulkhead.MaxConcurrent(1), bulkhead.Queue(10)))
		g := newGated()
		holder := a.start(a.Context(), p, g.run)
		never := a.fails(0)
		for range 100 {
			ctx, cancel := context.WithCancel(a.Context())
			var batch []*running
			for range 10 {
				batch = append(batch, a.start(ctx, p, never.run))
			}
			cancel()
			for _, r := range batch {
				if !r.ended() || !errors.Is(r.err, context.Canceled) {
					a.Fatalf("got %v", r.err)
				}
			}
			if b := a.bulkhead(); b.Waiting != 0 || b.Rejected != 0 {
				a.Fatalf("%+v", b)
			}
		}
		last := a.fails(0)
		r := a.start(a.Context(), p, last.run)
		g.open()
		if v, err := r.end(); v != 7 || err != nil || never.calls() != 0 {
			a.Errorf("got %d, %v; the cancelled ones ran %d times", v, err, never.calls())
		}
		_, _ = holder.end()
	})
}

// The holder leaves and the waiter's context ends at the same moment: the waiter
// runs or is cancelled, and the one behind it runs in any case.
func TestField_BH11_B3_CancelledAtTheMomentOfTheGrant(t *testing.T) {
	for _, f := range forms {
		t.Run(string(f), func(t *testing.T) {
			w := newWorld(t)
			p := build(w, "x", bulked(bulkhead.MaxConcurrent(1), bulkhead.Queue(2)))
			slots, _ := w.reg.Bulkhead("x")
			call := func(ctx context.Context, ran *atomic.Bool) error {
				fn := func(context.Context) (int, error) { ran.Store(true); return 0, nil }
				var err error
				switch f {
				case inline:
					_, err = p.Execute(ctx, fn)
				case async:
					_, err = p.ExecuteAsync(ctx, fn).Get(context.Background())
				case staged:
					_, err = p.ExecuteFuture(ctx, func(ctx context.Context) *pipeline.Future[int] {
						promise := pipeline.NewPromise[int]()
						promise.Complete(fn(ctx))
						return promise.Future()
					}).Get(context.Background())
				}
				return err
			}
			for round := range 500 {
				if !slots.TryAcquire() {
					t.Fatalf("round %d: the slot is lost", round)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var ran, behind atomic.Bool
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- call(ctx, &ran) }()
				for slots.Snapshot().Waiting < 1 {
					runtime.Gosched()
				}
				go func() { second <- call(t.Context(), &behind) }()
				for slots.Snapshot().Waiting < 2 {
					runtime.Gosched()
				}
				barrier := make(chan struct{})
				go func() { <-barrier; cancel() }()
				go func() { <-barrier; slots.Release() }()
				close(barrier)
				err := <-first
				if err2 := <-second; err2 != nil || !behind.Load() {
					t.Fatalf("round %d: the one behind: %v", round, err2)
				}
				// An async call that is cancelled while it runs is cancelled all the same.
				if err != nil && !errors.Is(err, context.Canceled) || err == nil && !ran.Load() || f == inline && err != nil && ran.Load() {
					t.Fatalf("round %d: ran %v, %v", round, ran.Load(), err)
				}
				cancel()
				// Async: the slot stands for running work, which is abandoned a little longer.
				for slots.Snapshot().InUse != 0 || w.pipeline("x").Abandoned.Running != 0 {
					runtime.Gosched()
				}
			}
		})
	}
}

func TestAsync_A10_TheLayersAreAskedInTheCall(t *testing.T) {
	inForms(t, []form{async}, func(a *arena) {
		p := build(a.world, "x", bulked(bulkhead.MaxConcurrent(1), bulkhead.Queue(3)))
		limit := build(a.world, "limit", limited(ratelimit.PerSecond(1)))
		backoff := build(a.world, "backoff", retrying(retry.Constant(s)))
		g := newGated()
		holder := p.ExecuteAsync(a.Context(), g.run)
		if b := a.bulkhead(); b.InUse != 1 { // before anything else has run
			a.Errorf("asked later: %+v", b)
		}
		synctest.Wait()
		before := testkit.Goroutines(a)
		var order []int
		var futures []*pipeline.Future[int]
		for i := range 5 {
			futures = append(futures, p.ExecuteAsync(a.Context(), func(context.Context) (int, error) { order = append(order, i); return i, nil }))
		}
		for _, f := range futures[3:] {
			if _, done, err := f.Poll(); !done || !errors.Is(err, bulkhead.ErrFull) {
				a.Errorf("not refused in the call: %v", err)
			}
		}
		_, _ = limit.ExecuteAsync(a.Context(), returns(1, nil)).Get(a.Context())
		if _, done, err := limit.ExecuteAsync(a.Context(), returns(1, nil)).Poll(); !done || !errors.Is(err, ratelimit.ErrLimited) {
			a.Errorf("not refused in the call: %v", err)
		}
		sleeping := backoff.ExecuteAsync(a.Context(), returns(0, errBoom))
		synctest.Wait()
		if n := testkit.Goroutines(a); n > before {
			a.Errorf("%d goroutines for three that wait, two refused and one in its backoff", n-before)
		}
		sleeping.Cancel()
		g.open()
		_, _ = holder.Get(a.Context())
		for _, f := range futures[:3] {
			if _, err := f.Get(a.Context()); err != nil {
				a.Error(err)
			}
		}
		if diff := cmp.Diff([]int{0, 1, 2}, order); diff != "" {
			a.Errorf("not in submission order: %s", diff)
		}
	})
}
