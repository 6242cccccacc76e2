package callctx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"resilience4cata.dev/go/internal/callctx"
)

// sighting is what a reader has seen first, in its own order of questions.
type sighting struct {
	err, cause error
	changed    string // what contradicts it later
}

// watchIt asks c until it has ended, and a few times after that.
func (s *sighting) watchIt(c *callctx.Context, start int, stop *atomic.Bool) {
	for i, left := start, 8; left > 0; i++ {
		if stop.Load() {
			left--
		}
		switch i % 4 {
		case 0:
			s.note(&s.err, c.Err(), "Err")
			if s.err != nil && !isDone(c) {
				s.changed = "Err is set and Done is open"
			}
		case 1:
			s.note(&s.cause, context.Cause(c), "Cause")
		case 2:
			if isDone(c) {
				if c.Err() == nil {
					s.changed = "Done is closed and Err is nil"
				}
			} else if s.err != nil {
				s.changed = "Done is open again"
			}
		case 3:
			child, cancel := context.WithCancel(c)
			if err := child.Err(); err != nil {
				s.note(&s.err, err, "a child's Err")
				s.note(&s.cause, context.Cause(child), "a child's Cause")
			}
			cancel()
			runtime.Gosched()
		}
	}
}

func (s *sighting) note(seen *error, got error, what string) {
	switch {
	case *seen == nil:
		*seen = got
	case got != *seen: //nolint:errorlint // the very values
		s.changed = fmt.Sprintf("%s was %v and is %v", what, *seen, got)
	}
}

// The call returns, its deadline fires, it is cancelled, its caller's context
// ends, all at once, and readers watch. One of them has decided, all readers
// have seen the same, and Finish says the same.
func TestFinishAgainstExpireHasOneWinner(t *testing.T) {
	rounds := 12000
	if raceEnabled || testing.Short() {
		rounds = 1000
	}
	errParent := errors.New("the caller's reason")
	end := callctx.NewEnd(context.Canceled, errClosed)
	ends := map[callctx.Verdict]map[error]int{}
	for round := range rounds {
		slotted := round%4 != 0
		parent, cancelParent := context.WithCancelCause(t.Context())
		plan := newPlan()
		c, s := arm(parent, plan)
		if !slotted {
			c = callctx.New(parent, plan)
		}
		if round%3 == 0 {
			c.Done()
		}
		var verdict callctx.Verdict
		var expired, cancelled atomic.Bool
		actors := []func(){
			func() { verdict = c.Finish() },
			func() {
				if slotted && round&2 == 0 {
					c.WheelExpire(s)
					expired.Store(true)
				}
			},
			func() {
				if round&4 == 0 {
					cancelled.Store(c.Cancel(end))
				}
			},
			func() {
				if round&8 == 0 {
					cancelParent(errParent)
				}
			},
		}
		readers := make([]sighting, 3)
		var ready atomic.Int32
		var stop atomic.Bool
		var acting, reading sync.WaitGroup
		n := int32(len(actors) + len(readers))
		together := func() {
			for ready.Add(1); ready.Load() < n; {
				runtime.Gosched()
			}
		}
		for i := range readers {
			reading.Go(func() { together(); readers[i].watchIt(c, i+round, &stop) })
		}
		for i := range actors {
			acting.Go(func() { together(); actors[(i+round)%len(actors)]() })
		}
		acting.Wait()
		err, cause := c.Err(), context.Cause(c)
		stop.Store(true)
		reading.Wait()
		cancelParent(nil)

		for i := range readers {
			r := &readers[i]
			if r.changed != "" {
				t.Errorf("round %d, reader %d: %s", round, i, r.changed)
			}
			if r.err != nil && r.err != err || r.cause != nil && r.cause != cause { //nolint:errorlint // these very values
				t.Errorf("round %d: reader %d has seen %v (%v), Err() = %v (%v)", round, i, r.err, r.cause, err, cause)
			}
		}
		// Finish may have won and the caller's end be seen: they were at once.
		right := map[callctx.Verdict]bool{
			callctx.InTime:    err == context.Canceled && (cause == context.Canceled || cause == errParent), //nolint:errorlint // these very values
			callctx.Expired:   err == context.DeadlineExceeded && cause == errOurs && expired.Load(),        //nolint:errorlint // these very values
			callctx.Cancelled: err == context.Canceled && cause == errClosed && cancelled.Load(),            //nolint:errorlint // these very values
			callctx.Void:      err == context.Canceled && cause == errParent,                                //nolint:errorlint // these very values
		}
		if !right[verdict] {
			t.Errorf("round %d: verdict %v, Err() = %v, cause %v", round, verdict, err, cause)
		}
		if slotted && s.Load() != nil {
			t.Fatalf("round %d: the slot was not freed", round)
		}
		if ends[verdict] == nil {
			ends[verdict] = map[error]int{}
		}
		ends[verdict][cause]++
		if t.Failed() {
			return
		}
	}
	t.Log(ends)
	if len(ends) < 3 {
		t.Errorf("only %v ever won: the test is too tame", ends)
	}
}

// The calls of many goroutines follow each other in one slot; each of them is
// seen by those who hold it as if it had had its own.
func TestManyCallsShareASlot(t *testing.T) {
	var s slot
	plan := newPlan()
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { // the wheel, which finds what is due in the slot
		for !stop.Load() {
			if c := s.Load(); c != nil && c != callctx.Firing {
				c.WheelExpire(&s)
			}
			runtime.Gosched()
		}
	})
	var callers sync.WaitGroup
	var expired, inTime atomic.Int64
	for range 3 {
		callers.Go(func() {
			var prev *callctx.Context
			var was error
			for range 2000 {
				c := callctx.New(t.Context(), plan)
				c.Armed(&s)
				for !s.CompareAndSwap(nil, c) {
					runtime.Gosched()
				}
				runtime.Gosched()
				err := c.Err()
				verdict := c.Finish()
				now := c.Err()
				want := context.Canceled
				if verdict == callctx.Expired {
					want = context.DeadlineExceeded
					expired.Add(1)
				} else {
					inTime.Add(1)
				}
				if now != want || err != nil && err != now { //nolint:errorlint // these very values
					t.Errorf("verdict %v: Err() was %v and is %v", verdict, err, now)
				}
				if prev != nil && prev.Err() != was { //nolint:errorlint // that very value
					t.Errorf("the one before was %v and is %v", was, prev.Err())
				}
				prev, was = c, now
			}
		})
	}
	callers.Wait()
	stop.Store(true)
	wg.Wait()
	t.Logf("%d expired, %d in time", expired.Load(), inTime.Load())
}

// Children come and go while the context ends: each that is there afterwards has
// been told.
func TestChildrenThatComeWhileItEndsAreTold(t *testing.T) {
	rounds := 400
	for round := range rounds {
		c, s := arm(t.Context(), newPlan())
		var wg sync.WaitGroup
		var kept [4]context.Context
		for i := range kept {
			wg.Go(func() {
				for range 5 {
					_, cancel := context.WithCancel(c)
					cancel()
				}
				var cancel context.CancelFunc
				kept[i], cancel = context.WithCancel(c)
				t.Cleanup(cancel)
			})
		}
		wg.Go(func() {
			if round%2 == 0 {
				c.WheelExpire(s)
			}
			c.Finish()
		})
		wg.Wait()
		for i, child := range kept {
			<-child.Done()                                                          // hangs if it was missed
			if child.Err() != c.Err() || context.Cause(child) != context.Cause(c) { //nolint:errorlint // these very values
				t.Fatalf("round %d, child %d: %v (%v), want %v", round, i, child.Err(), context.Cause(child), c.Err())
			}
		}
	}
}

// Who finds the slot free after an expiry finds the end as well.
func TestTheEndComesBeforeTheSlotIsFree(t *testing.T) {
	rounds := 4000
	if raceEnabled {
		rounds = 1000
	}
	for round := range rounds {
		c, s := arm(t.Context(), newPlan())
		if round%2 == 0 {
			c.Done()
		}
		var ready atomic.Bool
		missing := make(chan bool)
		go func() {
			ready.Store(true)
			for i := 0; s.Load() != nil; i++ {
				if i > 1000 {
					runtime.Gosched()
				}
			}
			missing <- !c.HasEnd()
		}()
		for !ready.Load() {
			runtime.Gosched()
		}
		c.WheelExpire(s)
		if <-missing {
			t.Fatalf("round %d: the slot was freed first", round)
		}
		c.Finish()
	}
}
