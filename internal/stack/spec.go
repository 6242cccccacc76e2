package stack

import (
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// Spec is what a builder asks the registry for.
type Spec struct {
	ID    string
	Place string // where Build was called: "reports.go:12"
	Base  string // Builder.Config: configs.<base>; "" none

	// Configured pipelines have the layers that the configuration lists; code
	// may only add options to them.
	Configured bool

	Fallback bool

	// The layers that code asked for; nil: not asked for.
	Retry    *Layer[retry.Config]
	Breaker  *Layer[circuitbreaker.Config]
	Limiter  *Layer[ratelimit.Config]
	Timeout  *Layer[timeout.Config]
	Bulkhead *Layer[bulkhead.Config]
}

// Layer is what code says of one layer.
type Layer[C any] struct {
	Config C        // the options, applied to the zero Config
	Keys   []string // the settings that they set, by their names in a file
	Name   string   // the shared instance; "" the pipeline's own id
}
