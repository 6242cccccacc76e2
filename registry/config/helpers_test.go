package config_test

import (
	"testing"
	"time"

	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry/config"
)

type (
	timeoutConfig  = timeout.Config
	retryConfig    = retry.Config
	rateConfig     = ratelimit.Config
	bulkheadConfig = bulkhead.Config
	breakerConfig  = circuitbreaker.Config
)

func retryDefault() retryConfig { return retry.Default() }

const ms = time.Millisecond

// settings returns the effective settings of the layers that the file names for
// id, by path.
func settings(t *testing.T, c *config.Config, id string) map[string]config.Setting {
	t.Helper()
	all := map[string]config.Setting{}
	for _, s := range configured(t, c, id) {
		all[s.Path] = s
	}
	return all
}

// configured returns the same in order, and fails if something is wrong.
func configured(t *testing.T, c *config.Config, id string) []config.Setting {
	t.Helper()
	var all []config.Setting
	take := func(present bool, list []config.Setting, err error) {
		t.Helper()
		if !present {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		all = append(all, list...)
	}
	r, err := config.Retry(c, id, config.Code[retryConfig]{})
	take(r.Present, r.Settings, err)
	b, err := config.CircuitBreaker(c, id, config.Code[breakerConfig]{})
	take(b.Present, b.Settings, err)
	l, err := config.RateLimit(c, id, config.Code[rateConfig]{})
	take(l.Present, l.Settings, err)
	d, err := config.Timeout(c, id, config.Code[timeoutConfig]{})
	take(d.Present, d.Settings, err)
	h, err := config.Bulkhead(c, id, config.Code[bulkheadConfig]{})
	take(h.Present, h.Settings, err)
	return all
}
