package main

import (
	"fmt"
	"math/rand/v2"

	"resilience4cata.dev/go/registry/config"
)

// The bounds of what settings draws from. The snapshots are held against them.
const (
	mostAtOnce    = 32
	mostQueued    = 40
	mostRetries   = 4
	mostPerSecond = 2000
	mostBurst     = 100
)

// settings returns a configuration for all pipelines, with values drawn from rnd.
// Two files differ in values and in what is enabled, and never in the layers.
func settings(rnd *rand.Rand) (*config.Config, error) {
	between := func(low, high int) int { return low + rnd.IntN(high-low+1) }
	retries := func() string {
		return fmt.Sprintf("{maxAttempts: %d, delay: %dms, jitter: 0.5, maxDuration: %dms, budget: {ratio: 0.5, minPerSecond: %d}}",
			between(1, mostRetries), between(0, 5), between(200, 600), between(0, 100))
	}
	breaker := func() string {
		return fmt.Sprintf("{window: %d, minCalls: 20, failureRatio: 0.6, openFor: %dms, halfOpenCalls: %d, enabled: %t}",
			between(30, 60), between(20, 200), between(1, 5), rnd.IntN(5) > 0)
	}
	limit := func() string {
		return fmt.Sprintf("{limit: %d, burst: %d, maxWait: %dms}", between(200, mostPerSecond), between(1, mostBurst), between(0, 50))
	}
	timeout := func() string { return fmt.Sprintf("{value: %dms}", between(30, 150)) }
	slots := func() string {
		return fmt.Sprintf("{maxConcurrent: %d, queue: %d, maxWait: %dms}", between(4, mostAtOnce), between(0, mostQueued), between(0, 80))
	}
	text := `
instances:
  whole:
    retry: ` + retries() + `
    circuitBreaker: ` + breaker() + `
    rateLimiter: ` + limit() + `
    timeout: ` + timeout() + `
    bulkhead: ` + slots() + `
  pool-a:
    retry: ` + retries() + `
    rateLimiter: {name: backend, maxWait: 20ms}
    timeout: ` + timeout() + `
    bulkhead: {name: pool, maxWait: 50ms}
  pool-b:
    circuitBreaker: ` + breaker() + `
    rateLimiter: {name: backend}
    timeout: ` + timeout() + `
    bulkhead: {name: pool, maxWait: 10ms}
  loose:
    timeout: ` + timeout() + `
    bulkhead: {maxConcurrent: 8, queue: 8, freeOnTimeout: true}
  backend:
    rateLimiter: ` + limit() + `
  pool:
    bulkhead: ` + slots() + `
`
	return config.Parse("soak.yaml", []byte(text))
}
