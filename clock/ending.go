package clock

import (
	"context"
	"sync/atomic"
	"time"
)

// call is the context of a call of a pipeline, as this package sees it.
//
// The news that a context has ended may be another goroutine's to bring: that is
// how package context links contexts of different makers. In real time nobody
// can tell. On a clock that stands still meanwhile it would be a fault: a context
// derived from the one of a call, whose caller's context is ended by an event,
// would hear of it at whatever instant the clock had been driven to by then.
type call interface {
	// EndDerived reports whether the context of the call has ended. Then it has
	// told all that were derived from it directly.
	EndDerived() bool
	// Parent is the context that the call was made with.
	Parent() context.Context
}

// callKey asks a context for the innermost call that it belongs to. The two
// packages know nothing of each other: an unnamed interface is the same type
// wherever it is written, and a nil pointer to it the same key.
var callKey any = (*interface{ EndDerived() bool })(nil)

// callsEnded tells those who were derived from the contexts of calls that have
// ended, and returns how many of the calls that ctx belongs to have.
func callsEnded(ctx context.Context) (n int32) { //nolint:contextcheck // the contexts above it, one by one
	for {
		c, ok := ctx.Value(callKey).(call)
		if !ok {
			return n
		}
		if c.EndDerived() {
			n++
		}
		ctx = c.Parent()
	}
}

// How long, in real time, the news of an end may take: it comes at the next turn
// of the scheduler. Short waits in a row, so that a machine which stands still
// for a while uses up one of them and not all.
const (
	newsTurns = 10
	newsTurn  = time.Millisecond
)

// ending is what one call of Sleep, Wait, Drive or their like knows about the end
// of its context.
type ending struct {
	ctx   context.Context //nolint:containedctx // a record of one call
	known atomic.Int32    // the news of the end of so many calls has had its time
}

// err returns why the context has ended, nil while it has not. It calls foreign
// code: no lock may be held.
//
// If a call that it belongs to has ended, and the context does not know yet, err
// waits for the news, once for each such end: a context that was detached from
// its call (context.WithoutCancel) never hears. In a synctest bubble the wait is
// over as soon as nobody is left who could bring the news.
func (e *ending) err() error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	done := e.ctx.Done()
	if done == nil {
		return nil
	}
	ended := callsEnded(e.ctx)
	if ended <= e.known.Load() {
		return errNow(e.ctx)
	}
	for range newsTurns {
		if err := errNow(e.ctx); err != nil {
			return err
		}
		turn := time.NewTimer(newsTurn)
		select {
		case <-done:
		case <-turn.C:
		}
		turn.Stop()
	}
	e.known.Store(ended) // not before: whoever asks meanwhile has to wait as well
	return errNow(e.ctx)
}

// errNow is ctx.Err(), and context.Canceled for a context of another maker that
// is done and does not say why: whoever took its word for it would take the end
// for a success, or look again and again.
func errNow(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	default:
		return nil
	}
	if err := ctx.Err(); err != nil { // it may have ended in between
		return err
	}
	return context.Canceled
}
