package callctx_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/callctx"
)

var (
	errOurs   = errors.New("our deadline")
	errTheirs = errors.New("the caller's reason")
	errClosed = errors.New("closed")
)

type slot = atomic.Pointer[callctx.Context]

func newPlan() *callctx.Plan { return callctx.NewPlan(time.Second, errOurs) }

// arm returns a context with a deadline, and the slot in which it lies.
func arm(parent context.Context, plan *callctx.Plan) (*callctx.Context, *slot) {
	c, s := callctx.New(parent, plan), new(slot)
	s.Store(c)
	c.Armed(s)
	return c, s
}

// check compares Err, Cause and Done with what they must be. done is what Done
// says; it is asked last, as it makes the channel.
func check(tb testing.TB, ctx context.Context, err, cause error) { //nolint:revive // the test comes first
	tb.Helper()
	for range 2 {
		if got := ctx.Err(); got != err { //nolint:errorlint // these very values
			tb.Errorf("Err() = %v, want %v", got, err)
		}
		if got := context.Cause(ctx); got != cause { //nolint:errorlint // these very values
			tb.Errorf("Cause = %v, want %v", got, cause)
		}
		if got := isDone(ctx); got != (err != nil) {
			tb.Errorf("done = %v, Err() = %v", got, err)
		}
	}
}

func isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

func wantVerdict(tb testing.TB, c *callctx.Context, want callctx.Verdict) {
	tb.Helper()
	if got := c.Finish(); got != want {
		tb.Errorf("Finish() = %v, want %v", got, want)
	}
}

// fakeParent is a foreign context. What is nil is that of a context that never
// ends.
type fakeParent struct {
	context.Context
	err       func() error
	done      func() <-chan struct{}
	afterFunc func(func()) func() bool
}

func (p *fakeParent) Err() error {
	if p.err == nil {
		return nil
	}
	return p.err()
}

func (p *fakeParent) Done() <-chan struct{} {
	if p.done == nil {
		return nil
	}
	return p.done()
}

// registering is a foreign parent with the AfterFunc method.
type registering struct{ *fakeParent }

func (p registering) AfterFunc(f func()) func() bool { return p.afterFunc(f) }

// endable is a foreign context with the plain methods only, which its owner
// ends.
type endable struct {
	context.Context
	ch  chan struct{}
	err atomic.Pointer[error]
}

func newEndable() *endable {
	return &endable{Context: context.Background(), ch: make(chan struct{})}
}

func (p *endable) Done() <-chan struct{} { return p.ch }

func (p *endable) Err() error {
	if e := p.err.Load(); e != nil {
		return *e
	}
	return nil
}

func (p *endable) end(err error) {
	p.err.Store(&err)
	close(p.ch)
}
