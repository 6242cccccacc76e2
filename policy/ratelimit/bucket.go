package ratelimit

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A bucket counts time in units of which every permit costs a whole number, so
// that nothing is ever rounded away: with n permits per p nanoseconds, n and p
// without a common divisor, a unit is 1/n ns and a permit costs p of them. Then
// an int64 has to hold
//
//	now - base   within ±maxReach
//	fill         up to maxFill
//	queue        up to maxQueue, what those who wait have reserved
//
// whose sum stays below 2^63.
const (
	maxReach = 1 << 60
	maxFill  = 1 << 61
	maxQueue = 1 << 62
)

// Where exact units would be so small that one of these bounds came into
// reach, units are larger and the cost of a permit is rounded up: such a limiter
// is slower than asked, never faster; by less than one part in a million up to
// rates of 10^12 a second and bursts of 10^12.
const (
	maxScale = 1 << 31 // units in a nanosecond: reach is at least half a second
	bigScale = 1 << 10 // above it, cost is bounded, too:
	bigCost  = 1 << 42 // so that maxQueue holds a million waiters
)

// tolerance is how far a clock may go back and be waited for. A limiter that
// finds it further back goes on from where the clock is; see Policy.locate.
const tolerance = time.Second

// sealed stands in tat while the state is elsewhere: under the lock of the
// policy whose bucket this is, or in the bucket that has replaced this one.
const sealed = math.MaxInt64

// bucket is the generic cell rate algorithm GCRA(T, τ) in its virtual scheduling
// form (ITU-T Recommendation I.371, annex A; ATM Forum Traffic Management
// Specification 4.0, section 4.4): a cell that arrives at t conforms if and only
// if t ≥ TAT-τ, and then TAT becomes max(t, TAT)+T. Here T is cost, and τ is
// (burst-1)·T = fill-cost. TAT-t is what is missing for a full bucket, so that
// TAT ≤ t means full.
//
// Only tat ever changes. It shares its cache line with the rest, which everybody
// who changes it needs as well: the struct is 64 bytes, a size that the
// allocator aligns.
type bucket struct {
	tat    atomic.Int64 // units since base, never negative; or sealed
	base   int64        // scope time, in ns, at which units begin
	scale  int64        // units in a nanosecond
	cost   int64        // units in a permit
	fill   int64        // units in a full bucket
	reach  int64        // how far from base the clock may be, in ns
	slack  int64        // a wait in units that is longer shows a clock that went back
	config *Config      // never changed
}

// newBucket returns a full, sealed bucket that begins at base.
func newBucket(c *Config, base int64) *bucket {
	b := &bucket{base: base, config: c}
	b.scale, b.cost, b.fill = units(int64(c.Limit), int64(c.Period), int64(c.Burst))
	b.reach = maxReach / b.scale
	b.slack = b.cost + int64(tolerance)*b.scale
	b.tat.Store(sealed)
	return b
}

// units chooses the unit for n permits in p nanoseconds and a burst.
func units(n, p, burst int64) (scale, cost, fill int64) {
	g := gcd(n, p)
	scale, cost = n/g, p/g
	if scale <= maxScale && (scale <= bigScale || cost <= bigCost) && cost <= maxFill/burst {
		return scale, cost, burst * cost
	}
	// With its cost rounded up, a burst is at most full·scale + burst units.
	full := mulDiv(burst, p, n) // ns that fill the bucket
	scale = min(maxScale, (maxFill-min(burst, maxFill/2))/full)
	scale = min(scale, max(bigScale, bigCost/(p/n+1)))
	scale = max(scale, 1)
	cost = min(mulDiv(p, scale, n), maxFill)
	fill = maxFill
	if burst <= maxFill/cost {
		fill = burst * cost
	}
	return scale, cost, max(fill, cost)
}

// take takes a permit at the given reading of the clock, without the lock. A
// wait of 0 is a permit, another is how long a permit would take. If it is not
// decided, the policy has to do it under its lock.
//
// Whoever wins the compare-and-swap has computed from the state that it
// replaces, hence nobody is admitted twice for the same time. A state that went
// away and came back in between is the same state.
func (b *bucket) take(now int64) (wait time.Duration, decided bool) {
	t := now - b.base
	if uint64(t) > uint64(b.reach) { // or before base
		return 0, false
	}
	at := t * b.scale
	for {
		tat := b.tat.Load()
		if tat == sealed {
			return 0, false
		}
		next := max(tat, at) + b.cost
		if short := next - b.fill - at; short > 0 {
			return b.duration(short), short <= b.slack
		}
		if b.tat.CompareAndSwap(tat, next) {
			return 0, true
		}
	}
}

// duration is how long it takes for the given units to pass, rounded up to the
// nanosecond from which on they have.
func (b *bucket) duration(units int64) time.Duration {
	if b.scale == 1 {
		return time.Duration(units)
	}
	d := units / b.scale
	if d*b.scale < units {
		d++
	}
	return time.Duration(d)
}

// available is how many whole permits are in store at a reading of the clock.
func (b *bucket) available(tat, now int64) int {
	t := now - b.base
	if t > b.reach || tat/b.scale < t {
		return b.config.Burst
	}
	if t < -b.reach {
		return 0
	}
	debt := tat - t*b.scale
	if debt <= 0 {
		return b.config.Burst
	}
	return int(max(0, min((b.fill-debt)/b.cost, int64(b.config.Burst))))
}

// convert returns the debt in b for one that was in old, so that as many permits
// are in store, parts of one included, or the burst if that is less. A store
// below zero, what waiters have reserved, stays as it is as well.
func (b *bucket) convert(debt int64, old *bucket) int64 {
	debt = max(debt, 0)
	whole, part := debt/old.cost, debt%old.cost
	// Debt is counted from a full bucket, the store from an empty one.
	whole += b.fill/b.cost - old.fill/old.cost
	if whole < 0 {
		return 0 // part is less than one permit: more was in store than b holds
	}
	rest := min(mulDiv(part, b.cost, old.cost), b.cost)
	if whole > (maxQueue-rest)/b.cost {
		return maxQueue
	}
	return whole*b.cost + rest
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mulDiv is a·b/c, rounded up and at most math.MaxInt64, for a, b ≥ 0 and c > 0.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(c-1), 0)
	hi += carry
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}
