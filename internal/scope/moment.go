package scope

import "time"

// moment is the contexts of one registry with one deadline, on a clock that need
// not call what is due at once before anything that follows from it: a Mock of
// github.com/benbjohnson/clock starts a goroutine for each timer, one after the
// other. So the timer that comes first expires all of them, and what they leave to
// do is done when the last one has expired. The end of a wait in a queue is a timer
// of its own, and no part of it.
//
// Expiring calls the user's code, which may take long. Meanwhile the others' own
// timers come, and help. Guarded by the scope's mu.
type moment struct {
	deadline    int64
	first, last *private // who have not expired, in the order in which they began
	busy        int      // timers at work
	afters      []func() // what the expired have left to do
	watched     bool     // soon after, open
	open        bool     // one is stuck, and must not hold up what the others left to do
}

// patience is how long, by real time, one that expires holds up what others have
// left to do.
const patience = time.Second

// join puts p, who is in no moment, into that of the deadline. The caller holds
// s.mu.
func (s *Scope) join(p *private, deadline int64) {
	m := s.moments[deadline]
	if m == nil {
		m = &moment{deadline: deadline}
		s.moments[deadline] = m
	}
	p.moment, p.prev = m, m.last
	if m.last == nil {
		m.first = p
	} else {
		m.last.next = p
	}
	m.last = p
}

// leave takes p out of its moment, if it is in one. The caller holds the scope's
// mu.
func (p *private) leave() {
	m := p.moment
	if m == nil {
		return
	}
	if p.prev == nil {
		m.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		m.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.moment, p.prev, p.next = nil, nil, nil
	p.scope.forget(m)
}

// forget drops m if nobody is in it or at work on it. The caller holds s.mu.
func (s *Scope) forget(m *moment) {
	if m.first == nil && m.busy == 0 {
		delete(s.moments, m.deadline)
	}
}

// pass is p's timer.
func (p *private) pass(deadline int64) {
	s, over := p.scope, false
	defer func() {
		if over {
			return
		}
		// The clock was set back, its timers do not keep to what it says, or it panicked
		// when it was asked. Then they are to be believed, each for its own.
		s.mu.Lock()
		p.leave()
		s.mu.Unlock()
		p.expire(s.soon)
	}()
	if over = s.Now() >= deadline; over {
		s.pass(deadline)
	}
}

// pass lets all those expire who are in the moment.
func (s *Scope) pass(deadline int64) {
	m := s.enter(deadline)
	if m == nil {
		return
	}
	defer s.exit(m) // also if the user's code panics or ends the goroutine
	for e := s.take(m); e != nil; e = s.take(m) {
		e.expire(func(after func()) { s.follow(m, after) })
	}
}

// expire lets p's context expire, unless it has ended or is just being ended.
func (p *private) expire(later func(after func())) {
	if c := p.context(); c != nil {
		expire(c, &p.slot, later)
	}
}

// enter begins the work of a timer on the moment, if there is one left.
func (s *Scope) enter(deadline int64) *moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.moments[deadline]
	if m == nil {
		return nil
	}
	m.busy++
	if !m.watched && (m.busy > 1 || m.first != m.last) {
		m.watched = true
		// It is not stopped: it may be of another synctest bubble than who comes last.
		time.AfterFunc(patience, func() { s.unlock(m) })
	}
	return m
}

// take takes the next one out of the moment.
func (s *Scope) take(m *moment) *private {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := m.first
	if p != nil {
		p.leave()
	}
	return p
}

// follow arranges for after to be called when all have expired.
func (s *Scope) follow(m *moment, after func()) {
	s.mu.Lock()
	open := m.open
	if !open {
		m.afters = append(m.afters, after)
	}
	s.mu.Unlock()
	if open {
		s.soon(after)
	}
}

// exit ends the work of a timer. The last one calls what all have left to do.
func (s *Scope) exit(m *moment) {
	s.mu.Lock()
	m.busy--
	var afters []func()
	if m.busy == 0 {
		afters, m.afters = m.afters, nil
		s.forget(m)
	}
	s.mu.Unlock()
	for _, f := range afters {
		s.soon(f)
	}
}

// unlock lets what is left to do begin, if somebody has not expired until now.
func (s *Scope) unlock(m *moment) {
	s.mu.Lock()
	m.open = true
	afters := m.afters
	m.afters = nil
	s.mu.Unlock()
	for _, f := range afters {
		s.soon(f)
	}
}
