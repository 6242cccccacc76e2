package pipeline

import (
	"context"
	"strings"
	"time"

	"resilience4cata.dev/go/internal/stack"
)

// As returns p for another result type: the same id, layers and counters. The
// typed hooks (Fallback, RetryIf, FailIf, OnDiscard) do not come along. It
// panics if p is nil or zero.
func As[U, T any](p *Pipeline[T]) *Pipeline[U] {
	p.check(context.Background(), "As", false)
	return &Pipeline[U]{stack: p.stack}
}

// Wrap returns fn behind p: a function of one argument that calls Execute. It
// panics if fn is nil or p is nil or zero.
func Wrap[A, T any](p *Pipeline[T], fn func(context.Context, A) (T, error)) func(context.Context, A) (T, error) {
	p.check(context.Background(), "Wrap", fn == nil)
	return func(ctx context.Context, arg A) (T, error) {
		return p.Execute(ctx, func(ctx context.Context) (T, error) { return fn(ctx, arg) })
	}
}

// WrapAsync is Wrap with ExecuteAsync.
func WrapAsync[A, T any](p *Pipeline[T], fn func(context.Context, A) (T, error)) func(context.Context, A) *Future[T] {
	p.check(context.Background(), "WrapAsync", fn == nil)
	return func(ctx context.Context, arg A) *Future[T] {
		return p.ExecuteAsync(ctx, func(ctx context.Context) (T, error) { return fn(ctx, arg) })
	}
}

// String names the pipeline and its layers in their order:
//
//	reports: retry(3) > ratelimit(50/1s) > timeout(2s) > bulkhead(10)
func (p *Pipeline[T]) String() string {
	if p == nil || p.stack == nil {
		return "<zero pipeline>"
	}
	layers := p.stack.Describe()
	if p.stack.Fallback && p.hooks.fallback == nil { // see As
		layers = layers[1:]
	}
	return p.stack.ID + ": " + strings.Join(layers, " > ")
}

// Bound returns the longest that Execute can take, for a function that honors
// its context: the least of MaxDuration and what attempts, waits and delays add
// up to. Not included are the fallback, the lateness of ticks, and delays that
// a server asks for. ok is false when nothing bounds the call.
func (p *Pipeline[T]) Bound() (d time.Duration, ok bool) {
	p.check(context.Background(), "Bound", false)
	return stack.Bound(p.stack.Layers())
}
