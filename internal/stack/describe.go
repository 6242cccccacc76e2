package stack

import (
	"strconv"
	"strings"
	"time"

	"resilience4cata.dev/go/policy/retry"
)

// Describe names the layers that are on, from the outside in, each with what
// bounds it.
func (s *Stack) Describe() []string {
	l := s.Layers()
	var text []string
	if s.Fallback {
		text = append(text, "fallback")
	}
	if l.Retry != nil {
		text = append(text, "retry("+describeRetry(l.Retry.Config())+")")
	}
	if l.Breaker != nil {
		c := l.Breaker.Config()
		text = append(text, "circuitbreaker("+strconv.FormatFloat(c.FailureRatio, 'g', -1, 64)+")")
	}
	if l.Limiter != nil {
		c := l.Limiter.Config()
		text = append(text, "ratelimit("+strconv.Itoa(c.Limit)+"/"+short(c.Period)+")")
	}
	if l.Timeout != nil {
		text = append(text, "timeout("+short(l.Timeout.Config().Value)+")")
	}
	if l.Bulkhead != nil {
		text = append(text, "bulkhead("+strconv.Itoa(l.Bulkhead.Config().MaxConcurrent)+")")
	}
	return text
}

func describeRetry(c retry.Config) string {
	attempts := "unlimited"
	if c.MaxAttempts >= 0 {
		attempts = strconv.Itoa(c.MaxAttempts)
	}
	if c.MaxDuration > 0 {
		attempts += " in " + short(c.MaxDuration)
	}
	return attempts
}

// short is Duration's text without the units that are zero: 1h0m0s is 1h.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
