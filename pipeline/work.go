package pipeline

// Work is what the work itself did, whatever its future says: after a timeout
// the future has failed while the work may be running still. It speaks of the
// last attempt that was started, and it is done when the future has ended and
// no attempt runs any more. A stage that was cancelled does not run any more;
// when it is completed all the same, that is its outcome. All methods are safe
// for concurrent use. [Future.Work] makes it; the zero value is not usable, and
// its methods panic.
type Work[T any] struct{ f *Future[T] }

// Done returns a channel that is closed when the work is done.
func (w *Work[T]) Done() <-chan struct{} {
	c := w.f.call()
	if c == nil {
		return w.f.Done()
	}
	return c.workDone()
}

// Poll returns the work's own outcome once it is done: a late success stays
// visible here. A late value that an OnDiscard hook got is not here any more:
// then it is the zero value, with a nil error. If the function was never
// entered, the error says why.
func (w *Work[T]) Poll() (v T, complete bool, err error) {
	c := w.f.call()
	if c == nil {
		return w.f.Poll()
	}
	return c.workPoll()
}

// CancelRequested reports whether an end other than the work's own was decided:
// a deadline won, the future was cancelled, the caller's context ended, the
// registry was closed. It says nothing about whether the work has seen that.
func (w *Work[T]) CancelRequested() bool {
	c := w.f.call()
	if c == nil {
		return w.f.kind(canceledF)
	}
	return c.cancelRequested()
}
