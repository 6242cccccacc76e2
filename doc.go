// Package resilience4cata is the landing page of the module; the code is in its
// packages.
//
// A team puts a [resilience4cata.dev/go/pipeline.Pipeline] around every call
// that can fail. A fluent builder stacks the policies, always in the same order:
//
//	fallback > retry > circuit breaker > rate limiter > timeout > bulkhead > your function
//
// The inner four run once per attempt. Where to read on:
//
//	pipeline            the builder, Execute, ExecuteAsync, ExecuteFuture, futures
//	policy              what every policy's errors and events can answer
//	policy/…            each policy: its options, its guarantees, when not to use it
//	registry            ids, snapshots, reload, close and drain
//	registry/config     configuration files and the environment
//	registry/health     the snapshot as a health endpoint
//	clock               the clock, and a manual one for tests
//
// Do not put a pipeline around code that cannot fail, and none around every
// line: one per dependency and kind of call is the measure.
package resilience4cata
