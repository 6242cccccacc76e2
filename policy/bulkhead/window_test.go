package bulkhead_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// newWindow returns a bulkhead on a clock that opens the windows between two steps
// of a call.
func newWindow(t *testing.T, c bulkhead.Config) (*bulkhead.Policy, *testkit.HookedClock) {
	t.Helper()
	clk := &testkit.HookedClock{Manual: clock.NewManual(start).Passive()}
	p, err := bulkhead.New("b", c, clk)
	if err != nil {
		t.Fatal(err)
	}
	return p, clk
}

// BH-09: all callers have seen a place free before the first of them takes one:
// there are still no more than three.
func TestField_BH09_PlaceIsCheckedWhereItIsTaken(t *testing.T) {
	p, clk := newWindow(t, bulkhead.Config{MaxConcurrent: 1, Queue: 3, MaxWait: time.Hour})
	mustAcquire(t, p)
	const callers = 10
	var seen, done sync.WaitGroup
	seen.Add(callers)
	clk.OnNow = func() { seen.Done(); seen.Wait() }
	for range callers {
		done.Go(func() {
			w := waitq.New(func() {})
			if _, err := p.EnterAsync(t.Context(), time.Hour, w); err != nil && !errors.Is(err, bulkhead.ErrFull) {
				t.Error(err)
			}
		})
	}
	done.Wait()
	want := counts{Limit: 1, InUse: 1, Waiting: 3, Admitted: 1, Rejected: callers - 3}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A slot that becomes free after the first look and before the caller stands in
// line is taken, by either form, and the wait's bound is not left behind.
func TestWaitTakesASlotFreedOnTheWayToTheLine(t *testing.T) {
	for _, async := range []bool{false, true} {
		p, clk := newWindow(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: time.Hour})
		mustAcquire(t, p)
		clk.OnNow = p.Release
		if async {
			entered, err := p.EnterAsync(t.Context(), time.Hour, waitq.New(nil))
			if !entered || err != nil {
				t.Errorf("EnterAsync = %v, %v", entered, err)
			}
		} else if err := p.Acquire(t.Context()); err != nil {
			t.Errorf("Acquire = %v", err)
		}
		want := counts{Limit: 1, InUse: 1, Admitted: 2}
		if diff := cmp.Diff(want, countsOf(p)); diff != "" || clk.Pending() != 0 {
			t.Errorf("async %v: %v (-want +got)\n%s", async, clk, diff)
		}
	}
}

// A waiter that is granted, or leaves, before its bound is armed leaves no timer.
func TestWaitSettledBeforeItsBoundIsArmed(t *testing.T) {
	p, clk := newWindow(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: time.Hour})
	mustAcquire(t, p)
	clk.BeforeTimer = func(time.Duration) { p.Release() }
	if err := p.Acquire(t.Context()); err != nil {
		t.Errorf("Acquire = %v", err)
	}
	granted := enqueue(t, p, time.Hour)
	<-granted.woken

	var w *waitq.Waiter
	clk.BeforeTimer = func(time.Duration) { p.Leave(w) }
	w = waitq.New(func() { t.Error("woken") })
	if entered, err := p.EnterAsync(t.Context(), time.Hour, w); entered || err != nil {
		t.Errorf("EnterAsync = %v, %v", entered, err)
	}
	if w.State() != waitq.Left || clk.Pending() != 0 {
		t.Errorf("state %v, %v", w.State(), clk)
	}
}

// B-7: a line that was long once leaves no memory behind.
func TestQueue_B7_LongLineLeavesNoMemory(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
	mustAcquire(t, p)
	before := heap()
	func() {
		line := make([]*waitq.Waiter, 50_000)
		for i := range line {
			line[i] = waitq.New(func() { t.Error("woken") })
			if entered, err := p.EnterAsync(t.Context(), unbounded, line[i]); entered || err != nil {
				t.Fatal(entered, err)
			}
		}
		for _, w := range line {
			if !p.Leave(w) {
				t.Fatal("a waiter could not leave")
			}
		}
	}()
	if grown := int64(heap()) - int64(before); grown > 256<<10 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(p)
}
