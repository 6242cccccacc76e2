package main

import (
	"context"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// must is for what cannot fail in this program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newRegistry() *registry.Registry { return must(registry.New()) }

func withTimeout(reg *registry.Registry, id string, d time.Duration) *pipeline.Pipeline[int] {
	return must(pipeline.New[int](reg, id).Timeout(d).Build())
}

func op(context.Context) (int, error) { return 1, nil }

// pending are calls whose work nobody has completed yet.
type pending struct {
	promises []*pipeline.Promise[int]
	futures  []*pipeline.Future[int]
}

// newPending has room for n, so that what its lists take is not measured.
func newPending(n int) *pending {
	return &pending{make([]*pipeline.Promise[int], 0, n), make([]*pipeline.Future[int], 0, n)}
}

// start adds calls through p.
func (l *pending) start(p *pipeline.Pipeline[int], n int) {
	ctx := context.Background()
	var promise *pipeline.Promise[int]
	work := func(context.Context) *pipeline.Future[int] { return promise.Future() }
	for range n {
		promise = pipeline.NewPromise[int]()
		l.promises = append(l.promises, promise)
		l.futures = append(l.futures, p.ExecuteFuture(ctx, work))
	}
}

// complete ends all calls.
func (l *pending) complete() {
	for _, p := range l.promises {
		p.Complete(1, nil)
	}
	clear(l.promises)
	clear(l.futures)
	l.promises, l.futures = l.promises[:0], l.futures[:0]
}

// failed waits until all calls have ended, and returns how many did so with an
// error.
func (l *pending) failed() (n int) {
	ctx := context.Background()
	for _, f := range l.futures {
		if _, err := f.Get(ctx); err != nil {
			n++
		}
	}
	return n
}
