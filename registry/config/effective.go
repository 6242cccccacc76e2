package config

import (
	"reflect"
	"slices"

	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// The origins of a [Setting] that are no place in a file. Package registry adds
// "runtime", for what a handle has changed.
const (
	originDefault = "default"
	originCode    = "code"
)

// Setting is one effective value and where it came from.
type Setting struct {
	// Path is where the configuration would set it:
	// instances."reports".timeout.value.
	Path string `json:"path"`
	// Value is what it is, as the configuration would have it: "2s", "3",
	// "unlimited".
	Value string `json:"value"`
	// Origin is "default", "code", "env", or the file and the line that set it.
	Origin string `json:"origin"`
}

// Code is what the builder of a pipeline says of one of its layers. It is for
// package registry; its zero value says nothing.
type Code[C any] struct {
	Config C        // the options, applied onto the zero Config
	Keys   []string // the keys that they set, as Apply returns them; other fields of Config count only if no key stands for them
	Base   string   // the config that the builder names; "" for none
	Name   string   // the shared instance that the options name; "" for none
}

// Effective is what one layer of one instance comes to. It is for package
// registry.
type Effective[C any] struct {
	Config   C         // the merged settings; functions and error lists are the code's
	Enabled  bool      // false: the configuration takes the layer out
	Present  bool      // the file names the layer at some level for this id
	Name     string    // the shared instance that the layer uses; "" for its own
	Settings []Setting // every value of Config and its origin, in the order of the reference
}

// Timeout returns the effective timeout of the instance id. The levels are, low
// to high: the built-in defaults, configs.default, the config that code names,
// code, the config that the instance names, and the instance's own section. A
// value from the environment has the rank of its path. Scalars override, and an
// explicit zero is a value.
//
// Where the layer shares an instance, the shared instance's sections come above
// the rest for what belongs to the instance, and right above code for what
// belongs to the layer (waits, and all of a retry but its budget).
//
// Only the result is validated. Its mistakes come back joined, each an *[Error]
// with the place of the value that it is about. A layer that is not enabled is
// not validated. The Effective is filled in also beside an error: look at Present
// first if the layer is not in code. A config that code names and that does not
// exist is reported for each policy; use [Config.Base] to report it once. c may be
// nil.
func Timeout(c *Config, id string, code Code[timeout.Config]) (Effective[timeout.Config], error) {
	return effective(c, id, "timeout", code, timeout.Default(), timeout.Config.Validate)
}

// Retry is [Timeout] for the retry.
func Retry(c *Config, id string, code Code[retry.Config]) (Effective[retry.Config], error) {
	code.Config.On, code.Config.AbortOn = slices.Clone(code.Config.On), slices.Clone(code.Config.AbortOn)
	return effective(c, id, "retry", code, retry.Default(), retry.Config.Validate)
}

// RateLimit is [Timeout] for the rate limiter. Where no level says the burst, it
// is the limit.
func RateLimit(c *Config, id string, code Code[ratelimit.Config]) (Effective[ratelimit.Config], error) {
	return effective(c, id, "ratelimit", code, ratelimit.Default(), ratelimit.Config.Validate)
}

// Bulkhead is [Timeout] for the bulkhead. Where some level says one of queue and
// maxWait and none says the other, the other bounds nothing (-1).
func Bulkhead(c *Config, id string, code Code[bulkhead.Config]) (Effective[bulkhead.Config], error) {
	return effective(c, id, "bulkhead", code, bulkhead.Default(), bulkhead.Config.Validate)
}

// CircuitBreaker is [Timeout] for the circuit breaker. Of window and timeWindow
// the one that is set at the higher level holds, and the other is zero.
func CircuitBreaker(c *Config, id string, code Code[circuitbreaker.Config]) (Effective[circuitbreaker.Config], error) {
	code.Config.Ignore = slices.Clone(code.Config.Ignore)
	return effective(c, id, "circuitbreaker", code, circuitbreaker.Default(), circuitbreaker.Config.Validate)
}

func effective[C any](c *Config, id, policy string, code Code[C], defaults C, validate func(C) error) (Effective[C], error) {
	m := merge(c, id, policy, code, defaults)
	e := Effective[C]{
		Config:   code.Config,
		Enabled:  m.enabled(),
		Present:  len(m.layers) > 0,
		Name:     m.name,
		Settings: m.settings(),
	}
	m.into(reflect.ValueOf(&e.Config).Elem())
	if e.Enabled {
		m.locate(validate(e.Config))
	}
	return e, m.mistakes.finish()
}
