package conform_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// Everybody who asks for a future's end in the moment of that end hears of it,
// once, whichever way it asks: Get, Done, OnComplete, a view; of a promise and of
// a call that is canceled.
func TestObserversAgainstTheEnd(t *testing.T) {
	reg, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.New[int](reg, "x").Timeout(limit, timeout.Func(func(context.Context) time.Duration { return 0 })).Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds(10_000) {
		promise := pipeline.NewPromise[int]()
		f, end := promise.Future(), func() { promise.Complete(7, nil) }
		if i%2 == 1 {
			stage := f
			f = p.ExecuteFuture(context.Background(), func(context.Context) *pipeline.Future[int] { return stage })
			if i%4 == 1 {
				end = func() { f.Cancel() }
			}
		}
		var told atomic.Int32
		called := make(chan struct{})
		together(
			end,
			func() { <-f.Done(); told.Add(1) },
			func() { <-f.Done(); told.Add(1) },
			func() { _, _ = f.Get(context.Background()); told.Add(1) },
			func() { _, _ = f.Get(t.Context()); told.Add(1) },
			func() { f.OnComplete(func(int, error) { told.Add(1); close(called) }) },
			func() { _, _ = f.View().Get(context.Background()); told.Add(1) },
			func() { <-f.Work().Done(); told.Add(1) },
		)
		<-called
		if n := told.Load(); n != 7 {
			t.Fatalf("round %d: %d of 7 were told", i, n)
		}
	}
	checkBalance(t, reg)
}
