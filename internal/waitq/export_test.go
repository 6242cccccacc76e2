package waitq

// Order is the line from its front to its end, and from its end to its front.
func Order(q *Queue) (forward, back []*Waiter) {
	for w := q.head; w != nil; w = w.next {
		forward = append(forward, w)
	}
	for w := q.tail; w != nil; w = w.prev {
		back = append(back, w)
	}
	return forward, back
}
