package clock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

type tag struct{}

// derivations are ways in which a function may derive a context from its own. In
// all of them the news of an end may be another goroutine's to bring.
var derivations = map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
	"its own":    func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	"WithCancel": context.WithCancel,
	"WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Hour)
	},
	"WithValue and WithCancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithValue(ctx, tag{}, 1))
	},
	"WithCancel of WithValue and WithCancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, first := context.WithCancel(context.WithValue(ctx, tag{}, 1))
		ctx, second := context.WithCancel(context.WithValue(ctx, tag{}, 2))
		return ctx, func() { second(); first() }
	},
}

// onClock makes a pipeline with a timeout of its own.
func onClock(t *testing.T, m *clock.Manual, limit time.Duration) *pipeline.Pipeline[int] {
	t.Helper()
	r, err := registry.New(registry.WithClock(m))
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Must(pipeline.New[int](r, "p").Timeout(limit).Build())
}

// In bubbles: there, the wait for the news ends only when no goroutine is left
// that could bring it, however slow the machine is.
func TestManualSleep_K1_HearsThroughDerivedContexts(t *testing.T) {
	for name, derive := range derivations {
		sleep := func(m *clock.Manual) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				ctx, cancel := derive(ctx)
				defer cancel()
				return 0, m.Sleep(ctx, 5*time.Second)
			}
		}
		t.Run(name+"/the call's timeout", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start)
				_, _ = onClock(t, m, 2*time.Second).Execute(t.Context(), sleep(m))
				checkClock(t, m, 2*time.Second, 0)
			})
		})
		t.Run(name+"/the caller's context", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start)
				ctx, _ := timeout(t, m, 2*time.Second)
				_, _ = onClock(t, m, 10*time.Second).Execute(ctx, sleep(m))
				checkClock(t, m, 2*time.Second, 0)
			})
		})
		t.Run(name+"/a pipeline's above", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start)
				inner := onClock(t, m, 10*time.Second)
				_, _ = onClock(t, m, 2*time.Second).Execute(t.Context(), func(ctx context.Context) (int, error) {
					ctx, cancel := derive(ctx)
					defer cancel()
					return inner.Execute(ctx, sleep(m))
				})
				checkClock(t, m, 2*time.Second, 0)
			})
		})
		t.Run(name+"/before it sleeps", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start)
				ctx, _ := timeout(t, m, 2*time.Second)
				_, _ = onClock(t, m, 10*time.Second).Execute(ctx, func(ctx context.Context) (int, error) {
					ctx, cancel := derive(ctx)
					defer cancel()
					m.Advance(2 * time.Second)
					return 0, m.Sleep(ctx, 5*time.Second)
				})
				checkClock(t, m, 2*time.Second, 0)
			})
		})
		t.Run(name+"/in Wait and Drive", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, wait := range []func(*clock.Manual, context.Context) error{
					func(m *clock.Manual, ctx context.Context) error { return m.Wait(ctx, nil) },
					func(m *clock.Manual, ctx context.Context) error {
						return m.Drive(ctx, func() bool { return false })
					},
				} {
					m := clock.NewManual(start)
					ctx, _ := timeout(t, m, 2*time.Second)
					m.AfterFunc(3*time.Second, func() { t.Error("driven on") })
					_, _ = onClock(t, m, 10*time.Second).Execute(ctx, func(ctx context.Context) (int, error) {
						ctx, cancel := derive(ctx)
						defer cancel()
						return 0, wait(m, ctx)
					})
					checkClock(t, m, 2*time.Second, 1)
				}
			})
		})
	}
}

func TestManualPassive_K1_HearsThroughDerivedContexts(t *testing.T) {
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start).Passive()
				ctx, _ := timeout(t, m, 2*time.Second)
				slept := make(chan error, 1)
				work := onClock(t, m, 10*time.Second).ExecuteAsync(ctx, func(ctx context.Context) (int, error) {
					ctx, cancel := derive(ctx)
					defer cancel()
					err := m.Sleep(ctx, 5*time.Second)
					slept <- err
					return 0, err
				})
				mustAwait(t, m.AwaitSleepers(t.Context(), 1))
				m.Advance(5 * time.Second)
				if err := <-slept; !errors.Is(err, context.Canceled) {
					t.Errorf("slept to its end: %v", err)
				}
				<-work.Work().Done()
			})
		})
	}
}

func TestManualAwaitSleepers_K6_ForgetsThoseWithDerivedContexts(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start).Passive()
				ctx, _ := timeout(t, m, 2*time.Second)
				work := onClock(t, m, 10*time.Second).ExecuteAsync(ctx, func(ctx context.Context) (int, error) {
					ctx, cancel := derive(ctx)
					defer cancel()
					return 0, m.Sleep(ctx, 5*time.Second)
				})
				mustAwait(t, m.AwaitSleepers(t.Context(), 1))
				m.Advance(2 * time.Second)
				if err := m.AwaitSleepers(ended, 1); !errors.Is(err, context.Canceled) {
					t.Errorf("counted a goroutine that was woken: %v", err)
				}
				<-work.Work().Done()
			})
		})
	}
}

// A context that was detached from its call sleeps on, and each call that ends
// meanwhile costs one wait for news that can't come, not one for each event.
func TestManualSleep_K1_DetachedContextsSleepOn(t *testing.T) {
	t.Run("detached", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := clock.NewManual(start)
			for s := range 50 {
				m.AfterFunc(time.Duration(s)*time.Second/10, func() {})
			}
			begin := time.Now()
			_, _ = onClock(t, m, 2*time.Second).Execute(t.Context(), func(ctx context.Context) (int, error) {
				for _, detached := range []context.Context{context.WithoutCancel(ctx), nil} {
					if detached == nil {
						ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
						defer cancel()
						detached = ctx
					}
					if err := m.Sleep(detached, 5*time.Second); err != nil {
						t.Errorf("Sleep: %v", err)
					}
				}
				return 0, nil
			})
			if waited := time.Since(begin); waited > 20*time.Millisecond { // the bubble's time: exact
				t.Errorf("waited for %v", waited)
			}
			checkClock(t, m, 10*time.Second, 0)
		})
	})
}

// onlyDone is a careless mock: it is done, but has no error. Whoever asks too
// often is told, so that a loop comes to an end.
type onlyDone struct {
	context.Context
	done  chan struct{}
	asked atomic.Int32
}

var errAskedTooOften = errors.New("asked again and again")

func (c *onlyDone) Done() <-chan struct{} { return c.done }

func (c *onlyDone) Err() error {
	if c.asked.Add(1) > 100 {
		return errAskedTooOften
	}
	return nil
}

func TestSleepAndWait_K1_DoneWithoutAnErrorIsCanceled(t *testing.T) {
	for name, wait := range map[string]func(m *clock.Manual, ctx context.Context) error{
		"Sleep":         func(m *clock.Manual, ctx context.Context) error { return m.Sleep(ctx, time.Hour) },
		"Wait":          func(m *clock.Manual, ctx context.Context) error { return m.Wait(ctx, nil) },
		"Drive":         func(m *clock.Manual, ctx context.Context) error { return m.Drive(ctx, func() bool { return false }) },
		"AwaitSleepers": func(m *clock.Manual, ctx context.Context) error { return m.AwaitSleepers(ctx, 2) },
		"AwaitTimers":   func(m *clock.Manual, ctx context.Context) error { return m.AwaitTimers(ctx, 2) },
		"System": func(_ *clock.Manual, ctx context.Context) error {
			return clock.System().Sleep(ctx, time.Hour)
		},
	} {
		for kind, m := range map[string]*clock.Manual{"driving": clock.NewManual(start), "passive": clock.NewManual(start).Passive()} {
			t.Run(name+"/"+kind+"/before", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := &onlyDone{Context: t.Context(), done: make(chan struct{})}
					close(ctx.done)
					if err := wait(m, ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
				})
			})
			if name == "Sleep" && kind == "driving" {
				continue // nothing to wait for
			}
			t.Run(name+"/"+kind+"/meanwhile", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := &onlyDone{Context: t.Context(), done: make(chan struct{})}
					res := async(func() error { return wait(m, ctx) })
					synctest.Wait()
					close(ctx.done)
					if err := <-res; !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
				})
			})
			checkClock(t, m, 0, 0)
		}
	}
}

// panicking is a context that panics when it is asked after the gate has closed.
type panicking struct {
	context.Context
	now atomic.Bool
}

func (c *panicking) Err() error {
	if c.now.Load() {
		panic("context")
	}
	return nil
}

func TestManualPassive_ContextThatPanicsDoesNotKeepTheSleeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewManual(start).Passive()
		ctx := &panicking{Context: t.Context()}
		res := async(func() error { return m.Sleep(ctx, time.Second) })
		synctest.Wait()
		ctx.now.Store(true)
		if v := recovered(func() { m.Advance(time.Second) }); v != "context" {
			t.Errorf("recovered %v", v)
		}
		if err := <-res; err != nil {
			t.Error(err)
		}
		if n := m.Parked(); n != 0 {
			t.Errorf("%d sleepers left behind", n)
		}
	})
}
