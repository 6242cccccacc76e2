package conform_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

var roundsFlag = flag.Int("rounds", 0, "rounds of each race; 0: what takes some seconds")

// rounds is how many rounds a race is run for.
func rounds(n int) int {
	switch {
	case *roundsFlag > 0:
		return *roundsFlag
	case testing.Short():
		return n / 100
	case raceEnabled:
		return n / 20
	default:
		return n
	}
}

// together calls all functions as close to the same instant as goroutines can,
// in an order that nobody knows. Each waits for all others and then a few
// instructions more: else whoever was started last would always be the first.
func together(fs ...func()) {
	var ready atomic.Int32
	var wg sync.WaitGroup
	for _, i := range rand.Perm(len(fs)) {
		f, late := fs[i], rand.IntN(400)
		wg.Go(func() {
			ready.Add(1)
			for ready.Load() < int32(len(fs)) {
				runtime.Gosched()
			}
			for range late {
				ready.Load()
			}
			f()
		})
	}
	wg.Wait()
}

// eventually spins until the condition holds: it is a matter of instructions.
func eventually(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// answer is what the caller of a call got, in any form.
type answer struct {
	v   int
	err error
}

// pending is a call in flight.
type inFlight struct {
	cancel context.CancelFunc
	future *pipeline.Future[int] // nil: sync
	done   chan answer
}

// begin makes a call of the given form; a sync one on a goroutine of its own.
func begin(p *pipeline.Pipeline[int], f form, fn func(context.Context) (int, error), stage func(context.Context) *pipeline.Future[int]) *inFlight {
	ctx, cancel := context.WithCancel(context.Background())
	c := &inFlight{cancel: cancel, done: make(chan answer, 1)}
	switch f {
	case direct:
		go func() {
			v, err := p.Execute(ctx, fn)
			c.done <- answer{v, err}
		}()
	case async:
		c.future = p.ExecuteAsync(ctx, fn)
	case staged:
		c.future = p.ExecuteFuture(ctx, stage)
	}
	return c
}

// get waits for the answer, and lets go of the call's context.
func (c *inFlight) get() answer {
	defer c.cancel()
	if c.future == nil {
		return <-c.done
	}
	v, err := c.future.Get(context.Background())
	<-c.future.Work().Done()
	return answer{v, err}
}

// completed returns the work as a stage that is complete from the start.
func completed(fn func(context.Context) (int, error)) func(context.Context) *pipeline.Future[int] {
	return func(ctx context.Context) *pipeline.Future[int] {
		p := pipeline.NewPromise[int]()
		p.Complete(fn(ctx))
		return p.Future()
	}
}

// checkBalance fails the test unless the registry comes to rest. The end of a
// caller's context is told on a goroutine of package context: it ends the future
// first, and then what the call held or waited for.
func checkBalance(t *testing.T, reg *registry.Registry) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(imbalance(reg)) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	for _, what := range imbalance(reg) {
		t.Error(what)
	}
}

// imbalance is what keeps a registry from being at rest: counters that do not add
// up, and what is held, waited for or pending.
func imbalance(reg *registry.Registry) (all []string) {
	found := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	s := reg.Snapshot()
	if s.Wheel.Pending != 0 {
		found("%d deadlines are pending", s.Wheel.Pending)
	}
	for _, p := range s.Pipelines {
		if c := p.Calls; c.InFlight != 0 || c.Started != c.Succeeded+c.Failed+c.TimedOut+c.Cancelled+c.Rejected+c.Panicked {
			found("pipeline %s does not add up: %+v", p.ID, c)
		}
		if p.Abandoned.Running != 0 {
			found("pipeline %s: %d functions are said to run", p.ID, p.Abandoned.Running)
		}
	}
	for _, b := range s.Bulkheads {
		if b.InUse != 0 || b.Waiting != 0 || b.Available != b.Limit {
			found("bulkhead %s: %d of %d in use, %d waiting", b.ID, b.InUse, b.Limit, b.Waiting)
		}
	}
	for _, l := range s.RateLimiters {
		if l.Waiting != 0 {
			found("limiter %s: %d waiting", l.ID, l.Waiting)
		}
	}
	return all
}
