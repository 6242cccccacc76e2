package stack_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy/retry"
)

func TestCountsAreConsistentWhileCallsRun(t *testing.T) {
	c := stack.NewCalls()
	outcomes := []stack.Outcome{stack.Succeeded, stack.Failed, stack.TimedOut, stack.Cancelled, stack.Rejected, stack.Panicked}
	const each = 5000
	var wg sync.WaitGroup
	var done atomic.Bool
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				c.Begin().End(outcomes[(g+i)%len(outcomes)])
			}
		})
	}
	go func() { wg.Wait(); done.Store(true) }()
	for !done.Load() {
		n := c.Read()
		if n.InFlight < 0 || n.Succeeded+n.Failed+n.TimedOut+n.Cancelled+n.Rejected+n.Panicked > n.Started {
			t.Fatalf("%+v", n)
		}
	}
	n := c.Read()
	if n.Started != 4*each || n.InFlight != 0 {
		t.Errorf("%+v", n)
	}
}

func TestIdleWaitsForAbandonedWork(t *testing.T) {
	s := stack.New("p", scope.New(clock.NewManual(time.Unix(0, 0)), nil), stack.NewGate())
	if !s.Idle() {
		t.Error("busy before the first call")
	}
	call := s.Calls.Begin()
	if s.Idle() {
		t.Error("idle with a call in flight")
	}
	s.Abandoned.Running.Add(1)
	call.End(stack.TimedOut)
	if s.Idle() {
		t.Error("idle with abandoned work")
	}
	s.Abandoned.Running.Add(-1)
	if !s.Idle() {
		t.Error("busy after the end")
	}
}

func TestGateTellsOfEndsOnlyWhenItIsShut(t *testing.T) {
	g := stack.NewGate()
	g.Ended()
	g.Ended()
	select {
	case <-g.Wait():
		t.Error("told while open")
	default:
	}
	g.Shut()
	g.Ended()
	g.Ended() // one news is enough, and nobody blocks
	<-g.Wait()
	if !g.IsShut() {
		t.Error("not shut")
	}
}

func TestOrderNamesTheLayersThatAreOn(t *testing.T) {
	sc := scope.New(clock.NewManual(time.Unix(0, 0)), nil)
	s := stack.New("p", sc, stack.NewGate())
	s.SetLayers(&stack.Layers{})
	if diff := cmp.Diff([]string{}, s.Order()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r, err := retry.NewIn(sc, "p", retry.Default())
	if err != nil {
		t.Fatal(err)
	}
	s.Fallback = true
	s.SetLayers(&stack.Layers{Retry: r})
	if diff := cmp.Diff([]string{"fallback", "retry"}, s.Order()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
