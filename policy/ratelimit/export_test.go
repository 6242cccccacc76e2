package ratelimit

import "time"

// Units is the unit that a rate gets: units in a nanosecond, in a permit, in a
// full bucket.
func Units(limit int, period time.Duration, burst int) (scale, cost, fill int64) {
	return units(int64(limit), int64(period), int64(burst))
}

// MulDiv is mulDiv.
func MulDiv(a, b, c int64) int64 { return mulDiv(a, b, c) }

// Shift is by how much the policy's clock is behind its bucket.
func (p *Policy) Shift() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.shift)
}

// Sealed reports whether all calls take the lock.
func (p *Policy) Sealed() bool { return p.current.Load().tat.Load() == sealed }
