package conform_test

import (
	"strings"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
)

// layers is a set of layers, a stack: their order is fixed.
type layers uint8

const (
	fallbackLayer layers = 1 << iota
	retryLayer
	breakerLayer
	limiterLayer
	timeoutLayer
	bulkheadLayer

	noLayers  layers = 0
	allLayers        = bulkheadLayer<<1 - 1
)

var layerNames = []string{"fallback", "retry", "circuitbreaker", "ratelimit", "timeout", "bulkhead"}

func (l layers) has(all layers) bool { return l&all == all }

func (l layers) String() string {
	var names []string
	for i, name := range layerNames {
		if l.has(1 << i) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "plain"
	}
	return strings.Join(names, ">")
}

// The settings of every stack of the matrix. They are far apart, so that what
// happens next is never in doubt: the backoff, then the timeout, then the wait
// for a slot, then the function that is slow, then the wait for a permit.
const (
	attempts   = 2
	backoff    = 100 * time.Millisecond
	limit      = time.Second
	slotWait   = 3 * time.Second
	slow       = 5 * time.Second
	slots      = 2
	permits    = 10
	permitCost = 100 * time.Second
	permitWait = 2 * permitCost
	probes     = 5
	openFor    = time.Hour
	soon       = 50 * time.Millisecond // when something happens from outside
)

// build adds the layers of l to b. With waits, calls may wait for permits and
// slots; total, if not 0, is the retry's MaxDuration.
func (l layers) build(b *pipeline.Builder[int], waits bool, total time.Duration) *pipeline.Builder[int] {
	if l.has(retryLayer) {
		b.Retry(retry.MaxAttempts(attempts), retry.Constant(backoff), retry.MaxDuration(total))
	}
	if l.has(breakerLayer) {
		b.CircuitBreaker(circuitbreaker.FailureRatio(1), circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(1),
			circuitbreaker.OpenFor(openFor), circuitbreaker.HalfOpenCalls(probes))
	}
	if l.has(limiterLayer) {
		wait := time.Duration(0)
		if waits {
			wait = permitWait
		}
		b.RateLimit(ratelimit.Per(permits, permits*permitCost), ratelimit.MaxWait(wait))
	}
	if l.has(timeoutLayer) {
		b.Timeout(limit)
	}
	if l.has(bulkheadLayer) {
		wait := time.Duration(0)
		if waits {
			wait = slotWait
		}
		b.Bulkhead(bulkhead.MaxConcurrent(slots), bulkhead.MaxWait(wait))
	}
	return b
}
