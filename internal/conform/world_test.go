package conform_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/registry"
)

var epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// world is one pipeline in a registry of its own, inside a synctest bubble: the
// bubble says when nothing more happens by itself, and that nothing is left.
type world struct {
	*testing.T
	cell   cell
	manual *clock.Manual // nil: the system's clock, as the bubble has it
	clk    clock.Clock
	reg    *registry.Registry
	p      *pipeline.Pipeline[int]
	work   *work

	bulkhead *bulkhead.Policy
	limiter  *ratelimit.Policy
	breaker  *circuitbreaker.Policy
	admitted uint64 // by the limiter, before the call

	future    atomic.Pointer[pipeline.Future[int]] // once there is one
	discarded atomic.Int64
	timers    []clock.Timer // of what happens from outside

	// The fallback: it fails, or waits for its context's end.
	fallbackFails, fallbackBlocks bool
}

// newWorld makes the stack of a cell. A breaker is half-open, so that each
// attempt is one of its probes.
func newWorld(t *testing.T, c cell) *world {
	t.Helper()
	w := &world{T: t, cell: c, clk: clock.System(), fallbackFails: c.fallbackFails}
	switch c.mode {
	case driving:
		w.manual = clock.NewManual(epoch)
	case passive:
		w.manual = clock.NewManual(epoch).Passive()
	case system:
	}
	if w.manual != nil {
		w.clk = w.manual
	}
	w.work = &work{clk: w.clk}
	reg, err := registry.New(registry.WithClock(w.clk))
	if err != nil {
		t.Fatal(err)
	}
	w.reg = reg
	b := c.set.build(pipeline.New[int](reg, "x"), c.outcome.waits, c.outcome.total)
	if c.set != noLayers {
		b.OnDiscard(func(int) { w.discarded.Add(1) })
	}
	if c.set.has(fallbackLayer) {
		b.Fallback(w.fallback)
	}
	if w.p, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	w.bulkhead, _ = reg.Bulkhead("x")
	w.limiter, _ = reg.RateLimiter("x")
	if w.breaker, _ = reg.CircuitBreaker("x"); w.breaker != nil {
		permit, err := w.breaker.Allow()
		if err != nil {
			t.Fatal(err)
		}
		permit.Record(errBoom)
		w.pass(openFor)
	}
	return w
}

const fromFallback = -1

func (w *world) fallback(ctx context.Context, _ error) (int, error) {
	if w.fallbackBlocks {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if w.fallbackFails {
		return 0, errFallback
	}
	return fromFallback, nil
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	if w.manual != nil {
		w.manual.Advance(d)
		return
	}
	_ = w.clk.Sleep(context.Background(), d)
}

// after arranges for f to be called from outside.
func (w *world) after(d time.Duration, f func()) { w.timers = append(w.timers, w.clk.AfterFunc(d, f)) }

// fillBulkhead takes all slots. They are given back at the end of the cell, or
// earlier.
func (w *world) fillBulkhead() {
	for range slots {
		if !w.bulkhead.TryAcquire() {
			w.fail("no slot is free before the call")
		}
	}
}

func (w *world) emptyBulkhead() {
	for range slots {
		w.bulkhead.Release()
	}
}

// emptyLimiter takes all permits.
func (w *world) emptyLimiter() {
	for range permits {
		if !w.limiter.TryAcquire() {
			w.fail("no permit is there before the call")
		}
	}
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Errorf(w.cell.String()+": "+format, args...)
}

// until lets the world go on until done is closed.
func (w *world) until(done <-chan struct{}) bool {
	if w.cell.mode != passive {
		<-done // a sync call drives its clock by itself, and a bubble its own
		return true
	}
	for {
		synctest.Wait()
		select {
		case <-done:
			return true
		default:
		}
		next, ok := w.manual.Next()
		if !ok {
			w.fail("it hangs: nothing is pending")
			return false
		}
		w.manual.Set(next)
	}
}

// rest lets everything end that is still to happen.
func (w *world) rest() {
	for _, t := range w.timers {
		t.Stop()
	}
	if w.manual == nil {
		_ = w.clk.Sleep(context.Background(), 4*slow)
		synctest.Wait()
		return
	}
	for {
		synctest.Wait()
		next, ok := w.manual.Next()
		if !ok {
			return
		}
		w.manual.Set(next)
	}
}

// pipeline is the row of the one pipeline.
func (w *world) pipeline() registry.PipelineSnapshot { return w.reg.Snapshot().Pipelines[0] }
