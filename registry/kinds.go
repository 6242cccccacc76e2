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
	open:      []string{"queue", "maxWait"}, agree: agreeOnWaiting,
}

// agreeOnWaiting settles what B-2 says of queue and maxWait where the one belongs
// to the instance and the other to a layer that joins it: which of the two is
// given says what the other one is while that is not. Once a layer gives the queue,
// even as what it is, it is given.
func agreeOnWaiting(l *layer[bulkhead.Config], in *instance[bulkhead.Config, *bulkhead.Policy]) (changed bool) {
	find := func(settings []config.Setting, key string) *config.Setting {
		return &settings[slices.IndexFunc(settings, func(s config.Setting) bool { return in.kind.key(s) == key })]
	}
	queue, own, wait := find(in.settings, "queue"), find(l.Settings, "queue"), find(l.Settings, "maxWait")
	switch {
	case queue.Origin == originDefault && own.Origin != originDefault:
		queue.Origin = own.Origin
		return true
	case queue.Origin == originDefault && l.Config.MaxWait != 0 && in.config.Queue == 0:
		in.config.Queue, queue.Value = bulkhead.Unbounded, unlimited
		return true
	case queue.Origin != originDefault && in.config.Queue != 0 && wait.Origin == originDefault:
		l.Config.MaxWait, wait.Value = bulkhead.Unbounded, unlimited
	}
	return false
}

// unlimited is what a setting shows for bulkhead.Unbounded.
const unlimited = "unlimited"

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
