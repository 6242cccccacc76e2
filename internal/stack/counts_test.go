package stack_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/stack"
)

var outcomes = []stack.Outcome{stack.Succeeded, stack.Failed, stack.TimedOut, stack.Cancelled, stack.Rejected, stack.Panicked}

func finished(n stack.Counts) uint64 {
	return n.Succeeded + n.Failed + n.TimedOut + n.Cancelled + n.Rejected + n.Panicked
}

func TestEveryOutcomeHasACounterOfItsOwn(t *testing.T) { // S-5
	c := stack.NewCalls()
	for i, o := range outcomes {
		for range i + 1 {
			tally := c.Begin()
			if i%2 == 0 {
				tally.End(o)
			} else {
				c.End(o)
			}
		}
	}
	c.Begin()
	want := stack.Counts{Started: 22, Succeeded: 1, Failed: 2, TimedOut: 3, Cancelled: 4, Rejected: 5, Panicked: 6, InFlight: 1}
	if diff := cmp.Diff(want, c.Read()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCountsAreConsistentWhileCallsRun(t *testing.T) { // S-2
	c := stack.NewCalls()
	const callers, calls = 4, 20_000
	var running atomic.Int64 // at least as many as are in flight
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for i := range calls {
				running.Add(1)
				tally := c.Begin()
				if i%64 == 0 {
					runtime.Gosched()
				}
				if o := outcomes[(g+i)%len(outcomes)]; i%3 == 0 {
					c.End(o) // an async call may end elsewhere
				} else {
					tally.End(o)
				}
				running.Add(-1)
			}
		})
	}
	var last stack.Counts
	for last.Started < callers*calls {
		n := c.Read()
		if n.InFlight < 0 || finished(n) > n.Started || n.InFlight != int64(n.Started-finished(n)) {
			t.Fatalf("inconsistent: %+v", n)
		}
		if n.Started < last.Started || n.Succeeded < last.Succeeded || n.Failed < last.Failed || n.TimedOut < last.TimedOut ||
			n.Cancelled < last.Cancelled || n.Rejected < last.Rejected || n.Panicked < last.Panicked {
			t.Fatalf("a counter has gone back: %+v after %+v", n, last)
		}
		last = n
		runtime.Gosched()
	}
	wg.Wait()
	if n := c.Read(); n.InFlight != 0 || n.Started != callers*calls || finished(n) != callers*calls || running.Load() != 0 {
		t.Errorf("when idle: %+v", n)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	c := stack.NewCalls()
	if n := testing.AllocsPerRun(100, func() { c.Begin().End(stack.Succeeded) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestIdleWaitsForAbandonedWork(t *testing.T) {
	s := stack.New("x", nil, stack.NewGate())
	if !s.Idle() {
		t.Error("busy before the first call")
	}
	tally := s.Calls.Begin()
	if s.Idle() {
		t.Error("idle with a call in flight")
	}
	s.Abandoned.Running.Add(1) // before the call is answered
	tally.End(stack.TimedOut)
	if s.Idle() {
		t.Error("idle with abandoned work")
	}
	s.Abandoned.Running.Add(-1)
	if !s.Idle() {
		t.Error("busy after the end of all")
	}
}

// Calls hand their work over as abandoned before they are answered: whoever
// finds the stack idle, finds it so for good once no call begins.
func TestIdleIsNotSeenInBetween(t *testing.T) {
	for range 300 {
		s := stack.New("x", nil, stack.NewGate())
		const n = 8
		var left atomic.Int64
		left.Store(n)
		var tallies []stack.Tally
		for range n {
			tallies = append(tallies, s.Calls.Begin())
		}
		var wg sync.WaitGroup
		for _, tally := range tallies {
			wg.Go(func() {
				s.Abandoned.Running.Add(1)
				tally.End(stack.TimedOut)
				runtime.Gosched()
				left.Add(-1)
				s.Abandoned.Running.Add(-1)
			})
		}
		for !s.Idle() {
			runtime.Gosched()
		}
		if l := left.Load(); l != 0 {
			t.Fatalf("idle while %d run", l)
		}
		wg.Wait()
	}
}
