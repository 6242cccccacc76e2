package conform_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// values keeps account of what was produced, delivered and discarded.
type values struct {
	produced, delivered, discarded atomic.Int64
	mu                             sync.Mutex
	gone                           map[int]string
}

func (a *values) produce() int { return int(a.produced.Add(1)) }

func (a *values) discard(v int) { a.went(v, "discarded"); a.discarded.Add(1) }
func (a *values) deliver(v int) { a.went(v, "delivered"); a.delivered.Add(1) }

// went notes where a value went, which happens once.
func (a *values) went(v int, how string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone == nil {
		a.gone = map[int]string{}
	}
	if before, twice := a.gone[v]; twice {
		how = before + " and " + how
	}
	a.gone[v] = how
}

func (a *values) check(t *testing.T) {
	t.Helper()
	if a.delivered.Load()+a.discarded.Load() != a.produced.Load() {
		t.Errorf("delivered %d + discarded %d ≠ produced %d", a.delivered.Load(), a.discarded.Load(), a.produced.Load())
	}
	for v, how := range a.gone {
		if how != "delivered" && how != "discarded" {
			t.Errorf("value %d was %s", v, how)
		}
	}
	t.Logf("delivered %d, discarded %d", a.delivered.Load(), a.discarded.Load())
}

// T-14: a function returns a value at the very moment of its deadline, 10,000
// times a form: each value is delivered or discarded, once.
func TestField_TO11_CompletionAgainstDeadline(t *testing.T) {
	for _, form := range forms {
		t.Run(string(form), func(t *testing.T) {
			clk := clock.NewManual(epoch).Passive()
			reg, err := registry.New(registry.WithClock(clk))
			if err != nil {
				t.Fatal(err)
			}
			var a values
			bare, err := pipeline.New[int](reg, "bare").Timeout(limit).OnDiscard(a.discard).Build()
			if err != nil {
				t.Fatal(err)
			}
			full, err := allLayers.build(pipeline.New[int](reg, "full"), true, 0).
				Fallback(func(context.Context, error) (int, error) { return 0, nil }).
				RetryIf(func(int, error) bool { return false }).OnDiscard(a.discard).Build()
			if err != nil {
				t.Fatal(err)
			}
			b, _ := reg.CircuitBreaker("full")
			b.ForceClosed() // or it opens at the first timeout
			l, _ := reg.RateLimiter("full")
			if err := l.SetRate(1_000_000, time.Second, 1_000_000); err != nil {
				t.Fatal(err)
			}
			for i := range rounds(10_000) {
				p := bare
				if i%2 == 1 {
					p = full
				}
				raceDeadline(p, form, clk, &a)
			}
			a.check(t)
			checkBalance(t, reg)
		})
	}
}

func raceDeadline(p *pipeline.Pipeline[int], f form, clk *clock.Manual, a *values) {
	entered, gate := make(chan struct{}), make(chan struct{})
	promise := pipeline.NewPromise[int]()
	finish := func() { close(gate) }
	if f == staged {
		finish = func() {
			v := a.produce()
			if !promise.Complete(v, nil) { // it stays ours
				a.discard(v)
			}
		}
	}
	c := begin(p, f, func(context.Context) (int, error) {
		close(entered)
		<-gate
		return a.produce(), nil
	}, func(context.Context) *pipeline.Future[int] {
		close(entered)
		return promise.Future()
	})
	<-entered
	if f == staged { // its deadline is set once the function has returned
		eventually(func() bool { return clk.Pending() > 0 })
	}
	together(func() { clk.Advance(limit) }, finish)
	if got := c.get(); got.err == nil && got.v > 0 {
		a.deliver(got.v)
	}
}

// The same on the system's clock, whose wheel ends many at one tick: the calls
// of a batch return when they see one of them expire.
func TestField_TO11_CompletionAgainstTheWheel(t *testing.T) {
	const batch = 100
	for _, form := range []form{direct, async} {
		t.Run(string(form), func(t *testing.T) {
			reg, err := registry.New()
			if err != nil {
				t.Fatal(err)
			}
			var a values
			p, err := pipeline.New[int](reg, "x").Timeout(2 * time.Millisecond).Retry(retry.MaxAttempts(1)).OnDiscard(a.discard).Build()
			if err != nil {
				t.Fatal(err)
			}
			for range max(rounds(10_000)/batch, 1) {
				gate := make(chan struct{})
				open := sync.OnceFunc(func() { close(gate) })
				var calls []*inFlight
				for i := range batch {
					fn := func(context.Context) (int, error) { <-gate; return a.produce(), nil }
					if i == batch/2 {
						fn = func(ctx context.Context) (int, error) { <-ctx.Done(); open(); return a.produce(), nil }
					}
					calls = append(calls, begin(p, form, fn, nil))
				}
				if f := calls[batch/2].future; f != nil { // on a machine that stops it may expire before it is entered
					f.OnComplete(func(int, error) { open() })
				}
				for _, c := range calls {
					if got := c.get(); got.err == nil {
						a.deliver(got.v)
					}
				}
			}
			a.check(t)
			checkBalance(t, reg)
		})
	}
}
