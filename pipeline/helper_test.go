package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry"
)

var epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

var errBoom = errors.New("boom")

// world is a registry on a manual clock, with everything that it published.
type world struct {
	*testing.T
	clk *clock.Manual
	reg *registry.Registry

	mu     sync.Mutex
	events []policy.Event
}

// newWorld ends with the assertions that every case ends with: nothing pending,
// nothing in use, nobody waiting.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, clock.NewManual(epoch))
}

func newWorldOn(t *testing.T, clk *clock.Manual) *world {
	t.Helper()
	w := &world{T: t, clk: clk}
	reg, err := registry.New(registry.WithClock(clk), registry.WithListener(w.hear))
	if err != nil {
		t.Fatal(err)
	}
	w.reg = reg
	t.Cleanup(w.settled)
	return w
}

func (w *world) hear(_ context.Context, e policy.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// heard returns the events of type E.
func heard[E policy.Event](w *world) (found []E) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

// settled waits until nothing is unsettled. The end of a caller's context is told on
// a goroutine of package context: it ends the future first, and what the call held
// or waited for soon after.
func (w *world) settled() {
	w.Helper()
	for end := time.Now().Add(time.Minute); len(w.unsettled()) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	w.mustBeSettled()
}

func (w *world) mustBeSettled() {
	w.Helper()
	for _, what := range w.unsettled() {
		w.Error(what)
	}
}

// unsettled says what is pending, in use, waited for or not counted.
func (w *world) unsettled() (all []string) {
	found := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if n := w.clk.Pending(); n != 0 {
		found("%d events are left on the clock", n)
	}
	s := w.reg.Snapshot()
	if s.Wheel.Pending != 0 {
		found("%d deadlines are pending", s.Wheel.Pending)
	}
	for _, b := range s.Bulkheads {
		if b.InUse != 0 || b.Waiting != 0 {
			found("bulkhead %s: in use %d, waiting %d", b.ID, b.InUse, b.Waiting)
		}
	}
	for _, l := range s.RateLimiters {
		if l.Waiting != 0 {
			found("limiter %s: waiting %d", l.ID, l.Waiting)
		}
	}
	for _, p := range s.Pipelines {
		c := p.Calls
		if c.InFlight != 0 || p.Abandoned.Running != 0 {
			found("pipeline %s: in flight %d, abandoned %d", p.ID, c.InFlight, p.Abandoned.Running)
		}
		if ended := c.Succeeded + c.Failed + c.TimedOut + c.Cancelled + c.Rejected + c.Panicked; c.Started != ended {
			found("pipeline %s: started %d, ended %d: %+v", p.ID, c.Started, ended, c)
		}
	}
	return all
}

func (w *world) at() time.Duration { return w.clk.Now().Sub(epoch) }

func (w *world) calls(id string) registry.CallCounts {
	w.Helper()
	return w.pipeline(id).Calls
}

func (w *world) pipeline(id string) registry.PipelineSnapshot {
	w.Helper()
	for _, p := range w.reg.Snapshot().Pipelines {
		if p.ID == id {
			return p
		}
	}
	w.Fatalf("no pipeline %q in the snapshot", id)
	return registry.PipelineSnapshot{}
}

// build makes a pipeline of ints.
func build(w *world, id string, layers func(*pipeline.Builder[int]) *pipeline.Builder[int]) *pipeline.Pipeline[int] {
	w.Helper()
	p, err := layers(pipeline.New[int](w.reg, id)).Build()
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func returns(v int, err error) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return v, err }
}

// is fails the test unless err matches all the wanted errors.
func (w *world) is(err error, wanted ...error) {
	w.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			w.Errorf("error %v does not match %v", err, want)
		}
	}
}

func (w *world) isNot(err error, unwanted ...error) {
	w.Helper()
	for _, bad := range unwanted {
		if errors.Is(err, bad) {
			w.Errorf("error %v matches %v", err, bad)
		}
	}
}

func (w *world) elapsed(want time.Duration) {
	w.Helper()
	if got := w.at(); got != want {
		w.Errorf("the clock stands at +%v, want +%v", got, want)
	}
}
