package pipeline

import (
	"context"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/fallback"
)

const kind = "pipeline" // of the pipeline's own events and errors

// guard calls a function of the user's with no lock held. A panic is contained
// and reported; then guard reports false.
func (p *Pipeline[T]) guard(ctx context.Context, policyKind string, f func()) bool {
	return p.stack.Scope.Guard(ctx, policyKind, p.stack.ID, f)
}

// discard gives a value that no caller will get to the OnDiscard hook, and
// reports whether there is one.
func (p *Pipeline[T]) discard(ctx context.Context, values bool, v T) bool {
	if p.hooks.onDiscard == nil || !values {
		return false
	}
	p.guard(ctx, kind, func() { p.hooks.onDiscard(v) })
	return true
}

// lateSuccess counts and publishes that a sync attempt returned a value after
// its deadline.
func (p *Pipeline[T]) lateSuccess(ctx context.Context, attempt int, c *callctx.Context) {
	p.stack.Abandoned.LateSuccess.Add(1)
	if s := p.stack.Scope; s.Listening() {
		s.Publish(ctx, LateSuccess{Meta: p.meta(), Attempt: attempt, Late: late(s, s.Deadline(c))})
	}
}

func (p *Pipeline[T]) meta() policy.Meta { return p.stack.Scope.Meta(kind, p.stack.ID) }

// late is how long ago an instant was, in the scope's time.
func late(s *scope.Scope, then int64) time.Duration {
	if then == scope.Never { // it was kept elsewhere, as in a synctest bubble
		return 0
	}
	return time.Duration(max(s.Now()-then, 0))
}

// wantsFallback reports whether the fallback is for this error.
func (p *Pipeline[T]) wantsFallback(ctx context.Context, err error, how ending) bool {
	if how == closed {
		return false
	}
	return p.hooks.asked.Matches(p.stack.Scope, ctx, p.stack.ID, err, how == callerEnded)
}

// fallBack asks the fallback for a value in place of err. If it fails too, the
// call counts as what the fallback was asked for.
func (p *Pipeline[T]) fallBack(ctx context.Context, err error, how *ending) (v T, _ error) {
	n := &p.stack.Fallbacks
	n.Applied.Add(1)
	if s := p.stack.Scope; s.Listening() {
		s.Publish(ctx, fallback.Applied{Meta: s.Meta("fallback", p.stack.ID), Err: err})
	}
	ended := false
	defer func() {
		if !ended { // a panic or Goexit goes on
			n.Failed.Add(1)
		}
	}()
	v, failed := p.hooks.fallback(ctx, err)
	ended = true
	if failed == nil {
		*how = returned
		return v, nil
	}
	n.Failed.Add(1)
	return v, fallback.Join(err, failed)
}
