package retry

import (
	"math"
	"math/bits"
	"time"
)

const longest = time.Duration(math.MaxInt64)

// schedule returns the delay after attempt n (from 1). It is a pure function of
// the settings, n and random, a number in [0, 1] of which it makes use only
// where the settings have jitter.
//
// All arithmetic saturates at the longest duration, so that a delay never
// becomes negative or, by overflow, zero: that would turn a backoff into a busy
// loop. The cap holds before the jitter and after it: before, so that delays at
// the cap are spread too; after, so that none is above it.
func schedule(c *Config, n int, random float64) time.Duration {
	d := nominal(c, n)
	switch {
	case c.FullJitter:
		return scale(d, clamp(random))
	case c.Jitter != 0:
		return atMost(c.MaxDelay, scale(d, 1+c.Jitter*(2*clamp(random)-1)))
	default:
		return d
	}
}

// nominal is the delay after attempt n without jitter.
func nominal(c *Config, n int) time.Duration {
	d := c.Delay
	switch c.Backoff {
	case BackoffLinear:
		d = times(d, n)
	case BackoffExponential:
		d = scale(d, math.Pow(c.Factor, float64(n-1)))
	case BackoffConstant:
	}
	return atMost(c.MaxDelay, d)
}

// atMost caps d; a cap of 0 is none.
func atMost(limit, d time.Duration) time.Duration {
	if limit > 0 && d > limit {
		return limit
	}
	return d
}

// scale returns d × f to the nearest nanosecond, for d and f of 0 or more. A
// factor of 1 is exact: a float64 has not the digits for every duration.
func scale(d time.Duration, f float64) time.Duration {
	if f == 1 || d == 0 { // 0 × ∞ is NaN
		return d
	}
	x := math.Round(float64(d) * f)
	if x >= math.MaxInt64 { // rounds to 2⁶³, the first value that does not fit
		return longest
	}
	return time.Duration(x)
}

// times returns d × n, for both 0 or more.
func times(d time.Duration, n int) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(n))
	if hi != 0 || lo > math.MaxInt64 {
		return longest
	}
	return time.Duration(lo)
}

// plus returns a + b, for both 0 or more.
func plus(a, b time.Duration) time.Duration {
	if a > longest-b {
		return longest
	}
	return a + b
}

// clamp brings what a user's source of randomness gave into [0, 1].
func clamp(x float64) float64 {
	switch {
	case x >= 0 && x <= 1:
		return x
	case x < 0:
		return 0
	case x > 1:
		return 1
	default: // NaN
		return 0.5
	}
}

// Bound is the longest that a call can take if no attempt takes longer than
// perAttempt, its waits included: min(MaxDuration, attempts × perAttempt + the
// delays at their upper jitter, capped). A negative perAttempt means that
// attempts have no bound. Server hints and what a clock comes late are not in
// it. ok is false if there is no such bound: without MaxDuration for unlimited
// attempts, unbounded ones, and a DelayFunc without MaxDelay. It saturates.
func (c Config) Bound(perAttempt time.Duration) (d time.Duration, ok bool) {
	if perAttempt >= 0 && c.MaxAttempts > 0 && (c.DelayFunc == nil || c.MaxDelay > 0) {
		d, ok = plus(times(perAttempt, c.MaxAttempts), c.delays(c.MaxAttempts-1)), true
	}
	if c.MaxDuration > 0 && (!ok || c.MaxDuration < d) {
		return c.MaxDuration, true
	}
	return d, ok
}

// delays returns the sum of the first n delays at their longest.
func (c *Config) delays(n int) (sum time.Duration) {
	if c.DelayFunc != nil {
		return times(c.MaxDelay, n)
	}
	// Delays reach the cap, or the longest duration, soon, unless they hardly
	// grow at all. After this many the last one stands for the rest: it is the
	// longest, so that the sum stays a bound.
	const enough = 10_000
	for i := 1; i <= n; i++ {
		d := schedule(c, i, 1)
		if d == longest || d == c.MaxDelay || i == enough {
			return plus(sum, times(schedule(c, n, 1), n-i+1))
		}
		sum = plus(sum, d)
	}
	return sum
}
