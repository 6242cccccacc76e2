package retry_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"resilience4cata.dev/go/policy/retry"
)

// scheduleFault returns what is wrong with the delay after attempt n, or "".
func scheduleFault(c retry.Config, n int, random float64) string {
	d := c.Schedule(n, random)
	switch {
	case d < 0:
		return fmt.Sprintf("delay(%d) = %v is negative", n, d)
	case c.MaxDelay > 0 && d > c.MaxDelay:
		return fmt.Sprintf("delay(%d) = %v is above the cap", n, d)
	case d != c.Schedule(n, random):
		return "the same input gave another delay"
	case c.Delay > 0 && d == 0 && c.Jitter < 1 && !c.FullJitter && float64(min(c.Delay, max(c.MaxDelay, 1)))*(1-c.Jitter) >= 1:
		return fmt.Sprintf("delay(%d) is 0", n)
	}
	plain := c
	plain.Jitter, plain.FullJitter = 0, false
	base, next := plain.Schedule(n, random), plain.Schedule(n+1, random)
	// Float64 arithmetic tells factors apart that differ by more than this.
	if next < base && (c.Factor == 1 || c.Factor > 1+1e-9) {
		return fmt.Sprintf("without jitter delay(%d) = %v and delay(%d) = %v", n, base, n+1, next)
	}
	low, high := 1-c.Jitter, 1+c.Jitter
	if c.FullJitter {
		low, high = 0, 1
	}
	slack := 1 + float64(base)*1e-12
	if float64(d) < float64(base)*low-slack || float64(d) > float64(base)*high+slack {
		return fmt.Sprintf("delay(%d) = %v is outside [%v, %v] of %v", n, d, low, high, base)
	}
	return ""
}

func FuzzSchedule(f *testing.F) {
	f.Add(uint8(2), int64(100*time.Millisecond), 2.0, int64(30*time.Second), 0.25, false, 10, 0.5)
	f.Add(uint8(2), int64(math.MaxInt64), 1e308, int64(0), 1.0, false, 1000, 1.0)
	f.Add(uint8(1), int64(math.MaxInt64/2), 1.0, int64(0), 0.0, true, math.MaxInt32-1, 0.999)
	f.Fuzz(func(t *testing.T, shape uint8, delay int64, factor float64, limit int64, jitter float64, full bool, n int, random float64) {
		c := retry.Config{
			MaxAttempts: 3, Delay: time.Duration(delay), Factor: factor, MaxDelay: time.Duration(limit), Jitter: jitter, FullJitter: full,
			Backoff: []retry.Backoff{retry.BackoffConstant, retry.BackoffLinear, retry.BackoffExponential}[shape%3],
		}
		if c.Validate() != nil || n < 1 || n == math.MaxInt {
			t.Skip()
		}
		if text := scheduleFault(c, n, random); text != "" {
			t.Errorf("%+v: %s", c, text)
		}
	})
}
