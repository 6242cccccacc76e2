package clock

import "context"

// Parked is the number of records of parked goroutines, those that no longer
// count as sleepers included.
func (m *Manual) Parked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.parked)
}

// GrantInPassing is the meeting of a Wait that has parked, but has not reached
// its select, with an AwaitSleepers that looks at its channel. It reports what
// Wait then learns and whether AwaitSleepers counted it.
func (m *Manual) GrantInPassing(ctx context.Context, ready <-chan struct{}) (granted, counted bool) {
	p := newParked(&ending{ctx: ctx}, ready)
	m.mu.Lock()
	m.park(p)
	m.mu.Unlock()
	counted = m.sleepers(1) > 0
	return m.unpark(p), counted
}
