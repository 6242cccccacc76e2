package circuitbreaker

import (
	"context"
	"errors"
)

// Permit is one call that the breaker let through. It is a small value; give
// the call's outcome to exactly one of its methods, from any goroutine.
//
// What a permit records counts only in the generation that gave it: once the
// breaker has changed its state, or was reset, late outcomes change nothing. A
// probe's permit counts once however often it is recorded. Permits of a closed
// breaker are not tracked, which is what makes them cheap: one that is recorded
// twice counts as two samples, one that is never recorded as none. A probe that
// is never recorded keeps its place for the breaker's OpenFor.
//
// The zero Permit belongs to no breaker: its methods do nothing.
type Permit struct {
	gen   *generation
	ctx   context.Context //nolint:containedctx // a permit is a value of one call
	start int64           // the scope's time; 0: not taken
	probe *probe          // half-open only
}

type verdict uint8

const (
	success verdict = iota
	failure
	neutral
)

// Record judges the outcome of the call and counts it: nil is a success, what
// the breaker's Ignore lists is no sample, and of the rest FailIf decides
// whether it is a failure; without a FailIf every error is. A slow call counts
// as slow besides.
//
// Record knows nothing of the call's context: whoever calls it decides whether
// the caller's own cancellation is worth recording or is to be [Permit.Ignored].
func (t Permit) Record(err error) {
	if t.gen == nil {
		return
	}
	if err == nil {
		t.settle(success)
		return
	}
	t.judge(err)
}

// Success counts a success without judging anything. It is for code that has
// its own idea of what a success is.
func (t Permit) Success() { t.settle(success) }

// Failure counts a failure without judging anything: neither FailIf nor Ignore
// is asked.
func (t Permit) Failure() { t.settle(failure) }

// Ignored says that the call's outcome tells nothing about what was called: it
// was never made, or its caller gave up. It is no sample; a probe gives its
// place back.
func (t Permit) Ignored() { t.settle(neutral) }

func (t Permit) settle(v verdict) {
	switch {
	case t.gen == nil:
	case t.probe != nil:
		t.gen.p.probed(t, v)
	case v != neutral:
		t.gen.p.sample(t, v == failure)
	}
}

// judge settles t by what the settings say about err. Both FailIf and the err
// that is compared with Ignore (by its own Is or Unwrap) are code of others: if
// it gives no answer, because it panicked or ended the goroutine, the error is a
// failure. The permit comes back on every way out.
func (t Permit) judge(err error) {
	set, v := t.gen.set, failure
	if len(set.Ignore) == 0 && set.FailIf == nil {
		t.settle(failure)
		return
	}
	defer func() { t.settle(v) }()
	p := t.gen.p
	p.scope.Guard(t.ctx, kind, p.id, func() {
		switch {
		case set.ignores(err):
			v = neutral
		case set.FailIf != nil && !set.FailIf(err):
			v = success
		}
	})
}

// slow reports whether the call took too long. Without a start nobody knows.
func (t Permit) slow(now int64) bool {
	limit := t.gen.set.SlowCall
	return t.start != 0 && limit > 0 && now-t.start >= int64(limit)
}

// Ignores reports whether err is one that the breaker's Ignore lists, compared
// with errors.Is. It is for package pipeline, which judges typed results itself.
func (p *Policy) Ignores(ctx context.Context, err error) (ignored bool) {
	set := p.set.Load()
	if len(set.Ignore) == 0 {
		return false
	}
	p.scope.Guard(ctx, kind, p.id, func() { ignored = set.ignores(err) })
	return ignored
}

func (c *Config) ignores(err error) bool {
	for _, target := range c.Ignore {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
