package retry

import (
	"context"

	"resilience4cata.dev/go/internal/callctx"
)

// Attempt is the number of the attempt that ctx belongs to, from 1: of the
// innermost pipeline with a retry, or [Policy.Do]. It is 0 outside.
func Attempt(ctx context.Context) int {
	if c := callctx.Find(ctx); c != nil {
		return c.Attempt()
	}
	return 0
}

// IdempotencyKey is one key for all attempts of a call, for the other side to
// recognize an attempt as a repetition. It is made, of 130 random bits, when it
// is first asked for, unless [WithIdempotencyKey] has set one. It is that of the
// innermost pipeline with a retry, or [Policy.Do]; a nested one inherits only a
// key that was set. It is empty outside.
//
// It answers "may be repeated", if the other side honors the key; "may be
// retried" is what the rules answer.
func IdempotencyKey(ctx context.Context) string { return callctx.KeyFrom(ctx) }

// WithIdempotencyKey returns a context with a key from outside, for calls that
// are one operation with something else: a request that came with a key of its
// own. All pipelines below use it.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return callctx.WithKey(ctx, key)
}
