package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// view is a snapshot and what is known of the moment at which it was taken.
type view struct {
	registry.Snapshot
	from, to time.Time
	begun    uint64 // changes of settings that had begun
	rates    int64  // changes of rates that had begun
	steady   bool   // no setting was being changed while it was taken
}

// watch takes a snapshot a hundred times a second, and one at the end, and
// compares each with the one before.
func (r *round) watch(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	old := r.look()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		now := r.look()
		r.compare(old, now)
		r.snapshots++
		if r.snapshots%50 == 0 {
			if _, err := json.Marshal(now.Snapshot); err != nil {
				r.broken.report("snapshot: %v", err)
			}
		}
		old = now
	}
}

func (r *round) look() view {
	// First those that are over: if as many have begun a moment later, none was
	// under way, and none was until the end if there are no more by then.
	ended := r.ended.Load()
	before, from := r.begun.Load(), time.Now()
	s := r.reg.Snapshot()
	to, after := time.Now(), r.begun.Load()
	return view{s, from, to, after, r.rates.Load(), ended == before && before == after}
}

// compare holds rule S-2 against two snapshots.
func (r *round) compare(old, now view) {
	same := old.steady && now.steady && old.begun == now.begun
	pairs(old.Pipelines, now.Pipelines, func(p registry.PipelineSnapshot) string { return p.ID }, r.comparePipeline)
	pairs(old.Bulkheads, now.Bulkheads, func(b bulkhead.Snapshot) string { return b.ID },
		func(a, b bulkhead.Snapshot) { r.compareBulkhead(a, b, same) })
	pairs(old.RateLimiters, now.RateLimiters, func(l ratelimit.Snapshot) string { return l.ID },
		func(a, b ratelimit.Snapshot) {
			r.compareLimiter(a, b, same)
			r.countPermits(old, now, a, b)
		})
	pairs(old.CircuitBreakers, now.CircuitBreakers, func(b circuitbreaker.Snapshot) string { return b.ID },
		func(a, b circuitbreaker.Snapshot) {
			if b.Rejected < a.Rejected || b.FailureRatio < 0 || b.FailureRatio > 1 || b.RetryAfterMs < 0 {
				r.broken.report("breaker %s: %+v after %+v", b.ID, b, a)
			}
		})
	pairs(old.Timeouts, now.Timeouts, func(t timeout.Snapshot) string { return t.Instance },
		func(a, b timeout.Snapshot) {
			if b.TimedOut < a.TimedOut {
				r.broken.report("timeout %s: %d after %d", b.Instance, b.TimedOut, a.TimedOut)
			}
		})
	pairs(old.Retries, now.Retries, func(x retry.Snapshot) string { return x.ID },
		func(a, b retry.Snapshot) {
			if b.Retries < a.Retries || b.Exhausted < a.Exhausted || b.OutOfTime < a.OutOfTime || b.BudgetDenied < a.BudgetDenied {
				r.broken.report("retry %s: %+v after %+v", b.ID, b, a)
			}
		})
	if now.Wheel.Pending < 0 {
		r.broken.report("wheel: %+v", now.Wheel)
	}
}

// pairs calls f for the rows that both lists have: a layer that is switched off
// has none.
func pairs[T any](old, now []T, id func(T) string, f func(old, now T)) {
	for _, b := range now {
		if i := slices.IndexFunc(old, func(a T) bool { return id(a) == id(b) }); i >= 0 {
			f(old[i], b)
		}
	}
}

func (r *round) comparePipeline(old, now registry.PipelineSnapshot) {
	a, b := old.Calls, now.Calls
	finished := b.Succeeded + b.Failed + b.TimedOut + b.Cancelled + b.Rejected + b.Panicked
	if finished > b.Started || b.InFlight != int64(b.Started-finished) { //nolint:gosec // small
		r.broken.report("%s: the numbers do not add up: %+v", now.ID, b)
	}
	if b.Started < a.Started || b.Succeeded < a.Succeeded || b.Failed < a.Failed || b.TimedOut < a.TimedOut ||
		b.Cancelled < a.Cancelled || b.Rejected < a.Rejected || b.Panicked < a.Panicked {
		r.broken.report("%s: a counter fell: %+v after %+v", now.ID, b, a)
	}
	x, y := old.Abandoned, now.Abandoned
	if y.Running < 0 || y.LateSuccess < x.LateSuccess || y.LateFailure < x.LateFailure || y.LatePanic < x.LatePanic {
		r.broken.report("%s: abandoned: %+v after %+v", now.ID, y, x)
	}
	if now.Fallback.Applied < old.Fallback.Applied || now.Fallback.Failed < old.Fallback.Failed {
		r.broken.report("%s: fallback: %+v after %+v", now.ID, now.Fallback, old.Fallback)
	}
}

func (r *round) compareBulkhead(old, now bulkhead.Snapshot, same bool) {
	if now.InUse < 0 || now.InUse > mostAtOnce || now.Available != max(0, now.Limit-now.InUse) ||
		now.Waiting < 0 || now.Waiting > mostQueued || now.Admitted < old.Admitted || now.Rejected < old.Rejected {
		r.broken.report("bulkhead %s: %+v after %+v", now.ID, now, old)
	}
	// Above the limit, or the queue above its own, is only what was there before it was lowered.
	if same && (now.InUse > max(now.Limit, old.InUse) || now.Waiting > max(now.Config.Queue, old.Waiting)) {
		r.broken.report("bulkhead %s: more than the limit without a change: %+v after %+v", now.ID, now, old)
	}
}

func (r *round) compareLimiter(old, now ratelimit.Snapshot, same bool) {
	if now.Available < 0 || now.Waiting < 0 || now.Admitted < old.Admitted || now.Rejected < old.Rejected ||
		same && now.Available > now.Config.Burst {
		r.broken.report("limiter %s: %+v after %+v", now.ID, now, old)
	}
}

// countPermits adds up what a limiter may have admitted since the beginning: a
// burst, and what the time has brought (L-6). A change of the rate may bring up to
// one burst more. It is a bound for all and not for each span, since who waits may
// be woken late, and who was admitted may be counted late.
func (r *round) countPermits(old, now view, a, b ratelimit.Snapshot) {
	most, ok := r.permits[b.ID]
	from, rates := old.from, old.rates
	if !ok {
		most, from, rates = mostBurst+1, r.since, 0
	}
	perSecond := max(float64(a.Config.Limit)/a.Config.Period.Seconds(), float64(b.Config.Limit)/b.Config.Period.Seconds())
	changes := now.rates - rates
	if changes > 0 {
		perSecond = mostPerSecond
	}
	most += perSecond*now.to.Sub(from).Seconds() + float64(changes)*mostBurst
	r.permits[b.ID] = most
	if float64(b.Admitted) > most {
		r.broken.report("limiter %s: %d admitted, and %.0f at most may have been", b.ID, b.Admitted, most)
	}
}
