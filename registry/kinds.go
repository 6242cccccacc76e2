package registry

import (
	"slices"

	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry/config"
)

var retries = kind[retry.Config, *retry.Policy]{
	name: "retry", section: "retry",
	merge: config.Retry, make: retry.NewIn, validate: retry.Config.Validate,
	functions: func(c retry.Config) []string {
		return given(named{"delayFunc", c.DelayFunc != nil}, named{"rand", c.Rand != nil})
	},
	rules: func(c, first retry.Config) []string {
		return given(
			named{"on", len(c.On) > 0 && !sameErrors(c.On, first.On)}, named{"if", c.If != nil},
			named{"abortOn", len(c.AbortOn) > 0 && !sameErrors(c.AbortOn, first.AbortOn)}, named{"abortIf", c.AbortIf != nil},
		)
	},
	keep: func(c *retry.Config, from retry.Config) {
		if c.DelayFunc == nil {
			c.DelayFunc = from.DelayFunc
		}
		if c.Rand == nil {
			c.Rand = from.Rand
		}
	},
}

var breakers = kind[circuitbreaker.Config, *circuitbreaker.Policy]{
	name: "circuitbreaker", section: "circuitBreaker",
	merge: config.CircuitBreaker, make: circuitbreaker.NewIn, validate: circuitbreaker.Config.Validate,
	functions: func(c circuitbreaker.Config) []string {
		return given(named{"failIf", c.FailIf != nil}, named{"ignore", len(c.Ignore) > 0})
	},
	rules: noRules[circuitbreaker.Config],
	keep: func(c *circuitbreaker.Config, from circuitbreaker.Config) {
		if c.FailIf == nil {
			c.FailIf = from.FailIf
		}
		if c.Ignore == nil {
			c.Ignore = slices.Clone(from.Ignore)
		}
	},
}

var limiters = kind[ratelimit.Config, *ratelimit.Policy]{
	name: "ratelimit", section: "rateLimiter",
	layer: []string{"maxWait"}, required: []string{"limit", "burst"},
	merge: config.RateLimit, make: ratelimit.NewIn, validate: ratelimit.Config.Validate,
	functions: noFunctions[ratelimit.Config],
	rules:     noRules[ratelimit.Config],
	keep:      func(*ratelimit.Config, ratelimit.Config) {},
}

var bulkheads = kind[bulkhead.Config, *bulkhead.Policy]{
	name: "bulkhead", section: "bulkhead",
	layer: []string{"maxWait", "freeOnTimeout"}, required: []string{"maxConcurrent"},
	merge: config.Bulkhead, make: bulkhead.NewIn, validate: bulkhead.Config.Validate,
	functions: noFunctions[bulkhead.Config],
	rules:     noRules[bulkhead.Config],
	keep:      func(*bulkhead.Config, bulkhead.Config) {},
}

var timeouts = kind[timeout.Config, *timeout.Policy]{
	name: "timeout", section: "timeout",
	merge:     config.Timeout,
	functions: noFunctions[timeout.Config],
	rules: func(c, _ timeout.Config) []string {
		return given(named{"func", c.Func != nil})
	},
}

func noFunctions[C any](C) []string  { return nil }
func noRules[C any](_, _ C) []string { return nil }

type named struct {
	name string
	is   bool
}

// given returns the names of those that are given.
func given(all ...named) (names []string) {
	for _, n := range all {
		if n.is {
			names = append(names, n.name)
		}
	}
	return names
}

// sameErrors reports whether two lists hold the very same errors. Errors that
// cannot be compared are not the same.
func sameErrors(a, b []error) (same bool) {
	defer func() {
		if recover() != nil { // an error whose type has no ==
			same = false
		}
	}()
	return slices.Equal(a, b)
}
