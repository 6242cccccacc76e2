package conform_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// A success behind Execute allocates the context that its layer promises, and
// nothing else: one for a timeout or a retry, one for what a breaker is to be told
// at a deadline.
func TestSuccessAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	each(t, func(t *testing.T, k *kind, w way) {
		t.Helper()
		s := newSubject(t, k, w, clock.System())
		if s.reg != nil {
			s.manyPermits()
		}
		ctx := context.Background()
		value := func(context.Context) (int, error) { return 1, nil }
		var once func()
		want := k.allocs
		switch w {
		case handle:
			want = k.allocsAlone
			if k.layer == limiterLayer {
				t.Skip("it has ten permits; measured beside the limiter")
			}
			once = func() { _ = s.do(ctx, succeed) }
		case execute:
			once = func() { _, _ = s.p.Execute(ctx, value) }
		case future:
			want = k.future
			once = func() { _, _ = s.p.ExecuteAsync(ctx, value).Get(ctx) }
		case stage:
			want = k.future
			done := pipeline.NewPromise[int]()
			done.Complete(1, nil)
			start := func(context.Context) *pipeline.Future[int] { return done.Future() }
			once = func() { _, _ = s.p.ExecuteFuture(ctx, start).Get(ctx) }
		}
		if got := testing.AllocsPerRun(200, once); got > want {
			t.Errorf("%v allocations, want at most %v", got, want)
		} else {
			t.Logf("%v allocations", got)
		}
		s.soonFree()
	})
}

// manyPermits makes the limiter one that never refuses.
func (s *subject) manyPermits() {
	s.Helper()
	if l, ok := s.reg.RateLimiter("x"); ok {
		if err := l.SetRate(1_000_000_000, 1_000_000_000, 1_000_000_000); err != nil {
			s.Fatal(err)
		}
	}
}

// S-2: snapshots that are taken while calls run are consistent, whatever the
// policy and however it is called.
func TestSnapshotIsConsistentUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, k *kind, w way) {
		t.Helper()
		s := newSubject(t, k, w, clock.System())
		if s.reg != nil {
			s.manyPermits()
		}
		calls := 500
		if raceEnabled || testing.Short() {
			calls = 100
		}
		if w == handle && k.layer == limiterLayer {
			calls = permits / 2 // then it would have to be waited for
		}
		stop := make(chan struct{})
		var watching, working sync.WaitGroup
		watching.Go(func() {
			var last registry.Snapshot
			for n := 0; ; n++ {
				now := s.snapshot()
				checkConsistent(t, &now)
				if n > 0 {
					checkMonotone(t, &last, &now)
				}
				last = now
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
		for i := range 2 {
			fn := succeed
			if i == 1 && !k.layer.has(retryLayer) { // without a backoff
				fn = fail
			}
			working.Go(func() {
				for range calls {
					_ = s.do(context.Background(), fn)
				}
			})
		}
		working.Wait()
		close(stop)
		watching.Wait()
		s.soonFree()
		if now := s.snapshot(); len(now.Pipelines) > 0 {
			if c := now.Pipelines[0].Calls; c.Started != uint64(2*calls) || c.Succeeded+c.Failed+c.Rejected+c.TimedOut != c.Started {
				t.Errorf("%d calls were made, counted as %+v", 2*calls, c)
			}
		}
	})
}
