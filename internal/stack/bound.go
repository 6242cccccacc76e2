package stack

import "time"

// Bound is the longest that a call through l can take, for a function that
// honors its context: min(MaxDuration, attempts × (the limiter's wait + the
// timeout) + the sum of the delays at their upper jitter, capped). The fallback,
// what a clock comes late and what a server asks for are not in it. It reports
// false if there is no such bound: without MaxDuration, where there is no
// timeout, a timeout that is asked per call, unlimited attempts, or a delay that
// is asked per attempt and not capped. It saturates at the longest Duration.
func Bound(l *Layers) (d time.Duration, ok bool) {
	attempt := time.Duration(-1) // no bound
	if l.Timeout != nil {
		if c := l.Timeout.Config(); c.Func == nil {
			attempt = c.Value
			if l.Limiter != nil && l.LimiterWait > 0 {
				if attempt += l.LimiterWait; attempt < 0 { // overflow
					attempt = 1<<63 - 1
				}
			}
		}
	}
	if l.Retry != nil {
		return l.Retry.Config().Bound(attempt)
	}
	return max(attempt, 0), attempt >= 0
}
