//go:build !race

package pipeline_test

import (
	"context"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// Making an event costs something, so the difference to a registry with a
// listener shows that without one none is made.
func TestEvents_NothingIsMadeWhenNobodyListens(t *testing.T) {
	for _, c := range allocCases {
		without := c.measure(t)
		with := c.measure(t, registry.WithListener(func(context.Context, policy.Event) {}))
		t.Logf("%s: %v allocations without a listener, %v with one", c.name, without, with)
		if without > c.most {
			t.Errorf("%s: %v allocations without a listener, want at most %v", c.name, without, c.most)
		}
		if with < without+c.events {
			t.Errorf("%s: %v allocations with a listener, %v without: something was made for nobody", c.name, with, without)
		}
		if c.events == 0 && with != without {
			t.Errorf("%s: a listener costs %v allocations though there is nothing to hear", c.name, with-without)
		}
	}
}

type allocCase struct {
	name   string
	events float64 // of one run
	most   float64 // allocations of one run that nobody hears of, those of the manual clock's timers included
	layers layers
	run    func(w *world, p *pipeline.Pipeline[int]) func()
}

func (c *allocCase) measure(t *testing.T, opts ...registry.Option) float64 {
	t.Helper()
	w := &world{T: t, clk: clock.NewManual(epoch)}
	reg, err := registry.New(append(opts, registry.WithClock(w.clk))...)
	if err != nil {
		t.Fatal(err)
	}
	w.reg = reg
	p := build(w, "x", c.layers)
	return testing.AllocsPerRun(200, c.run(w, p))
}

func execute(fn func(context.Context) (int, error)) func(w *world, p *pipeline.Pipeline[int]) func() {
	return func(_ *world, p *pipeline.Pipeline[int]) func() {
		ctx := context.Background()
		return func() { _, _ = p.Execute(ctx, fn) }
	}
}

var allocCases = []allocCase{
	{name: "success", events: 0, most: 10, layers: func(b builder) builder {
		return b.Retry().CircuitBreaker().RateLimit(ratelimit.PerSecond(1e6)).Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(1)).
			Fallback(func(context.Context, error) (int, error) { return 0, nil }, fallback.SkipOn(errNotFound))
	}, run: execute(returns(7, nil))},
	{name: "limited", events: 1, most: 1, layers: func(b builder) builder { return b.RateLimit(ratelimit.Per(1, time.Hour)) }, run: execute(returns(7, nil))},
	{name: "full", events: 1, most: 0, layers: func(b builder) builder { return b.Bulkhead(bulkhead.MaxConcurrent(1)) }, run: func(w *world, p *pipeline.Pipeline[int]) func() {
		bh, _ := w.reg.Bulkhead("x")
		bh.TryAcquire()
		return execute(returns(7, nil))(w, p)
	}},
	{name: "rejected", events: 1, most: 1, layers: broken(), run: func(w *world, p *pipeline.Pipeline[int]) func() {
		w.trip("x")
		return execute(returns(7, nil))(w, p)
	}},
	{name: "failure", events: 0, most: 1, layers: func(b builder) builder { return b.CircuitBreaker() }, run: func(w *world, p *pipeline.Pipeline[int]) func() {
		breakerOf(w, "x").ForceClosed()
		return execute(returns(0, errBoom))(w, p)
	}},
	{name: "state", events: 2, most: 6, layers: broken(circuitbreaker.OpenFor(1)), run: func(w *world, p *pipeline.Pipeline[int]) func() {
		return func() {
			_, _ = p.Execute(context.Background(), returns(0, errBoom))
			w.clk.Advance(1)
		}
	}},
	{name: "retrying, gave up", events: 2, most: 7, layers: retrying(retry.MaxAttempts(2), retry.Constant(0)), run: execute(returns(0, errBoom))},
	{name: "gave up", events: 1, most: 2, layers: retrying(retry.MaxAttempts(1)), run: execute(returns(0, errBoom))},
	{name: "exceeded", events: 1, most: 9, layers: twoSeconds, run: func(w *world, p *pipeline.Pipeline[int]) func() {
		return execute(func(ctx context.Context) (int, error) { return 0, w.clk.Sleep(ctx, 3*time.Second) })(w, p)
	}},
	{name: "late success", events: 2, most: 10, layers: twoSeconds, run: func(w *world, p *pipeline.Pipeline[int]) func() {
		return execute(func(context.Context) (int, error) { w.clk.Advance(3 * time.Second); return 7, nil })(w, p)
	}},
	{name: "applied", events: 1, most: 0, layers: func(b builder) builder {
		return b.Fallback(func(context.Context, error) (int, error) { return 9, nil })
	}, run: execute(returns(0, errBoom))},
}
