package pipeline_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// A registry made outside, as one in a package variable is, in a bubble; what
// those in the bubble wait for happens outside, or in another bubble. X-2: the
// process lives, and nobody waits for ever.

// elsewhere are the places where run calls a function, from within a bubble.
var elsewhere = map[string]func(t *testing.T) (run func(f func())){
	"outside": func(t *testing.T) func(func()) { return testkit.Outside(t) },
	"in another bubble": func(t *testing.T) func(func()) {
		run := testkit.Outside(t)
		return func(f func()) { run(func() { synctest.Test(t, func(*testing.T) { f() }) }) }
	},
}

func outsideRegistry(t *testing.T) *registry.Registry {
	t.Helper()
	r, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// callsOf are the ways to make a call and to have its error. Each function that is
// called uses a channel of its bubble.
var callsOf = map[string]func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) error{
	"Execute": func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) error {
		_, err := p.Execute(context.Background(), fn)
		return err
	},
	"ExecuteAsync, Get": func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) error {
		_, err := p.ExecuteAsync(context.Background(), fn).Get(context.Background())
		return err
	},
	"ExecuteAsync, Done and Work": func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) error {
		f := p.ExecuteAsync(context.Background(), fn)
		if f.Done() != f.Done() || f.Work().Done() != f.Work().Done() { //nolint:staticcheck // it is asked for twice
			return errors.New("another channel at the second time")
		}
		<-f.View().Done()
		<-f.Work().Done()
		_, _, err := f.Poll()
		return err
	},
}

func TestTwoBubbles_X2_ASlotIsFreedElsewhere(t *testing.T) {
	for where, runner := range elsewhere {
		for how, call := range callsOf {
			t.Run(where+", "+how, func(t *testing.T) {
				r := outsideRegistry(t)
				p := pipeline.Must(pipeline.New[int](r, "p").Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(3), bulkhead.MaxWait(time.Hour)).Build())
				b, _ := r.Bulkhead("p")
				if !b.TryAcquire() {
					t.Fatal("no slot")
				}
				run := runner(t)
				synctest.Test(t, func(t *testing.T) {
					got, inside := make(chan error), make(chan bool, 1)
					go func() {
						got <- call(p, func(context.Context) (int, error) { inside <- true; return 7, nil })
					}()
					synctest.Wait()
					run(b.Release)
					if err := <-got; err != nil || !<-inside {
						t.Error(err)
					}
				})
				if s := b.Snapshot(); s.InUse != 0 || s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// Those who wait for a permit in a bubble have it by the bubble's time, whoever
// was there before them and has left.
func TestTwoBubbles_X2_PermitsComeInEach(t *testing.T) {
	r := outsideRegistry(t)
	p := pipeline.Must(pipeline.New[int](r, "p").RateLimit(ratelimit.Per(1, time.Minute), ratelimit.MaxWait(time.Hour)).Build())
	l, _ := r.RateLimiter("p")
	for l.TryAcquire() {
	}
	var wg sync.WaitGroup
	for _, call := range callsOf {
		wg.Go(func() {
			synctest.Test(t, func(t *testing.T) {
				inside := make(chan bool, 1)
				if err := call(p, func(context.Context) (int, error) { inside <- true; return 7, nil }); err != nil || !<-inside {
					t.Error(err)
				}
			})
		})
	}
	wg.Wait()
	if s := l.Snapshot(); s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestTwoBubbles_X2_TheRegistryIsClosedElsewhere(t *testing.T) {
	for where, runner := range elsewhere {
		for how, call := range callsOf {
			for state, fn := range map[string]func(context.Context) (int, error){
				"running": obedient,
				"pausing": func(context.Context) (int, error) { return 0, errBoom },
			} {
				t.Run(where+", "+how+", "+state, func(t *testing.T) {
					r := outsideRegistry(t)
					p := pipeline.Must(pipeline.New[int](r, "p").Retry(retry.MaxAttempts(3), retry.Constant(time.Hour)).Timeout(time.Hour).Build())
					run := runner(t)
					synctest.Test(t, func(t *testing.T) {
						got := make(chan error)
						go func() { got <- call(p, fn) }()
						synctest.Wait()
						run(func() { _ = r.Close() })
						if err := <-got; !errors.Is(err, registry.ErrClosed) {
							t.Errorf("got %v", err)
						}
					})
				})
			}
		}
	}
}

// Nobody looks at the call: what hears of its deadline is the user's OnCancel, which
// belongs to the bubble.
func TestBubble_X2_APromiseHearsOfItsCancelInTheBubble(t *testing.T) {
	for name, ticking := range map[string]bool{"quiet": false, "ticking": true} {
		t.Run(name, func(t *testing.T) {
			reg := outsideRegistry(t)
			const limit = 30 * time.Millisecond
			p := pipeline.Must(pipeline.New[int](reg, "x").Timeout(limit).Build())
			if ticking {
				keepTicking(t, reg)
			}
			for _, before := range []bool{true, false} {
				synctest.Test(t, func(*testing.T) {
					heard := make(chan struct{})
					stage := pipeline.NewPromise[int]()
					hear := func() { stage.OnCancel(func() { close(heard) }) }
					if before {
						hear()
					}
					began := time.Now()
					f := p.ExecuteFuture(context.Background(), giving(stage.Future()))
					if !before {
						hear()
					}
					<-heard
					if _, done, err := f.Poll(); !done || !errors.Is(err, timeout.ErrExceeded) || time.Since(began) != limit {
						t.Errorf("after %v: %v, %v", time.Since(began), done, err)
					}
				})
			}
			synctest.Test(t, func(*testing.T) { // one that nobody waits for: the wheel must not come for it afterwards
				heard := make(chan struct{})
				stage := pipeline.NewPromise[int]()
				stage.OnCancel(func() { close(heard) })
				p.ExecuteFuture(context.Background(), giving(stage.Future()))
			})
			for end := time.Now().Add(3 * limit); time.Now().Before(end); {
				<-tick()
			}
		})
	}
}
