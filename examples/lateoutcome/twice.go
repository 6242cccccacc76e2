package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// wrappedTwice puts two timeouts around one stage. Both waits fail, and the task
// is told to stop once: two timeouts are two waits and no two cancellations.
func wrappedTwice(ctx context.Context, r *report) error {
	return waitTwice(ctx, &r.WrappedTwice, func(stage *pipeline.Future[string]) *pipeline.Future[string] { return stage })
}

// wrappedViews gives each caller a view of the stage. Both waits fail, and
// neither failure reaches the task: that is how to share one result between
// callers who must not end it for each other.
func wrappedViews(ctx context.Context, r *report) error {
	return waitTwice(ctx, &r.WrappedViews, (*pipeline.Future[string]).View)
}

// waitTwice stands on a manual clock, the only kind on which two deadlines are
// due at the very same instant.
func waitTwice(ctx context.Context, w *waits, share func(*pipeline.Future[string]) *pipeline.Future[string]) error {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	l, err := newLab(registry.WithClock(clk))
	if err != nil {
		return err
	}
	task := pipeline.NewPromise[string]()
	var told atomic.Int64
	task.OnCancel(func() { told.Add(1) })

	wrap := func(context.Context) *pipeline.Future[string] { return share(task.Future()) }
	first, second := l.tasks.ExecuteFuture(ctx, wrap), l.tasks.ExecuteFuture(ctx, wrap)
	clk.Advance(limit)
	for _, f := range []*pipeline.Future[string]{first, second} {
		if _, err := f.Get(ctx); errors.Is(err, timeout.ErrExceeded) {
			w.Timeouts++
		}
	}

	w.ResultAccepted = task.Complete("late-success", nil)
	w.Cancellations = told.Load()
	w.OriginalOutcome = outcome(task.Future().Get(ctx))
	return l.reg.Drain(ctx)
}
