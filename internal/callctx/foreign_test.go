package callctx_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/testkit"
)

// A caller's context that panics when asked has not ended, as far as our deadline
// is concerned; who asks ours on his own goroutine gets the panic.
func TestForeignParentWhoseErrPanics(t *testing.T) {
	broken := true
	p := &fakeParent{Context: t.Context(), err: func() error {
		if broken {
			panic("Err is broken")
		}
		return nil
	}}
	c, s := arm(p, newPlan())
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is swallowed")
			}
		}()
		_ = c.Err()
	}()
	c.WheelExpire(s)
	check(t, c, context.DeadlineExceeded, errOurs) // it is not asked any more
	wantVerdict(t, c, callctx.Expired)

	c, _ = arm(p, newPlan())
	wantVerdict(t, c, callctx.InTime)
	check(t, c, context.Canceled, context.Canceled)
}

// While the caller's context blocks the wheel's question, the slot is not marked:
// the call can finish, and its context can be asked what needs no answer from
// the parent.
func TestForeignParentWhoseErrBlocks(t *testing.T) {
	asked, answer := make(chan bool), make(chan bool)
	p := &fakeParent{Context: t.Context(), err: func() error { asked <- true; <-answer; return nil }}
	for _, looked := range []bool{false, true} {
		c, s := arm(p, newPlan())
		if looked {
			go c.Done()
			<-asked
			answer <- true
		}
		over := make(chan bool)
		go func() {
			c.WheelExpire(s)
			close(over)
		}()
		<-asked
		wantVerdict(t, c, callctx.InTime)
		check(t, c, context.Canceled, context.Canceled)
		answer <- true
		<-over
		check(t, c, context.Canceled, context.Canceled)
	}
}

// A test's fake may end the goroutine that asks it (t.FailNow). Nobody else will
// come for the context: it expires all the same.
func TestForeignParentWhoseErrExitsTheGoroutine(t *testing.T) {
	c, s := arm(&fakeParent{Context: t.Context(), err: func() error { runtime.Goexit(); return nil }}, newPlan())
	over := make(chan bool)
	go func() {
		defer close(over)
		defer s.CompareAndSwap(c, nil) // as the wheel does
		c.WheelExpire(s)
		t.Error("it has gone on")
	}()
	<-over
	wantVerdict(t, c, callctx.Expired)
	check(t, c, context.DeadlineExceeded, errOurs)
}

func TestForeignParentThatChangesItsMind(t *testing.T) {
	var err error
	p := &fakeParent{Context: t.Context(), err: func() error { return err }}
	for _, looked := range []bool{false, true} {
		err = nil
		c, s := arm(p, newPlan())
		if looked {
			c.Done()
		}
		err = errTheirs
		check(t, c, errTheirs, errTheirs)
		err = nil
		if c.Err() == nil || !isDone(c) {
			t.Error("an end was taken back")
		}
		c.WheelExpire(s)
		wantVerdict(t, c, callctx.Void)
	}
}

// The caller's context is called with no lock held: whatever it does to ours
// meanwhile, nothing hangs, and who comes to know of the end sees it for good.
func TestForeignParentThatEndsUsWhileWeRegister(t *testing.T) {
	for name, end := range map[string]func(c *callctx.Context, s *slot) callctx.Verdict{
		"finish": func(c *callctx.Context, _ *slot) callctx.Verdict { return c.Finish() },
		"expire": func(c *callctx.Context, s *slot) callctx.Verdict { c.WheelExpire(s); return c.Finish() },
		"cancel": func(c *callctx.Context, _ *slot) callctx.Verdict { c.Cancel(callctx.Canceled); return c.Finish() },
	} {
		for _, where := range []string{"Done", "AfterFunc"} {
			for _, slotted := range []bool{false, true} {
				if name == "expire" && !slotted {
					continue
				}
				var c *callctx.Context
				var s *slot
				registered, ends := 0, 0
				var want error
				do := func() {
					if ends++; ends > 1 {
						return
					}
					verdict := end(c, s)
					want = map[callctx.Verdict]error{
						callctx.InTime: context.Canceled, callctx.Expired: context.DeadlineExceeded, callctx.Cancelled: context.Canceled,
					}[verdict]
					if err := c.Err(); err != want || !isDone(c) { //nolint:errorlint // that very value
						t.Errorf("%s in %s: Err() = %v, want %v, done %v", name, where, err, want, isDone(c))
					}
				}
				ch := make(chan struct{})
				f := &fakeParent{Context: t.Context(), done: func() <-chan struct{} {
					if where == "Done" && c != nil {
						do()
					}
					return ch
				}}
				p := registering{f}
				f.afterFunc = func(func()) func() bool {
					registered++
					if where == "AfterFunc" {
						do()
					}
					return func() bool { registered--; return true }
				}
				c = callctx.New(p, newPlan())
				if slotted {
					c, s = arm(p, newPlan())
				}
				c.Done()
				if ends == 0 || registered != 0 {
					t.Errorf("%s in %s: %d ends, %d registrations left", name, where, ends, registered)
				}
				if err := c.Err(); err != want || !isDone(c) { //nolint:errorlint // that very value
					t.Errorf("%s in %s: Err() = %v afterwards, want %v", name, where, err, want)
				}
			}
		}
	}
}

func TestForeignParentWhoseDoneDoesNotReturn(t *testing.T) {
	for _, leave := range testkit.Leaving {
		var broken atomic.Bool
		p := &fakeParent{Context: t.Context(), done: func() <-chan struct{} {
			if broken.Load() {
				leave()
			}
			return nil
		}}
		c, s := arm(p, newPlan())
		broken.Store(true)
		testkit.Survive(t, func() { c.Done() })
		broken.Store(false)
		c.WheelExpire(s)
		check(t, c, context.DeadlineExceeded, errOurs)
		wantVerdict(t, c, callctx.Expired)
	}
}

// The answer that was given stands: between two steps of one reader, the call
// returns and another reader is told so.
func TestAnAnswerThatWasGivenStands(t *testing.T) {
	for _, slotted := range []bool{false, true} {
		for _, looked := range []bool{false, true} {
			var c *callctx.Context
			calls := 0
			var seen error
			p := &fakeParent{Context: t.Context(), err: func() error {
				calls++
				switch calls {
				case 1:
					if looked {
						return nil // Done asks
					}
				case 2:
				default:
					return context.DeadlineExceeded
				}
				c.Finish()
				seen = c.Err()
				return context.DeadlineExceeded // we had ended before that is known
			}}
			c = callctx.New(p, newPlan())
			if slotted {
				c, _ = arm(p, newPlan())
			}
			if looked {
				c.Done()
			}
			first := c.Err()
			if first != seen || c.Err() != seen || seen != context.Canceled { //nolint:errorlint // these very values
				t.Errorf("slot %v, looked %v: readers have seen %v, %v and now %v", slotted, looked, seen, first, c.Err())
			}
		}
	}
}

// A watch is being made while the call returns; those who know that it has
// returned must not find it running.
func TestFinishWhileSomebodyLooks(t *testing.T) {
	for _, slotted := range []bool{false, true} {
		for _, asked := range []bool{false, true} {
			plan := newPlan()
			plan.Watch = func(c *callctx.Context) *callctx.Aside {
				c.Finish()
				if asked && c.Err() != context.Canceled { //nolint:errorlint // that very value
					t.Errorf("Err() = %v after Finish", c.Err())
				}
				return nil
			}
			c := callctx.New(t.Context(), plan)
			if slotted {
				c, _ = arm(t.Context(), plan)
			}
			if !isDone(c) {
				t.Error("Done is open after Finish")
			}
			check(t, c, context.Canceled, context.Canceled)
		}
	}
}

// Finish stands between taking the context out of its slot and settling the
// watch: it has decided.
func TestFinishInTheMiddle(t *testing.T) {
	for _, looked := range []bool{false, true} {
		c, s := arm(t.Context(), newPlan())
		if looked {
			c.Done()
		}
		s.CompareAndSwap(c, nil)
		check(t, c, context.Canceled, context.Canceled)
	}
}

// Readers wait while the slot is marked, also by another context that lies there
// now.
func TestReadersWaitForWhoSettles(t *testing.T) {
	for _, looked := range []bool{false, true} {
		for _, next := range []string{"live", "finished"} {
			c, s := arm(t.Context(), newPlan())
			if looked {
				c.Done()
			}
			s.Store(callctx.Firing)
			answer := make(chan error)
			go func() { answer <- c.Err() }()
			for range 100 {
				runtime.Gosched()
			}
			select {
			case err := <-answer:
				t.Fatalf("looked %v: Err() = %v while it is being settled", looked, err)
			default:
			}
			var want error
			if next == "live" {
				s.Store(c)
			} else {
				want = context.Canceled
				s.Store(nil)
			}
			if err := <-answer; err != want { //nolint:errorlint // that very value
				t.Errorf("looked %v: Err() = %v, want %v", looked, err, want)
			}
		}
	}
}

// Asking for the cause fixes the answer as asking for the error does.
func TestTheCauseThatWasSeenStands(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	c, _ := arm(parent, newPlan())
	cancel(errTheirs)
	c.Value(callctx.CauseKey) // the parent's, with the cause in it
	wantVerdict(t, c, callctx.InTime)
	check(t, c, context.Canceled, errTheirs)
}

// A reader learns of the caller's end without running what others registered.
func TestErrRunsNobodysCallbacks(t *testing.T) {
	p := &fakeParent{Context: t.Context()}
	c, _ := arm(p, newPlan())
	called := false
	c.AfterFunc(func() { called = true })
	p.err = func() error { return errTheirs }
	if c.Err() != errTheirs || !isDone(c) || called { //nolint:errorlint // that very value
		t.Errorf("Err() = %v, done %v, called %v", c.Err(), isDone(c), called)
	}
	c.Finish()
	if !called {
		t.Error("never called")
	}
}
