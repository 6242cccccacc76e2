package testkit

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
)

// Leaving are the ways in which foreign code does not come back.
var Leaving = map[string]func(){
	"panic":  func() { panic("on purpose") },
	"Goexit": runtime.Goexit,
}

// Survive calls f, which leaves in one of those ways, on a goroutine of its own,
// and waits for the end of that. If f returns, that is an error.
func Survive(tb testing.TB, f func()) {
	tb.Helper()
	over := make(chan struct{})
	returned := false
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		f()
		returned = true
	}()
	if <-over; returned {
		tb.Error("it has returned")
	}
}

// Careless is a fake context such as tests have: it is done once Ended is closed,
// and its Err does not say so. From then on Err calls Leave, if there is one, which
// does not come back.
type Careless struct {
	context.Context //nolint:containedctx // it is one
	Ended           chan struct{}
	Leave           func()
}

// Done is Ended.
func (c Careless) Done() <-chan struct{} { return c.Ended }

// Err is always nil, or does not return.
func (c Careless) Err() error {
	select {
	case <-c.Ended:
		if c.Leave != nil {
			c.Leave()
		}
	default:
	}
	return nil
}

// Linked is a caller's context that never ends and counts what is registered with
// it, by the AfterFunc method that package context looks for. Use its address.
type Linked struct {
	context.Context //nolint:containedctx // it is one
	Registered      atomic.Int64
}

// Done returns a channel, as a context that may end has one.
func (*Linked) Done() <-chan struct{} { return make(chan struct{}) }

// AfterFunc registers, and calls nothing.
func (l *Linked) AfterFunc(func()) (stop func() bool) {
	l.Registered.Add(1)
	var stopped atomic.Bool
	return func() bool {
		if stopped.Swap(true) {
			return false
		}
		l.Registered.Add(-1)
		return true
	}
}
