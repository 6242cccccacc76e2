package callctx_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/testkit"
)

func TestDeadlineIsTheEarlierOne(t *testing.T) { // T-11
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	never := func(*callctx.Context) (time.Time, bool) { return time.Time{}, false }
	own := func(*callctx.Context) (time.Time, bool) { return at, true }
	for name, tc := range map[string]struct {
		parent  time.Time // zero: none
		own     func(*callctx.Context) (time.Time, bool)
		unarmed bool
		want    time.Time
	}{
		"none":                {own: never},
		"ours alone":          {own: own, want: at},
		"caller's alone":      {own: never, parent: at.Add(1), want: at.Add(1)},
		"ours is earlier":     {own: own, parent: at.Add(1), want: at},
		"caller's is earlier": {own: own, parent: at.Add(-1), want: at.Add(-1)},
		"equal":               {own: own, parent: at, want: at},
		"plan without":        {parent: at, want: at},
		"not armed":           {own: own, unarmed: true},
		"not armed, caller's": {own: own, unarmed: true, parent: at, want: at},
	} {
		parent := t.Context()
		if !tc.parent.IsZero() {
			var cancel context.CancelFunc
			parent, cancel = context.WithDeadline(parent, tc.parent)
			defer cancel()
		}
		plan := newPlan()
		plan.Deadline = tc.own
		c := callctx.New(parent, plan)
		if !tc.unarmed {
			c, _ = arm(parent, plan)
		}
		got, ok := c.Deadline()
		if !got.Equal(tc.want) || ok == tc.want.IsZero() {
			t.Errorf("%s: Deadline() = %v, %v, want %v", name, got, ok, tc.want)
		}
		c.Finish()
	}
}

// family derives contexts in all of the standard library's ways.
func family(t *testing.T, c context.Context) map[string]context.Context { //nolint:revive // the test comes first
	t.Helper()
	type key struct{}
	cancelled, cancel := context.WithCancel(c)
	timed, cancel2 := context.WithTimeout(c, time.Hour)
	caused, cancel3 := context.WithTimeoutCause(c, time.Hour, errClosed)
	grandchild, cancel4 := context.WithCancelCause(context.WithValue(cancelled, key{}, 1))
	t.Cleanup(func() { cancel(); cancel2(); cancel3(); cancel4(nil) })
	return map[string]context.Context{
		"itself": c, "WithCancel": cancelled, "WithTimeout": timed, "WithTimeoutCause": caused,
		"WithValue": context.WithValue(c, key{}, 1), "grandchild": grandchild,
	}
}

func TestExpiryIsSeenByDerivedContexts(t *testing.T) { // T-11
	for _, looked := range []bool{false, true} {
		c, s := arm(t.Context(), newPlan())
		before := map[string]context.Context{}
		if looked {
			before = family(t, c)
			for name, ctx := range before {
				if ctx.Err() != nil || context.Cause(ctx) != nil || isDone(ctx) {
					t.Errorf("%s has ended before the deadline", name)
				}
			}
		}
		if after := c.WheelExpire(s); after != nil {
			t.Error("something is to be done afterwards, without an owner")
		}
		for name, ctx := range before {
			t.Run("before/"+name, func(t *testing.T) { check(t, ctx, context.DeadlineExceeded, errOurs) })
		}
		for name, ctx := range family(t, c) {
			t.Run("after/"+name, func(t *testing.T) { check(t, ctx, context.DeadlineExceeded, errOurs) })
		}
		if s.Load() != nil {
			t.Error("the slot was not freed")
		}
		wantVerdict(t, c, callctx.Expired)
		check(t, c, context.DeadlineExceeded, errOurs)
	}
}

func TestWithoutCancelCutsTheEndOffAndKeepsTheValues(t *testing.T) {
	type key struct{}
	plan := newPlan()
	plan.Retrying = true
	c, s := arm(context.WithValue(t.Context(), key{}, "v"), plan)
	free := context.WithoutCancel(c)
	c.WheelExpire(s)
	if free.Err() != nil || context.Cause(free) != nil || free.Done() != nil {
		t.Errorf("ended with %v", context.Cause(free))
	}
	if _, ok := free.Deadline(); ok {
		t.Error("a deadline")
	}
	if free.Value(key{}) != "v" || callctx.Find(free) != c {
		t.Error("values are lost")
	}
	wantVerdict(t, c, callctx.Expired)
}

// Whoever asks first, and with whatever question, the caller's end has the
// caller's own error and cause. T-10
func TestTheCallersEndPassesThrough(t *testing.T) {
	parents := map[string]func(t *testing.T) (ctx context.Context, end func(), err, cause error){
		"cancelled": func(t *testing.T) (context.Context, func(), error, error) {
			ctx, cancel := context.WithCancel(t.Context())
			return ctx, cancel, context.Canceled, context.Canceled
		},
		"with a cause": func(t *testing.T) (context.Context, func(), error, error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return ctx, func() { cancel(errTheirs) }, context.Canceled, errTheirs
		},
		"its deadline": func(t *testing.T) (context.Context, func(), error, error) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTheirs)
			t.Cleanup(cancel)
			return ctx, func() { <-time.After(time.Minute); synctest.Wait() }, context.DeadlineExceeded, errTheirs
		},
		"ours": func(t *testing.T) (context.Context, func(), error, error) {
			c, s := arm(t.Context(), callctx.NewPlan(1, errTheirs))
			t.Cleanup(func() { wantVerdict(t, c, callctx.Expired) })
			return c, func() { c.WheelExpire(s) }, context.DeadlineExceeded, errTheirs
		},
		"foreign": func(*testing.T) (context.Context, func(), error, error) {
			p := newEndable()
			return p, func() { p.end(errTheirs) }, errTheirs, errTheirs
		},
	}
	questions := map[string]func(context.Context){
		"Err":     func(ctx context.Context) { _ = ctx.Err() },
		"Cause":   func(ctx context.Context) { _ = ctx.Value(callctx.CauseKey) },
		"Done":    func(ctx context.Context) { ctx.Done() },
		"derived": func(ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() },
		"Finish":  func(context.Context) {},
	}
	for name, newParent := range parents {
		for question, ask := range questions {
			for _, looked := range []bool{false, true} {
				for _, slotted := range []bool{false, true} {
					t.Run(fmt.Sprint(name, "/", question, "/looked ", looked, "/slot ", slotted), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							parent, end, err, cause := newParent(t)
							c := callctx.New(parent, newPlan())
							var s *slot
							if slotted {
								c, s = arm(parent, newPlan())
							}
							if looked {
								c.Done()
							}
							end()
							ask(c)
							if question == "Finish" {
								wantVerdict(t, c, callctx.InTime)
								return // either answer is right: both happened at once
							}
							check(t, c, err, cause)
							if slotted {
								c.WheelExpire(s)
								check(t, c, err, cause)
								wantVerdict(t, c, callctx.Void)
							} else {
								wantVerdict(t, c, callctx.InTime)
							}
							check(t, c, err, cause)
						})
					})
				}
			}
		}
	}
}

// Nobody has asked when the deadline fires, and the caller's context has ended:
// ours is void. T-10
func TestOurDeadlineIsVoidAfterTheCallersEnd(t *testing.T) {
	for _, looked := range []bool{false, true} {
		parent, cancel := context.WithCancelCause(t.Context())
		c, s := arm(parent, newPlan())
		if looked {
			c.Done()
		}
		cancel(errTheirs)
		c.WheelExpire(s)
		check(t, c, context.Canceled, errTheirs)
		wantVerdict(t, c, callctx.Void)
	}
}

func TestAfterTheCallNothingStaysRegistered(t *testing.T) { // T-4
	registered := map[*byte]bool{}
	p := registering{&fakeParent{Context: t.Context(), done: func() <-chan struct{} { return make(chan struct{}) }}}
	p.afterFunc = func(func()) func() bool {
		id := new(byte)
		registered[id] = true
		return func() bool { was := registered[id]; delete(registered, id); return was }
	}
	ends := map[string]func(c *callctx.Context, s *slot){
		"finish": func(*callctx.Context, *slot) {},
		"expire": func(c *callctx.Context, s *slot) { c.WheelExpire(s) },
		"cancel": func(c *callctx.Context, _ *slot) { c.Cancel(callctx.Canceled) },
	}
	for name, end := range ends {
		for _, slotted := range []bool{false, true} {
			c, s := callctx.New(p, newPlan()), new(slot)
			if slotted {
				c, s = arm(p, newPlan())
			}
			_ = c.Err()
			if len(registered) != 0 {
				t.Errorf("%s: registered for an Err", name)
			}
			_, cancel := context.WithCancel(c)
			if len(registered) != 1 {
				t.Errorf("%s: %d registrations while it runs", name, len(registered))
			}
			end(c, s)
			c.Finish()
			c.Done()
			if len(registered) != 0 {
				t.Errorf("%s: %d registrations after the call", name, len(registered))
			}
			cancel()
		}
	}
}

// The standard library's own contexts do not say what is registered with them,
// but the garbage collector does.
func TestAFinishedContextIsCollectableWhileItsParentLives(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost := make([]weak.Pointer[callctx.Context], 0, 20)
	for i := range 20 {
		c, s := arm(parent, newPlan())
		lost = append(lost, weak.Make(c))
		c.Done()
		if i%2 == 0 {
			c.WheelExpire(s)
		}
		c.Finish()
	}
	runtime.GC()
	runtime.GC()
	for i, p := range lost {
		if p.Value() != nil {
			t.Errorf("context %d is held by its parent", i)
		}
	}
	runtime.KeepAlive(parent)
}

func TestDerivedContextsCostNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		c, s := arm(parent, newPlan())
		before := testkit.Goroutines(t)
		type attempts struct{}
		var children []context.Context
		for range 50 {
			child, cancel := context.WithCancel(c)
			defer cancel()
			timed, cancel := context.WithTimeoutCause(child, time.Hour, errTheirs)
			defer cancel()
			child.Done()
			children = append(children, child, timed, context.WithValue(c, attempts{}, 1))
		}
		if n := testkit.Goroutines(t) - before; n > 0 {
			t.Errorf("50 derived contexts cost %d goroutines", n)
		}
		c.WheelExpire(s)
		for _, child := range children {
			if child.Err() != context.DeadlineExceeded {
				t.Fatalf("a child's Err() = %v", child.Err())
			}
		}
		if n := testkit.Goroutines(t) - before; n > 0 {
			t.Errorf("their end costs %d goroutines", n)
		}
		c.Finish()
	})
}

// What a function retains may be used for ever, whatever lies in its slot since.
func TestARetainedContextStaysSafe(t *testing.T) {
	type key struct{}
	for _, looked := range []bool{false, true} {
		for _, slotted := range []bool{false, true} {
			for _, first := range []string{"Err", "Done", "Cause", "AfterFunc", "derived"} {
				parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
				c, s := callctx.New(parent, newPlan()), new(slot)
				if slotted {
					c, s = arm(parent, newPlan())
				}
				if looked {
					c.Done()
				}
				wantVerdict(t, c, callctx.InTime)
				other := callctx.New(parent, newPlan())
				s.Store(other)
				other.Armed(s)

				switch first {
				case "Done":
					if !isDone(c) {
						t.Error("Done is open")
					}
				case "Cause":
					c.Value(callctx.CauseKey)
				case "AfterFunc":
					called := make(chan bool, 1)
					stop := c.AfterFunc(func() { called <- true })
					<-called
					if stop() {
						t.Error("stopped what was called")
					}
				case "derived":
					child, cancel := context.WithCancel(c)
					check(t, child, context.Canceled, context.Canceled)
					cancel()
				}
				cancel(errTheirs) // later than the end: it changes nothing
				check(t, c, context.Canceled, context.Canceled)
				if c.Value(key{}) != "v" {
					t.Error("the parent's values are gone")
				}
				if c.WheelExpire(s); s.Load() != other {
					t.Error("it has touched the other's slot")
				}
				if c.Cancel(callctx.Canceled) {
					t.Error("cancelled after the end")
				}
				wantVerdict(t, other, callctx.InTime)
			}
		}
	}
}

func TestCancelEndsItFromOurSide(t *testing.T) {
	end := callctx.NewEnd(context.Canceled, errClosed)
	for _, looked := range []bool{false, true} {
		for _, slotted := range []bool{false, true} {
			c := callctx.New(t.Context(), newPlan())
			if slotted {
				c, _ = arm(t.Context(), newPlan())
			}
			if looked {
				c.Done()
			}
			if !c.Cancel(end) || c.Cancel(end) {
				t.Error("Cancel must report true once")
			}
			check(t, c, context.Canceled, errClosed)
			wantVerdict(t, c, callctx.Cancelled)
			check(t, c, context.Canceled, errClosed)
		}
	}
	// After the caller's end has been seen, the slot is freed and nothing changes.
	parent, cancel := context.WithCancelCause(t.Context())
	c, s := arm(parent, newPlan())
	cancel(errTheirs)
	_ = c.Err()
	if c.EndIn(s, end) || s.Load() != nil {
		t.Error("cancelled although the caller's context had ended")
	}
	check(t, c, context.Canceled, errTheirs)
	wantVerdict(t, c, callctx.Void)
}

// what the call holds comes back before anybody hears of its end.
func TestEndInTellsNobodyBeforeHushAndTell(t *testing.T) {
	c, s := arm(t.Context(), newPlan())
	stopped, told := false, false
	c.Hold(&callctx.Aside{Stop: func() { stopped = true }})
	c.AfterFunc(func() { told = true })
	c.Hush() // not before its end
	if !c.EndIn(s, callctx.NewEnd(context.Canceled, errClosed)) || s.Load() != nil || stopped || told {
		t.Errorf("in its slot: %v; stopped %v, told %v", s.Load() != nil, stopped, told)
	}
	if c.Hush(); !stopped || told {
		t.Errorf("stopped %v, told %v", stopped, told)
	}
	if c.Tell(); !told {
		t.Error("not told")
	}
	check(t, c, context.Canceled, errClosed)
	wantVerdict(t, c, callctx.Cancelled)
}

func TestValueAndStringAnswerLikeAContext(t *testing.T) {
	type key struct{}
	c, s := arm(context.WithValue(t.Context(), key{}, "v"), newPlan())
	for range 2 {
		if c.Value(key{}) != "v" || c.Value("other") != nil || c.Value([0]int{}) != nil {
			t.Error("a value is wrong")
		}
		c.WheelExpire(s)
	}
	c.Finish()
	if got := fmt.Sprint(context.WithValue(c, key{}, 1)); !strings.HasPrefix(got, "resilience4cata.Attempt.WithValue(") {
		t.Errorf("a derived context names itself %s", got)
	}
	if c.Parent().Value(key{}) != "v" || c.Plan() == nil {
		t.Error("Parent or Plan is wrong")
	}
}
