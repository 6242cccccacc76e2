package registry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func TestField_WH09_CloseEndsPendingFuturesFromAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		p := built(t, pipeline.New[int](r, "p").Timeout(5*time.Second))
		stages := make([]*pipeline.Future[int], 5)
		for i := range stages {
			stages[i] = p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { return pipeline.NewPromise[int]().Future() })
		}
		inCallback := make(chan error, 1)
		stages[0].OnComplete(func(int, error) { inCallback <- r.Close() })
		begin := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, f := range stages {
			if _, err := f.Get(t.Context()); !errors.Is(err, registry.ErrClosed) {
				t.Errorf("a pending future: %v", err)
			}
		}
		if err := <-inCallback; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
		calls := 0
		if _, err := p.Execute(t.Context(), func(context.Context) (int, error) { calls++; return 0, nil }); !errors.Is(err, registry.ErrClosed) || calls != 0 {
			t.Errorf("afterwards: %v, %d calls", err, calls)
		}
		if _, err := pipeline.New[int](r, "q").Timeout(1).Build(); !errors.Is(err, registry.ErrClosed) {
			t.Errorf("building afterwards: %v", err)
		}
		s := r.Snapshot()
		if !s.Closed || s.Pipelines[0].Calls.Rejected != 6 || s.Wheel.Pending != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestClose_X1_EndsWaitsAndBackoffsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		backoff := built(t, pipeline.New[int](r, "backoff").Retry(retry.Constant(time.Hour), retry.MaxDelay(0)))
		permit := built(t, pipeline.New[int](r, "permit").RateLimit(ratelimit.Per(1, time.Hour), ratelimit.MaxWait(2*time.Hour)))
		slot := built(t, pipeline.New[int](r, "slot").Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)))
		_, _ = permit.Execute(t.Context(), succeed)
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // a sync function in flight runs to its end
			_, err := slot.Execute(t.Context(), func(ctx context.Context) (int, error) { <-release; return 0, ctx.Err() })
			if err != nil {
				t.Errorf("in flight: %v", err)
			}
		})
		synctest.Wait()
		begin := time.Now()
		for name, run := range map[string]func() (int, error){
			"backoff": func() (int, error) { return backoff.Execute(t.Context(), fail) },
			"permit":  func() (int, error) { return permit.Execute(t.Context(), succeed) },
			"slot":    func() (int, error) { return slot.Execute(t.Context(), succeed) },
		} {
			wg.Go(func() {
				if _, err := run(); !errors.Is(err, registry.ErrClosed) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		synctest.Wait()
		_ = r.Close()
		close(release)
		wg.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestDrain_X1_WaitsForCallsAndLetsRetriesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		p := built(t, pipeline.New[int](r, "p").Retry(retry.MaxAttempts(3), retry.Constant(time.Second)).Timeout(time.Minute))
		built(t, pipeline.New[int](r, "idle").Timeout(time.Minute))
		n := 0
		go func() {
			_, _ = p.Execute(context.Background(), func(context.Context) (int, error) { n++; return 0, errBoom })
		}()
		synctest.Wait()
		begin := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := r.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { // one that gives up takes nothing from the others
			ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errBoom)
			defer cancel()
			if err := r.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBoom) {
				t.Errorf("a drain whose context ends: %v", err)
			}
		})
		synctest.Wait()
		if _, err := p.Execute(t.Context(), succeed); !errors.Is(err, registry.ErrClosed) {
			t.Errorf("a new call: %v", err)
		}
		wg.Wait()
		if took := time.Since(begin); took != 2*time.Second || n != 3 {
			t.Errorf("%d attempts in %v", n, took)
		}
		if err := r.Drain(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestDrain_X1_WaitsForAbandonedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New()
		if err != nil {
			t.Fatal(err)
		}
		p := built(t, pipeline.New[int](r, "p").Timeout(time.Second))
		begin := time.Now()
		f := p.ExecuteAsync(t.Context(), func(context.Context) (int, error) {
			time.Sleep(5 * time.Second) // ignores its context
			return 0, nil
		})
		if _, err := f.Get(t.Context()); err == nil {
			t.Error("it did not time out")
		}
		if err := r.Drain(t.Context()); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if a := r.Snapshot().Pipelines[0].Abandoned; a.Running != 0 || a.LateSuccess != 1 {
			t.Errorf("%+v", a)
		}
	})
}

func TestDrain_K5_DrivesAManualClock(t *testing.T) {
	m := clock.NewManual(start)
	r, err := registry.New(registry.WithClock(m))
	if err != nil {
		t.Fatal(err)
	}
	p := built(t, pipeline.New[int](r, "p").Timeout(5*time.Second))
	stage := pipeline.NewPromise[int]()
	p.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[int] { return stage.Future() })
	if err := r.Drain(t.Context()); err != nil || m.Now().Sub(start) != 5*time.Second {
		t.Errorf("%v at +%v", err, m.Now().Sub(start))
	}
}

func TestDrain_NilContextPanics(t *testing.T) {
	r, _ := newRegistry(t)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = r.Drain(nil) //nolint:staticcheck // that is what is tested
}

// The listener closes the registry that calls it: no lock is held.
func TestClose_X3_InsideOfAListener(t *testing.T) {
	var r *registry.Registry
	r, _ = newRegistry(t, registry.WithListener(func(context.Context, policy.Event) { _ = r.Close() }))
	p := built(t, pipeline.New[int](r, "p").Retry())
	if _, err := p.Execute(t.Context(), fail); !errors.Is(err, registry.ErrClosed) || !errors.Is(err, errBoom) {
		t.Errorf("%v", err)
	}
}
