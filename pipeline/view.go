package pipeline

import (
	"container/list"
	"sync"
)

// views are the pending views of a future. One that is canceled is taken off at
// once: what hangs for long must not collect all who have given up waiting for it.
type views[T any] struct {
	mu   sync.Mutex
	list list.List // of *Future[T], in the order in which they came
	over bool      // the future is complete, and so are they
}

// views returns the views of f, which it makes if f has none.
func (f *Future[T]) views() *views[T] {
	return f.only(
		func(n *follower[T]) bool { return n.views != nil },
		func() *follower[T] { return &follower[T]{views: &views[T]{}} },
	).views
}

// add makes v a view of f.
func (s *views[T]) add(f, v *Future[T]) {
	s.mu.Lock()
	over := s.over
	if !over {
		e := s.list.PushBack(v)
		v.list.Store(&follower[T]{leave: func() { // nobody else knows v yet
			s.mu.Lock()
			s.list.Remove(e)
			s.mu.Unlock()
		}})
	}
	s.mu.Unlock()
	if over {
		v.copy(f)
	}
}

// complete gives all views the result of f, which is complete.
func (s *views[T]) complete(f *Future[T]) {
	s.mu.Lock()
	s.over = true
	all := make([]*Future[T], 0, s.list.Len())
	for e := s.list.Front(); e != nil; e = s.list.Front() {
		all = append(all, s.list.Remove(e).(*Future[T]))
	}
	s.mu.Unlock()
	each(all, func(v *Future[T]) { v.copy(f) })
}

// copy gives a view the result of its origin.
func (f *Future[T]) copy(origin *Future[T]) {
	if f.to(pending, deciding) {
		f.publish(origin.v, origin.err, 0)
	}
}
