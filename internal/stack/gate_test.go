package stack_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"resilience4cata.dev/go/internal/stack"
)

func TestGateTellsNobodyWhileItIsOpen(t *testing.T) {
	g := stack.NewGate()
	if g.IsShut() {
		t.Error("shut from the start")
	}
	g.Ended()
	g.Shut()
	g.Shut()
	select {
	case <-g.Wait():
		t.Error("an end is told that came before anybody wanted to know")
	default:
	}
	if !g.IsShut() {
		t.Error("not shut")
	}
}

func TestGateRemembersOneEnd(t *testing.T) {
	g := stack.NewGate()
	g.Shut()
	for range 3 {
		g.Ended() // never blocks
	}
	<-g.Wait()
	select {
	case <-g.Wait():
		t.Error("one look would have done for all that ended")
	default:
	}
}

// Several wait until nothing is in flight, as Drain does: each looks, waits,
// looks again, and wakes the next one when it leaves. Whoever stays asleep shows
// as a test that hangs.
func TestGateLetsAllWaitersGo(t *testing.T) {
	for round := range 500 {
		g := stack.NewGate()
		s := stack.New("x", nil, g)
		const calls, waiters = 6, 3
		var begun sync.WaitGroup
		begun.Add(calls)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				tally := s.Calls.Begin()
				begun.Done()
				for range (i + round) % 7 {
					runtime.Gosched()
				}
				tally.End(stack.Succeeded)
				g.Ended()
			})
		}
		begun.Wait()
		var gone atomic.Int64
		for range waiters {
			wg.Go(func() {
				g.Shut()
				defer g.Ended()
				for !s.Idle() {
					<-g.Wait()
				}
				gone.Add(1)
			})
		}
		wg.Wait()
		if gone.Load() != waiters {
			t.Fatalf("%d of %d have left", gone.Load(), waiters)
		}
	}
}
