package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// The stage of several calls is completed while their timeouts give it up: each
// call has the value as its result or as its late outcome, once.
func TestStage_A3_A9_CompleteAgainstTheTimeoutsOfASharedStage(t *testing.T) {
	w := newWorld(t)
	const rounds = 1500
	var pipelines [3]*pipeline.Pipeline[int]
	ids := [3]string{"a", "b", "c"}
	for i, id := range ids {
		pipelines[i] = build(w, id, twoSeconds)
	}
	var late [3]uint64
	for i := range rounds {
		promise := pipeline.NewPromise[int]()
		var futures [3]*pipeline.Future[int]
		for k, p := range pipelines {
			futures[k] = p.ExecuteFuture(context.Background(), giving(promise.Future()))
		}
		var both sync.WaitGroup
		both.Go(func() { w.clk.Advance(2 * time.Second) })
		both.Go(func() { promise.Complete(i, nil) })
		both.Wait()
		for k, f := range futures {
			v, err := f.Get(context.Background())
			switch {
			case err == nil && v == i:
			case errors.Is(err, timeout.ErrExceeded):
				late[k]++
			default:
				t.Fatalf("round %d, call %d: %d, %v", i, k, v, err)
			}
			if v, over, err := f.Work().Poll(); v != i || !over || err != nil {
				t.Fatalf("round %d, call %d: the work: %d, %v, %v", i, k, v, over, err)
			}
		}
	}
	told := map[string]uint64{}
	for _, e := range heard[pipeline.LateSuccess](w) {
		told[e.ID()]++
	}
	for k, id := range ids {
		if n := w.pipeline(id).Abandoned; n.LateSuccess != late[k] || n.LateFailure != 0 || told[id] != late[k] {
			t.Errorf("%s: %d gave up, counted %+v, told %d", id, late[k], n, told[id])
		}
	}
}

// Those who share the stage cancel it for all while it is completed: who gave it
// up has one late outcome, and who did not has none.
func TestStage_A3_A6_CompleteAgainstTheCancelOfASharedStage(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	const rounds = 1500
	late := uint64(0)
	for i := range rounds {
		promise := pipeline.NewPromise[int]()
		first := p.ExecuteFuture(context.Background(), giving(promise.Future()))
		second := p.ExecuteFuture(context.Background(), giving(promise.Future()))
		var all sync.WaitGroup
		gaveUp := make([]bool, 2)
		for k, f := range []*pipeline.Future[int]{first, second} {
			all.Go(func() { gaveUp[k] = f.Cancel() })
		}
		completed := false
		all.Go(func() { completed = promise.Complete(i, nil) })
		all.Wait()
		for k, f := range []*pipeline.Future[int]{first, second} {
			v, err := f.Get(context.Background())
			switch {
			case gaveUp[k]:
				late++
				w.is(err, context.Canceled)
				if v, over, err := f.Work().Poll(); v != i || !over || err != nil {
					t.Fatalf("round %d, call %d: the work: %d, %v, %v", i, k, v, over, err)
				}
			case err == nil && v == i && completed:
			case errors.Is(err, context.Canceled) && !completed: // its stage was cancelled by the other
			default:
				t.Fatalf("round %d, call %d: %d, %v", i, k, v, err)
			}
		}
	}
	told := len(heard[pipeline.LateSuccess](w))
	if n := w.pipeline("x").Abandoned; n.LateSuccess != late || n.LateFailure != 0 || uint64(told) != late {
		t.Errorf("%d gave up, counted %+v, told %d", late, n, told)
	}
}

// A stage that is a pipeline's future may have ended in a panic. Panics are not
// retried, wherever they come from.
func TestStage_A7_R3_AStageThatEndedInAPanicIsNotRetried(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic(errOdd) }, "Goexit": runtime.Goexit} {
		for _, soon := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", complete already", false: ", later"}[soon], func(t *testing.T) {
				inForms(t, []form{staged}, func(a *arena) {
					inner := build(a.world, "inner", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(time.Hour) })
					outer := build(a.world, "x", retrying(retry.MaxAttempts(3), retry.Constant(0)))
					n := 0
					f := outer.ExecuteFuture(a.Context(), func(ctx context.Context) *pipeline.Future[int] {
						n++
						stage := inner.ExecuteAsync(ctx, func(context.Context) (int, error) {
							if !soon {
								_ = a.clock.Sleep(context.Background(), s)
							}
							leave()
							return 0, nil
						})
						if soon {
							<-stage.Done()
						}
						return stage
					})
					a.advance(s)
					_, done, err := f.Poll()
					if !done || n != 1 {
						a.Fatalf("done %v, %d attempts", done, n)
					}
					var pe *pipeline.PanicError
					if name == "panic" {
						if !errors.As(err, &pe) {
							a.Errorf("got %v", err)
						}
						a.is(err, errOdd)
					} else {
						a.is(err, pipeline.ErrGoexit)
					}
					a.counted("panicked")
				})
			})
		}
	}
}
