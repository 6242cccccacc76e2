package conform_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// The work's own end, the deadline, Cancel and Close at one moment, with the
// call's function running or the call in the bulkhead's queue: one of them wins,
// and whichever it is, all comes back.
func TestEndsAtOnce(t *testing.T) {
	stacks := []layers{
		timeoutLayer,
		timeoutLayer | bulkheadLayer,
		retryLayer | timeoutLayer | bulkheadLayer,
		breakerLayer | timeoutLayer | bulkheadLayer,
		allLayers &^ fallbackLayer,
	}
	for _, form := range []form{async, staged} {
		for _, queued := range []bool{false, true} {
			name := string(form) + "/running"
			if queued {
				name = string(form) + "/queued"
			}
			t.Run(name, func(t *testing.T) {
				won := map[string]int{}
				for i := range rounds(10_000) {
					set := stacks[i%len(stacks)]
					if queued && !set.has(bulkheadLayer) {
						continue
					}
					e := &ending{T: t, set: set, form: form, queued: queued, round: i}
					won[e.run()]++
				}
				t.Log(won)
			})
		}
	}
}

type ending struct {
	*testing.T
	set    layers
	form   form
	queued bool
	round  int

	clk *clock.Manual
	reg *registry.Registry
	p   *pipeline.Pipeline[int]
	a   values
}

func (e *ending) run() (winner string) {
	e.clk = clock.NewManual(epoch).Passive()
	var err error
	if e.reg, err = registry.New(registry.WithClock(e.clk)); err != nil {
		e.Fatal(err)
	}
	e.p, err = e.set.build(pipeline.New[int](e.reg, "x"), true, 0).OnDiscard(e.a.discard).Build()
	if err != nil {
		e.Fatal(err)
	}
	breaker, _ := e.reg.CircuitBreaker("x")
	if breaker != nil {
		permit, _ := breaker.Allow()
		permit.Record(errBoom)
		e.clk.Advance(openFor)
	}
	b, _ := e.reg.Bulkhead("x")
	if e.queued {
		for b.TryAcquire() {
		}
	}

	var entered atomic.Int64
	gate := make(chan struct{})
	var promises atomic.Pointer[pipeline.Promise[int]]
	c := begin(e.p, e.form, func(context.Context) (int, error) {
		entered.Add(1)
		<-gate
		return e.a.produce(), nil
	}, func(context.Context) *pipeline.Future[int] {
		entered.Add(1)
		p := pipeline.NewPromise[int]()
		promises.Store(p)
		if e.queued { // it ends by itself
			e.complete(p)
		}
		return p.Future()
	})
	finish := func() { close(gate) }
	switch {
	case e.queued:
		close(gate)
		finish = func() { b.Release() }
	case e.form == staged:
		finish = func() { e.complete(promises.Load()) }
	}
	cancel := func() { c.future.Cancel() }
	if e.round%2 == 0 {
		cancel = c.cancel
	}
	together(finish, cancel, func() { e.clk.Advance(limit) }, func() { _ = e.reg.Close() })
	if e.queued { // the other slots
		for range slots - 1 {
			b.Release()
		}
	}
	got := c.get()
	if got.err == nil {
		e.a.deliver(got.v)
	}
	winner = e.check(got, entered.Load())
	if breaker != nil && winner != "closed" {
		if s := breaker.State(); s == circuitbreaker.Open {
			e.Errorf("round %d, %v: the breaker is open after %s", e.round, e.set, winner)
		}
	}
	return winner
}

// complete completes a stage, and keeps account of its value.
func (e *ending) complete(p *pipeline.Promise[int]) {
	v := e.a.produce()
	if !p.Complete(v, nil) {
		e.a.discard(v) // ours again
	}
}

func (e *ending) check(got answer, entered int64) (winner string) {
	c := e.reg.Snapshot().Pipelines[0].Calls
	var counted uint64
	switch {
	case got.err == nil:
		winner, counted = "finished", c.Succeeded
	case errors.Is(got.err, registry.ErrClosed):
		winner, counted = "closed", c.Rejected
	case errors.Is(got.err, context.Canceled):
		winner, counted = "cancelled", c.Cancelled
	case errors.Is(got.err, timeout.ErrExceeded):
		winner, counted = "timed out", c.TimedOut
	default:
		e.Errorf("round %d, %v: ended with %v", e.round, e.set, got.err)
		return "other"
	}
	if counted != 1 || c.Started != 1 {
		e.Errorf("round %d, %v: %s (%v), counted as %+v", e.round, e.set, winner, got.err, c)
	}
	if entered > 1 && !e.set.has(retryLayer) || entered > attempts || got.err == nil && entered < 1 {
		e.Errorf("round %d, %v: %s, entered %d times", e.round, e.set, winner, entered)
	}
	if err := e.reg.Drain(context.Background()); err != nil {
		e.Error(err)
	}
	// The goroutine of a fallback, a slot or a limiter may be on its last steps.
	eventually(func() bool { return e.clk.Pending() == 0 && e.reg.Snapshot().Wheel.Pending == 0 })
	if e.set.has(bulkheadLayer) {
		b, _ := e.reg.Bulkhead("x")
		eventually(func() bool { return b.Snapshot().InUse == 0 })
	}
	checkBalance(e.T, e.reg)
	// The caller's end is told by a goroutine of its own, which may still be
	// handing over the value of a stage that completed meanwhile.
	eventually(func() bool { return e.a.delivered.Load()+e.a.discarded.Load() == e.a.produced.Load() })
	if d, p := e.a.delivered.Load()+e.a.discarded.Load(), e.a.produced.Load(); d != p {
		e.Errorf("round %d, %v: %s: %d values are accounted for of %d", e.round, e.set, winner, d, p)
	}
	return winner
}
