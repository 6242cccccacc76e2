package callctx_test

import (
	"context"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/callctx"
)

// quiet is a foreign parent that takes registrations and does not tell those who
// registered, as package context does not before another goroutine has run.
func quiet(tb testing.TB) (parent registering, end func(err error)) {
	tb.Helper()
	var ended error
	ch := make(chan struct{})
	p := registering{&fakeParent{Context: tb.Context(), err: func() error { return ended }, done: func() <-chan struct{} { return ch }}}
	p.afterFunc = func(func()) func() bool { return func() bool { return true } }
	return p, func(err error) { ended = err; close(ch) }
}

// endDerived is how package clock finds the method, which it may not import.
func endDerived(tb testing.TB, ctx context.Context) bool { //nolint:revive // the test comes first
	tb.Helper()
	e, ok := ctx.Value((*interface{ EndDerived() bool })(nil)).(interface{ EndDerived() bool })
	if !ok {
		tb.Fatal("not found")
	}
	return e.EndDerived()
}

func TestEndDerived_K1_TellsThatTheCallersContextHasEnded(t *testing.T) {
	for _, slotted := range []bool{false, true} {
		parent, end := quiet(t)
		c := callctx.New(parent, newPlan())
		if slotted {
			c, _ = arm(parent, newPlan())
		}
		child, cancel := context.WithCancel(c)
		grandchild, cancel2 := context.WithTimeout(child, time.Hour)
		told := 0
		c.AfterFunc(func() { told++ })
		if endDerived(t, grandchild) || child.Err() != nil || grandchild.Err() != nil || told != 0 {
			t.Error("told before the end")
		}
		end(errTheirs)
		if child.Err() != nil {
			t.Fatal("somebody else has told it")
		}
		for range 2 {
			if !endDerived(t, grandchild) {
				t.Error("the end is not reported")
			}
			check(t, child, errTheirs, errTheirs)
			check(t, grandchild, errTheirs, errTheirs)
			if told != 1 {
				t.Errorf("told %d times", told)
			}
		}
		c.Finish()
		cancel2()
		cancel()
	}
}

// The news goes down from the outermost one.
func TestEndDerived_K1_TellsThoseOfNestedCalls(t *testing.T) {
	type key struct{}
	for name, between := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"nothing": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"a value": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithValue(ctx, key{}, 1), func() {}
		},
		"a derived context": context.WithCancel,
	} {
		parent, end := quiet(t)
		outer, _ := arm(parent, newPlan())
		ctx, cancel := between(outer)
		inner, _ := arm(ctx, newPlan())
		child, cancel2 := context.WithCancel(context.Context(inner))
		if endDerived(t, child) {
			t.Errorf("%s: ended too early", name)
		}
		end(errTheirs)
		if !endDerived(t, child) {
			t.Errorf("%s: the end is not reported", name)
		}
		// Package context links the inner one to what is above it by a goroutine of
		// its own, which may be at it: then it is that one that tells.
		<-child.Done()
		check(t, child, errTheirs, errTheirs)
		check(t, inner, errTheirs, errTheirs)
		inner.Finish()
		outer.Finish()
		cancel2()
		cancel()
	}
}

// An end of our own is told, too, by whoever asks first.
func TestEndDerived_K1_AfterOurDeadline(t *testing.T) {
	c, s := arm(t.Context(), newPlan())
	child, cancel := context.WithCancel(context.Context(c))
	defer cancel()
	c.WheelExpire(s)
	if !c.EndDerived() {
		t.Error("the end is not reported")
	}
	check(t, child, context.DeadlineExceeded, errOurs)
	wantVerdict(t, c, callctx.Expired)
}

// passes is a plan whose deadlines have passed when told says so. It counts the
// questions.
func passes(told *bool, asked *int) *callctx.Plan {
	p := newPlan()
	p.Passed = func(*callctx.Context) bool { *asked++; return *told }
	p.Overdue = func(*callctx.Context) time.Duration {
		*asked++
		if *told {
			return 0
		}
		return -1
	}
	p.Hear = func(context.Context) {}
	return p
}

// A call whose deadline nobody asked for is not compared with the clock.
func TestFinish_T6_AsksTheClockOnlyIfADeadlineIsFixed(t *testing.T) {
	var told bool
	var asked int
	c, _ := arm(t.Context(), passes(&told, &asked))
	told = true
	wantVerdict(t, c, callctx.InTime)
	if asked != 0 {
		t.Errorf("asked %d times", asked)
	}
	told = false
	c, _ = arm(t.Context(), passes(&told, &asked))
	c.WheelStamp().Store(5)
	wantVerdict(t, c, callctx.InTime)
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

// The call itself expires what is over when it returns, and all hear of it.
func TestFinish_T7_ExpiresADeadlineThatHasPassed(t *testing.T) {
	for _, looked := range []bool{false, true} {
		told, asked := true, 0
		ran := 0
		o := &owner{after: func() { ran++ }}
		o.Info.Owner = o
		c, s := callctx.New(t.Context(), passes(&told, &asked)), new(slot)
		c.Own(&o.Info)
		s.Store(c)
		c.Armed(s)
		if looked {
			c.Done()
		}
		c.WheelStamp().Store(5)
		wantVerdict(t, c, callctx.Expired)
		check(t, c, context.DeadlineExceeded, errOurs)
		if s.Load() != nil || len(o.ended) != 1 || o.ended[0] != callctx.Expired || ran != 1 {
			t.Errorf("slot %v, owner has heard %v, followed %d times", s.Load(), o.ended, ran)
		}
		c.WheelExpire(s)
		wantVerdict(t, c, callctx.Expired)
	}
	// The caller's context has ended before: ours is void. T-10
	parent, cancel := context.WithCancelCause(t.Context())
	told, asked := true, 0
	c, _ := arm(parent, passes(&told, &asked))
	c.WheelStamp().Store(5)
	cancel(errTheirs)
	wantVerdict(t, c, callctx.Void)
	check(t, c, context.Canceled, errTheirs)
}

// The wheel may find the inner one first.
func TestWheelExpire_T10_TheOuterOneWhoseDeadlineHasPassedComesFirst(t *testing.T) {
	for _, looked := range []bool{false, true} {
		told, asked := true, 0
		outer, outerSlot := arm(t.Context(), passes(&told, &asked))
		ctx, cancel := context.WithCancel(context.Context(outer))
		inner, s := arm(ctx, passes(&told, &asked))
		if looked {
			inner.Done()
		}
		inner.WheelExpire(s)
		wantVerdict(t, inner, callctx.Void)
		check(t, inner, context.DeadlineExceeded, errOurs)
		outer.WheelExpire(outerSlot)
		wantVerdict(t, outer, callctx.Expired)
		cancel()

		// What follows from either is done: the outer one's first.
		var order []string
		link := func(c *callctx.Context, name string) *callctx.Context {
			o := &owner{after: func() { order = append(order, name) }}
			o.Info.Owner = o
			c.Own(&o.Info)
			return c
		}
		outer = link(callctx.New(t.Context(), passes(&told, &asked)), "outer")
		outerSlot.Store(outer)
		outer.Armed(outerSlot)
		inner = link(callctx.New(outer, passes(&told, &asked)), "inner")
		s.Store(inner)
		inner.Armed(s)
		if after := inner.WheelExpire(s); after != nil {
			after()
		}
		if len(order) != 2 || order[0] != "outer" {
			t.Errorf("followed: %q", order)
		}
		inner.Finish()
		outer.Finish()
	}
	// One whose deadline is to come has not ended.
	later, asked := false, 0
	outer, _ := arm(t.Context(), passes(&later, &asked))
	inner, s := arm(outer, newPlan())
	inner.WheelExpire(s)
	wantVerdict(t, inner, callctx.Expired)
	wantVerdict(t, outer, callctx.InTime)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
