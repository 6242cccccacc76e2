package pipeline

import "runtime"

// Promise completes a future by hand: it is how code that has callbacks, a
// batcher or a broker's client say, gives ExecuteFuture a stage. All methods are
// safe for concurrent use. Make it with [NewPromise].
type Promise[T any] struct{ future Future[T] }

// NewPromise returns a promise whose future is pending.
func NewPromise[T any]() *Promise[T] { return &Promise[T]{} }

// Future returns the promise's future: always the same one.
func (p *Promise[T]) Future() *Future[T] { return &p.future }

// Complete completes the future. It reports false when the future was complete
// or had been cancelled: then the value stays the caller's, and a pipeline that
// gave the stage up remembers the outcome as the work's own.
func (p *Promise[T]) Complete(v T, err error) bool {
	f := &p.future
	if f.to(pending, deciding) {
		f.publish(v, err, 0)
		return true
	}
	for !f.ended() { // somebody else is ending it: a matter of instructions
		runtime.Gosched()
	}
	if f.kind(canceledF) {
		if f.peer.Load() != nil {
			f.keep(&follower[T]{late: &outcome[T]{v, err}}) // for all calls whose stage it was
		}
	}
	return false
}

// OnCancel calls f once when the consumer cancels the future or a pipeline
// gives it up; at once if that has happened. Stop the source there. Several such
// functions of one promise may run at the same time. It is never called for a
// future that was completed. A panic of f is contained. It panics
// if f is nil.
func (p *Promise[T]) OnCancel(f func()) {
	if f == nil {
		panic("pipeline: OnCancel: f is nil")
	}
	p.future.follow(&follower[T]{stop: f})
}
