package callctx_test

import (
	"context"
	"testing"
	"testing/synctest"

	"resilience4cata.dev/go/internal/callctx"
)

func TestAfterFuncStops(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		c, s := arm(t.Context(), newPlan())
		called := make([]int, n)
		stops := make([]func() bool, n)
		for i := range n {
			stops[i] = c.AfterFunc(func() { called[i]++ })
		}
		for i := range n - 1 {
			if !stops[i]() || stops[i]() {
				t.Errorf("%d of %d: stop must report true once", i, n)
			}
		}
		// The place of the first is free again, and its old stop must not reach it.
		again := 0
		stop := c.AfterFunc(func() { again++ })
		for i := range n - 1 {
			if stops[i]() {
				t.Errorf("%d of %d: stopped somebody else", i, n)
			}
		}
		c.WheelExpire(s)
		for i := range n {
			want := 0
			if i == n-1 {
				want = 1
			}
			if called[i] != want {
				t.Errorf("%d of %d: called %d times, want %d", i, n, called[i], want)
			}
			if stops[i]() {
				t.Errorf("%d of %d: stopped after the end", i, n)
			}
		}
		if again != 1 || stop() {
			t.Errorf("called %d times", again)
		}
		c.Finish()
	}
}

// The standard library's AfterFunc on ours, and on what derives from it.
func TestContextAfterFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, first := range []string{"ours", "the caller"} {
			c, s := arm(parent, newPlan())
			called := 0
			stop := context.AfterFunc(c, func() { t.Error("called after stop") })
			context.AfterFunc(c, func() { called++ })
			synctest.Wait()
			if !stop() || called != 0 {
				t.Errorf("%s: called before the end", first)
			}
			if first == "ours" {
				c.WheelExpire(s)
			} else {
				cancel()
			}
			synctest.Wait()
			if called != 1 {
				t.Errorf("%s: called %d times", first, called)
			}
			context.AfterFunc(c, func() { called++ })
			synctest.Wait()
			if called != 2 {
				t.Errorf("%s: not called at once after the end", first)
			}
			c.Finish()
		}
	})
}

// A parent's end ends the context without anybody asking.
func TestDoneHearsOfTheParentsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancelCause(t.Context())
		outer, _ := arm(parent, newPlan())
		c, s := arm(outer, newPlan())
		inner, _ := arm(c, newPlan())
		done := inner.Done()
		synctest.Wait()
		cancel(errTheirs)
		<-done
		for _, c := range []*callctx.Context{inner, c, outer} {
			check(t, c, context.Canceled, errTheirs)
		}
		if c.WheelExpire(s); c.Finish() != callctx.Void {
			t.Error("our deadline won after the caller's end")
		}
		inner.Finish()
		outer.Finish()
	})
}

func TestHoldStopsOnceAtTheEnd(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		parent context.Context
		before func(c *callctx.Context)
		end    func(c *callctx.Context)
	}{
		"finish":                {parent: t.Context(), end: func(c *callctx.Context) { c.Finish() }},
		"cancel":                {parent: t.Context(), end: func(c *callctx.Context) { c.Cancel(callctx.Canceled); c.Finish() }},
		"looked before":         {parent: t.Context(), before: func(c *callctx.Context) { c.Done() }, end: func(c *callctx.Context) { c.Finish() }},
		"parent ended before":   {parent: ended},
		"cancelled before":      {parent: t.Context(), before: func(c *callctx.Context) { c.Cancel(callctx.Canceled) }},
		"finished before":       {parent: t.Context(), before: func(c *callctx.Context) { c.Finish() }},
		"parent ended, then us": {parent: ended, end: func(c *callctx.Context) { c.Finish() }},
	} {
		c := callctx.New(tc.parent, newPlan())
		if tc.before != nil {
			tc.before(c)
		}
		stops := 0
		c.Hold(&callctx.Aside{Stop: func() { stops++ }})
		if want := map[bool]int{true: 0, false: 1}[tc.end != nil && tc.parent != ended]; stops != want {
			t.Errorf("%s: %d stops after Hold, want %d", name, stops, want)
		}
		if tc.end != nil {
			tc.end(c)
		}
		if c.Finish(); stops != 1 {
			t.Errorf("%s: %d stops", name, stops)
		}
	}
}

// Whoever ends a context whose channel belongs to another synctest bubble must
// not touch it, nor call anybody there; the decision stands all the same.
func TestNobodyTouchesAnotherBubblesChannel(t *testing.T) {
	end := callctx.NewEnd(context.Canceled, errClosed)
	for name, tc := range map[string]struct {
		end     func(c *callctx.Context, s *slot, cancel func())
		err     error
		verdict callctx.Verdict
	}{
		"expire": {func(c *callctx.Context, s *slot, _ func()) { c.WheelExpire(s) }, context.DeadlineExceeded, callctx.Expired},
		"cancel": {func(c *callctx.Context, _ *slot, _ func()) { c.Cancel(end) }, context.Canceled, callctx.Cancelled},
		"parent": {func(c *callctx.Context, _ *slot, cancel func()) { cancel(); _ = c.Err() }, context.Canceled, callctx.InTime},
		"finish": {func(c *callctx.Context, _ *slot, _ func()) { c.Finish() }, context.Canceled, callctx.Cancelled},
	} {
		for _, teller := range []string{"Tell", "Finish"} {
			inside, stops, told := true, 0, 0
			plan := newPlan()
			plan.Watch = func(*callctx.Context) *callctx.Aside {
				return &callctx.Aside{Inside: func() bool { return inside }, Stop: func() { stops++ }}
			}
			parent := &fakeParent{Context: t.Context()}
			c, s := arm(parent, plan)
			done := c.Done()
			c.AfterFunc(func() { told++ })

			inside = false
			tc.end(c, s, func() { parent.err = func() error { return context.Canceled } })
			select {
			case <-done:
				t.Errorf("%s: the channel was closed from outside", name)
			default:
			}
			if err := c.Err(); err != tc.err || stops+told != 0 { //nolint:errorlint // that very value
				t.Errorf("%s: Err() = %v, want %v; %d stops, %d told", name, err, tc.err, stops, told)
			}

			inside = true
			if teller == "Tell" {
				c.Tell()
			}
			if name != "finish" {
				wantVerdict(t, c, tc.verdict)
			} else {
				c.Tell()
			}
			if !isDone(c) || stops == 0 || told != 1 { // the call stops it again, if another has told
				t.Errorf("%s, %s: done %v, %d stops, %d told", name, teller, isDone(c), stops, told)
			}
		}
	}
}

func TestTellBeforeTheEndDoesNothing(t *testing.T) {
	c, _ := arm(t.Context(), newPlan())
	c.Tell()
	c.Observe()
	c.Tell()
	if isDone(c) {
		t.Error("ended")
	}
	c.Finish()
}

// In a bubble, a context made there ends as it does outside.
func TestBubbleContextsOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := arm(t.Context(), newPlan())
		go c.WheelExpire(s)
		<-c.Done()
		check(t, c, context.DeadlineExceeded, errOurs)
		wantVerdict(t, c, callctx.Expired)
	})
}
