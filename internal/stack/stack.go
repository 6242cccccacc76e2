// Package stack is one pipeline without its types: the policies of its layers
// as concrete pointers, and the counters of its calls. The registry keeps one
// for each id; pipelines of any result type run it. Not for users.
//
// # Guarantees
//
//	what                                                 proved by
//	finished never exceeds started, whoever reads when   TestCountsAreConsistentWhileCallsRun
//	every outcome has a counter of its own               TestEveryOutcomeHasACounterOfItsOwn
//	idle means neither in flight nor abandoned           TestIdleWaitsForAbandonedWork, TestIdleIsNotSeenInBetween
//	all who wait for the end of everything hear of it    TestGateLetsAllWaitersGo
//	the order of the layers is fixed                     TestOrderAndDescribeGoFromTheOutsideIn
//	the bound of a call, saturated                       TestBound_R17
package stack

import (
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// Layers is what a pipeline does to a call. It is immutable: a reload makes a
// new one, and calls in flight keep theirs. A layer that is absent or switched
// off is nil.
type Layers struct {
	Retry    *retry.Policy
	Breaker  *circuitbreaker.Policy
	Limiter  *ratelimit.Policy
	Timeout  *timeout.Policy
	Bulkhead *bulkhead.Policy

	LimiterWait   time.Duration // as in ratelimit.Config.MaxWait
	BulkheadWait  time.Duration // as in bulkhead.Config.MaxWait
	FreeOnTimeout bool

	CountRejections bool // the breaker's

	// Attempts is the plan of attempts that have no deadline of their own.
	Attempts *callctx.Plan
	// Cut is the plan of attempts that MaxDuration may end before their timeout
	// does, with the level of the wheel for them.
	Cut struct {
		Plan  *callctx.Plan
		Level *scope.Level
	}
}

// Stack is one pipeline without its types. It is safe for concurrent use.
type Stack struct {
	ID    string
	Scope *scope.Scope
	Gate  *Gate

	// Fallback says that the outermost layer is there; its function is typed and
	// lives in the pipeline.
	Fallback bool

	// Plain says that there is no layer at all: nothing is counted.
	Plain bool

	Calls     Calls
	Abandoned Abandoned
	Fallbacks Fallbacks

	layers atomic.Pointer[Layers]
}

// New returns a stack without layers; see SetLayers.
func New(id string, s *scope.Scope, g *Gate) *Stack {
	st := &Stack{ID: id, Scope: s, Gate: g, Calls: NewCalls()}
	st.SetLayers(new(Layers))
	return st
}

// Layers is what a call that begins now goes through.
func (s *Stack) Layers() *Layers { return s.layers.Load() }

// SetLayers changes the layers for calls that begin from now on.
func (s *Stack) SetLayers(l *Layers) { s.layers.Store(l) }

// MaxLayers is how many layers a stack can have.
const MaxLayers = 6

// AppendOrder appends the kinds of the layers that are on, from the outside in.
func (s *Stack) AppendOrder(order []string) []string {
	l := s.Layers()
	for _, layer := range []struct {
		on   bool
		kind string
	}{
		{s.Fallback, "fallback"},
		{l.Retry != nil, "retry"},
		{l.Breaker != nil, "circuitbreaker"},
		{l.Limiter != nil, "ratelimit"},
		{l.Timeout != nil, "timeout"},
		{l.Bulkhead != nil, "bulkhead"},
	} {
		if layer.on {
			order = append(order, layer.kind)
		}
	}
	return order
}

// Idle reports whether no call is in flight and no work is abandoned.
func (s *Stack) Idle() bool {
	return s.Calls.Read().InFlight == 0 && s.Abandoned.Running.Load() == 0
}
