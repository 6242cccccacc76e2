package callctx

import (
	"context"
	"crypto/rand"
	"sync/atomic"
)

type key int

const (
	attemptKey     key = iota // *Context: the innermost attempt of a retry
	idempotencyKey            // string: set from outside; *Context: ask it
)

// Find returns the context of the innermost attempt of a retry that ctx belongs
// to, or nil.
func Find(ctx context.Context) *Context {
	c, _ := ctx.Value(attemptKey).(*Context)
	return c
}

// Owner is who hears of c's end; nil if nobody does.
func (c *Context) Owner() Owner {
	if in := c.info.Load(); in != nil {
		return in.Owner
	}
	return nil
}

// Attempt is the number of the attempt that c belongs to, from 1.
func (c *Context) Attempt() int {
	if in := c.info.Load(); in != nil {
		return in.Owner.Attempt()
	}
	return 1
}

// Key is an idempotency key: one for all attempts of a call, made on first
// request. The zero value is ready to use.
type Key struct{ text atomic.Pointer[string] }

// Text returns the key; it makes one of 130 random bits if there is none.
func (k *Key) Text() string {
	if s := k.text.Load(); s != nil {
		return *s
	}
	s := rand.Text()
	if k.text.CompareAndSwap(nil, &s) {
		return s
	}
	return *k.text.Load()
}

// attempt is the Owner of an attempt that nobody waits for: the second one and
// later, or a first one whose key was asked for.
type attempt struct {
	Info
	n   int
	key *Key
}

func newAttempt(n int, key *Key) *attempt {
	a := &attempt{n: n, key: key}
	a.Owner = a
	return a
}

func (a *attempt) Attempt() int                           { return a.n }
func (a *attempt) Key() *Key                              { return a.key }
func (a *attempt) Ended(*Context, Verdict) (after func()) { return nil }

// Key is the key of the call that c is an attempt of.
func (c *Context) Key() *Key {
	if c.info.Load() == nil {
		c.info.CompareAndSwap(nil, &newAttempt(1, new(Key)).Info)
	}
	return c.info.Load().Owner.Key()
}

// Follow makes c the attempt n of a call. prev is the context of an earlier one
// of the call, or nil: the attempts in between ended before they had one. Call it
// before anybody sees c, and only if c has no owner of its own.
func (c *Context) Follow(prev *Context, n int) {
	var key *Key
	if prev != nil {
		key = prev.Key()
	} else {
		key = new(Key)
	}
	c.info.Store(&newAttempt(n, key).Info)
}

// keyValue is what Value answers for the idempotency key: a key that was set
// from outside is inherited; one that an outer pipeline made for itself is not.
func (c *Context) keyValue() any {
	v := c.parent.Value(idempotencyKey)
	if _, outside := v.(string); outside || !c.plan.Retrying {
		return v
	}
	return c
}

// WithKey returns a context that carries an idempotency key from outside. An
// empty one is none.
func WithKey(ctx context.Context, key string) context.Context {
	if key == "" {
		return ctx
	}
	return context.WithValue(ctx, idempotencyKey, key)
}

// KeyFrom returns the idempotency key for ctx: the one set from outside, else
// that of the innermost call with a retry, else "".
func KeyFrom(ctx context.Context) string {
	switch v := ctx.Value(idempotencyKey).(type) {
	case string:
		return v
	case *Context:
		return v.Key().Text()
	default:
		return ""
	}
}
