package callctx

import "context"

// causeKey is the key with which the standard library asks a context for its
// nearest cancel context; [context.Cause] finds the cause there, and has no
// other way to learn one. It is not exported, so we listen in.
//
// With it, what users look up goes straight to the parent, and the question for
// the cause fixes the answer as the question for the error does.
var causeKey = func() any {
	p := &probe{Context: context.Background()}
	_ = context.Cause(p)
	return p.key
}()

// probe is a context that remembers what it was asked for.
type probe struct {
	context.Context
	key any
}

func (*probe) Err() error { return context.Canceled }

func (p *probe) Value(key any) any {
	p.key = key
	return nil
}
