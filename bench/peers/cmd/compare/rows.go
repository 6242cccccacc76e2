package main

// row is ours against one peer, and what is to be reached.
type row struct {
	name         string // unique: reasons.txt refers to it
	against      string
	ours, theirs side
	target
}

// target is what a row is to reach. One without any is there for information.
type target struct {
	ratio  float64 // theirs takes at least so many times as long
	extra  float64 // ours takes at most so many nanoseconds longer
	gated  bool    // the two below hold
	allocs float64 // ours makes at most so many allocations
	bytes  float64 // of so many bytes in all
}

// side is a benchmark: its name without Benchmark, its lib= and its -cpu.
type side struct {
	bench, lib string
	cpu        int
}

func against(name, bench, lib string, t target) row {
	return row{name, lib, side{bench, "ours", 1}, side{bench, lib, 1}, t}
}

// onTwo is against with -cpu 2.
func onTwo(name, bench, lib string, t target) row {
	r := against(name, bench, lib, t)
	r.ours.cpu, r.theirs.cpu = 2, 2
	return r
}

// scaling is ours on two processors against ours on one.
func scaling(name, bench string, t target) row {
	return row{name, "itself, one core", side{bench, "ours", 2}, side{bench, "ours", 1}, t}
}

func faster(ratio float64) target { return target{ratio: ratio} }

func (t target) gate(allocs, bytes float64) target {
	t.gated, t.allocs, t.bytes = true, allocs, bytes
	return t
}

const (
	std      = "context.WithTimeout"
	failsafe = "failsafe-go"
)

// rows are the targets, and below some that have none: what a reader would ask
// next.
var rows = []row{
	against("sync timeout, function returns at once", "Timeout", std, faster(6).gate(1, 64)),
	against("sync timeout, beside failsafe-go", "Timeout", failsafe, faster(12)),
	onTwo("sync timeout, shared cancellable parent, 2 cores", "TimeoutSharedParentParallel", std, faster(10).gate(1, 64)),
	scaling("sync timeout, from 1 core to 2", "TimeoutSharedParentParallel", faster(1.7)),
	against("function calls Done, no parent to listen to", "TimeoutDone", std, faster(2.5)),
	against("function calls Done, cancellable parent", "TimeoutDoneCancellableParent", std, faster(1.2)),
	against("retry, first attempt succeeds", "Retry", failsafe, faster(8).gate(1, 64)),
	against("bulkhead in a pipeline, free slot", "Bulkhead", failsafe, faster(12).gate(0, 0)),
	against("bulkhead's handle, beside a channel", "BulkheadHandle", "channel", faster(1.5).gate(0, 0)),
	against("bulkhead's handle, beside x/sync", "BulkheadHandle", "semaphore", faster(1.2).gate(0, 0)),
	against("limiter in a pipeline, free permit", "RateLimit", failsafe, faster(15).gate(0, 0)),
	against("limiter's handle, beside x/time", "RateLimitHandle", "x-time-rate", faster(2).gate(0, 0)),
	against("breaker's handle, closed", "CircuitBreakerHandle", "gobreaker", faster(2).gate(0, 0)),
	against("retry, limiter, timeout and bulkhead", "FullStack", failsafe, faster(15).gate(1, 64)),
	onTwo("retry, limiter, timeout and bulkhead, 2 cores", "FullStackParallel", failsafe, faster(10).gate(1, 64)),
	against("refused: full", "RefusedFull", failsafe, faster(12).gate(0, 0)),
	against("refused: limited", "RefusedLimited", failsafe, faster(12).gate(1, 48)),
	against("refused: open", "RefusedOpen", failsafe, faster(12).gate(1, 48)),
	against("async with timeout", "Async", failsafe, faster(3.5).gate(2, 224)),
	against("async with timeout, beside go, channel, select", "Async", "plain", faster(1.4)),
	against("pending stage with its promise", "PendingStage", failsafe, faster(8).gate(2, 256)),
	against("pipeline without layers", "NoLayers", "bare", target{extra: 8}.gate(0, 0)),

	against("function polls Err", "TimeoutErr", std, target{}),
	against("function derives a context", "TimeoutChild", std, target{}),
	against("fresh parent for each call", "TimeoutFreshParent", std, target{}),
	against("fresh parent, function calls Done", "TimeoutDoneFreshParent", std, target{}),
	against("function calls Done, beside failsafe-go", "TimeoutDone", failsafe, target{}),
	onTwo("sync timeout, no parent to listen to, 2 cores", "TimeoutParallel", std, target{}),
	against("retry, beside retry-go", "Retry", "retry-go", target{}),
	against("retry, beside backoff", "Retry", "backoff", target{}),
	against("bulkhead's Acquire, beside a channel and a context", "BulkheadAcquire", "channel", target{}),
	against("bulkhead's Acquire, beside x/sync", "BulkheadAcquire", "semaphore", target{}),
	against("breaker in a pipeline", "CircuitBreaker", failsafe, target{}),
	against("breaker's handle, beside two steps", "CircuitBreakerHandle", "gobreaker-two-step", target{}),
	onTwo("async with timeout, 2 cores", "AsyncParallel", failsafe, target{}),
	onTwo("async, 2 cores, beside go, channel, select", "AsyncParallel", "plain", target{}),
	scaling("full stack, one shared id, from 1 core to 2", "FullStackParallel", target{}),

	parts("sync timeout, beside its bare parts", "Timeout", "Timeout"),
	parts("retry, beside its bare parts", "Retry", "Retry"),
	parts("bulkhead in a pipeline, beside its bare parts", "Bulkhead", "Bulkhead"),
	parts("limiter in a pipeline, beside its bare parts", "RateLimit", "RateLimit"),
	parts("retry, limiter, timeout and bulkhead, beside their bare parts", "FullStack", "FullStack"),
	parts("refused: limited, beside its bare parts", "RefusedLimited", "Refused"),
	parts("refused: open, beside its bare parts", "RefusedOpen", "Refused"),
	parts("async with timeout, beside a goroutine and a wait", "Async", "Async"),
	{"an allocation of 64 B alone, from 1 core to 2", "itself, one core", side{"PartsParallel", "allocation", 2}, side{"PartsParallel", "allocation", 1}, target{}},
}

// parts is ours against what a call cannot do without: see parts_test.go.
func parts(name, bench, of string) row {
	return row{name, "its parts", side{bench, "ours", 1}, side{"Parts", of, 1}, target{}}
}
