package registry

import (
	"log/slog"
	"slices"
	"time"

	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// schema is the version of the snapshot's JSON. It changes when a key goes or
// changes its meaning; new keys may come without.
const schema = 1

// Snapshot is what a registry holds, as plain data for JSON, logs and tests: rows
// sorted by id, empty lists and never nil ones. It shares nothing with the
// registry. Each row is of one moment; two rows may be of two.
//
// In JSON, counters only grow, numbers carry their unit in the key, and durations
// of settings are Go duration text. A bulkhead's "maxWait" of "-1ns" and its "queue"
// of -1 are what a configuration and [Registry.Explain] call unlimited.
type Snapshot struct {
	Schema          int                       `json:"schema"` // 1
	At              time.Time                 `json:"at"`     // by the registry's clock
	Closed          bool                      `json:"closed"` // Close or Drain was called: no call is let in
	Pipelines       []PipelineSnapshot        `json:"pipelines"`
	Timeouts        []timeout.Snapshot        `json:"timeouts"` // by pipeline
	Retries         []retry.Snapshot          `json:"retries"`
	RateLimiters    []ratelimit.Snapshot      `json:"rateLimiters"`
	Bulkheads       []bulkhead.Snapshot       `json:"bulkheads"`
	CircuitBreakers []circuitbreaker.Snapshot `json:"circuitBreakers"`
	Wheel           WheelSnapshot             `json:"wheel"`
	Findings        []Finding                 `json:"findings"` // as Check returns them
}

// PipelineSnapshot is one pipeline. A pipeline without layers counts no calls.
type PipelineSnapshot struct {
	ID        string         `json:"id"`
	Order     []string       `json:"order"`           // the layers that are on, from the outside in
	Bound     string         `json:"bound,omitempty"` // the longest Execute; "" if there is no bound
	Calls     CallCounts     `json:"calls"`
	Fallback  FallbackCounts `json:"fallback"`
	Abandoned AbandonedCount `json:"abandoned"`
}

// CallCounts counts whole calls of every form, each once, by its final outcome.
// What ended is never more than what started.
type CallCounts struct {
	Started   uint64 `json:"started"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	TimedOut  uint64 `json:"timedOut"`
	Cancelled uint64 `json:"cancelled"`
	Rejected  uint64 `json:"rejected"`
	Panicked  uint64 `json:"panicked"`
	InFlight  int64  `json:"inFlight"` // Started less all others
}

// FallbackCounts counts what the fallback was asked for, and how often it failed
// too.
type FallbackCounts struct {
	Applied uint64 `json:"applied"`
	Failed  uint64 `json:"failed"`
}

// AbandonedCount counts work whose caller had been answered: what is running
// still, and how what has ended did so. Each attempt counts for itself.
type AbandonedCount struct {
	Running     int64  `json:"running"`
	LateSuccess uint64 `json:"lateSuccess"`
	LateFailure uint64 `json:"lateFailure"`
	LatePanic   uint64 `json:"latePanic"`
}

// WheelSnapshot is the deadlines of all calls in flight.
type WheelSnapshot struct {
	Pending int  `json:"pending"` // deadlines that are to come
	Ticking bool `json:"ticking"` // whether the shared wheel ticks, as it does while calls are frequent
}

// Snapshot returns the state of everything. It holds no lock while it reads,
// slows nobody down, and works on a closed registry and inside of callbacks. Ten
// thousand instances take it some milliseconds: ask it once a second if you like.
func (r *Registry) Snapshot() Snapshot {
	v := r.look()
	s := Snapshot{
		Schema:          schema,
		At:              r.scope.Time(),
		Closed:          r.gate.IsShut(),
		Pipelines:       make([]PipelineSnapshot, len(v.pipelines)),
		Timeouts:        rows(v.timers, (*timer).Snapshot),
		Retries:         rows(v.retries, (*retry.Policy).Snapshot),
		RateLimiters:    rows(v.limiters, (*ratelimit.Policy).Snapshot),
		Bulkheads:       rows(v.bulkheads, (*bulkhead.Policy).Snapshot),
		CircuitBreakers: rows(v.breakers, (*circuitbreaker.Policy).Snapshot),
		Wheel:           WheelSnapshot{r.scope.Pending(), r.scope.Ticking()},
		Findings:        slices.Clone(v.findings),
	}
	names := make([]string, 0, stack.MaxLayers*len(v.pipelines)) // of the layers of all: one allocation
	for i := range v.pipelines {
		before := len(names)
		names = v.pipelines[i].stack.AppendOrder(names)
		s.Pipelines[i] = v.pipelines[i].snapshot()
		s.Pipelines[i].Order = names[before:len(names):len(names)]
	}
	return s
}

// snapshot is the row but for its order.
func (p *viewed) snapshot() PipelineSnapshot {
	n := p.stack.Calls.Read()
	// What is running is read first: work that ends in between is rather seen
	// twice than not at all.
	abandoned := AbandonedCount{Running: p.stack.Abandoned.Running.Load()}
	abandoned.LateSuccess = p.stack.Abandoned.LateSuccess.Load()
	abandoned.LateFailure = p.stack.Abandoned.LateFailure.Load()
	abandoned.LatePanic = p.stack.Abandoned.LatePanic.Load()
	failed := p.stack.Fallbacks.Failed.Load() // before what it is a part of
	return PipelineSnapshot{
		ID: p.id, Bound: p.bound,
		Calls: CallCounts{
			Started: n.Started, Succeeded: n.Succeeded, Failed: n.Failed, TimedOut: n.TimedOut,
			Cancelled: n.Cancelled, Rejected: n.Rejected, Panicked: n.Panicked, InFlight: n.InFlight,
		},
		Fallback:  FallbackCounts{Applied: p.stack.Fallbacks.Applied.Load(), Failed: failed},
		Abandoned: abandoned,
	}
}

func rows[P, S any](policies []P, snapshot func(P) S) []S {
	list := make([]S, len(policies))
	for i, p := range policies {
		list[i] = snapshot(p)
	}
	return list
}

// LogValue makes the snapshot a group in structured logs, with a group for each
// pipeline, and for each instance with its kind and id.
func (s Snapshot) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Time("at", s.At), slog.Bool("closed", s.Closed),
		slog.Int("pending", s.Wheel.Pending), slog.Int("findings", len(s.Findings)),
	}
	attrs = append(attrs, group("pipelines", s.Pipelines, func(p PipelineSnapshot) string { return p.ID }))
	attrs = append(attrs, group("timeouts", s.Timeouts, func(p timeout.Snapshot) string { return p.Instance }))
	attrs = append(attrs, group("retries", s.Retries, func(p retry.Snapshot) string { return p.ID }))
	attrs = append(attrs, group("rateLimiters", s.RateLimiters, func(p ratelimit.Snapshot) string { return p.ID }))
	attrs = append(attrs, group("bulkheads", s.Bulkheads, func(p bulkhead.Snapshot) string { return p.ID }))
	attrs = append(attrs, group("circuitBreakers", s.CircuitBreakers, func(p circuitbreaker.Snapshot) string { return p.ID }))
	return slog.GroupValue(attrs...)
}

func group[S slog.LogValuer](key string, list []S, id func(S) string) slog.Attr {
	attrs := make([]slog.Attr, len(list))
	for i, row := range list {
		attrs[i] = slog.Any(id(row), row)
	}
	return slog.Attr{Key: key, Value: slog.GroupValue(attrs...)}
}

// LogValue makes the row a group in structured logs.
func (p PipelineSnapshot) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", p.ID), slog.Any("order", p.Order), slog.String("bound", p.Bound),
		slog.Any("calls", p.Calls), slog.Any("fallback", p.Fallback), slog.Any("abandoned", p.Abandoned),
	)
}

// LogValue makes the counters a group in structured logs.
func (c CallCounts) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Uint64("started", c.Started), slog.Uint64("succeeded", c.Succeeded), slog.Uint64("failed", c.Failed),
		slog.Uint64("timedOut", c.TimedOut), slog.Uint64("cancelled", c.Cancelled), slog.Uint64("rejected", c.Rejected),
		slog.Uint64("panicked", c.Panicked), slog.Int64("inFlight", c.InFlight),
	)
}

// LogValue makes the counters a group in structured logs.
func (c FallbackCounts) LogValue() slog.Value {
	return slog.GroupValue(slog.Uint64("applied", c.Applied), slog.Uint64("failed", c.Failed))
}

// LogValue makes the counters a group in structured logs.
func (c AbandonedCount) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("running", c.Running), slog.Uint64("lateSuccess", c.LateSuccess),
		slog.Uint64("lateFailure", c.LateFailure), slog.Uint64("latePanic", c.LatePanic),
	)
}

// LogValue makes the numbers a group in structured logs.
func (w WheelSnapshot) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("pending", w.Pending), slog.Bool("ticking", w.Ticking))
}
