package scope_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
)

// A nil error would read as granted.
func TestWait_AContextThatIsDoneWithoutAnErrorHasEnded(t *testing.T) { // O-5, T-10
	ctx := testkit.Careless{Context: t.Context(), Ended: make(chan struct{})}
	close(ctx.Ended)
	s := scope.New(nil, nil)
	ready := make(chan struct{})
	if err := s.Wait(ctx, ready); err != context.Canceled { //nolint:errorlint // that very value
		t.Errorf("Wait: %v", err)
	}
	if err := s.Sleep(ctx, time.Hour); err != context.Canceled { //nolint:errorlint // that very value
		t.Errorf("Sleep: %v", err)
	}
	close(ready)
	if err := s.Wait(ctx, ready); err != nil {
		t.Errorf("Wait for what is ready: %v", err)
	}
}

// Asking a context for its deadline makes it a promise on the wheel; the library's
// own questions do not.
func TestDeadline_T6_IsAPromiseOnlyToWhoAsksTheContext(t *testing.T) {
	s := scope.New(nil, nil)
	s.Share()
	c := callctx.New(t.Context(), s.NewPlan(time.Hour, errLimit, false))
	s.Arm(c, s.Level(time.Hour))
	own := s.Deadline(c)
	if own&1 != 0 || c.WheelStamp().Load()&1 != 0 {
		t.Errorf("deadline %d, stamp %d", own, c.WheelStamp().Load())
	}
	at, ok := c.Deadline()
	told := c.WheelStamp().Load()
	if !ok || told != own+1 || !at.Equal(s.At(told)) || s.Deadline(c) != told {
		t.Errorf("told %v, stamp %d, deadline %d, before %d", at, told, s.Deadline(c), own)
	}
	if c.Finish() != callctx.InTime {
		t.Error("not in time")
	}
}

func TestPassed_T2_T6_IsWhatIsExactOrWasTold(t *testing.T) {
	s := scope.New(nil, nil)
	s.Share()
	plan := s.NewPlan(time.Hour, errLimit, false)
	c := callctx.New(t.Context(), plan)
	s.Arm(c, s.Level(time.Hour))
	past, future := s.Now()&^1, s.Now()&^1+int64(time.Hour)
	for s.Now() <= past+1 { // a coarse clock
		continue
	}
	for _, tc := range []struct {
		name  string
		stamp int64
		want  bool
	}{
		{"not fixed", 0, false},
		{"the wheel's own, past", past, false},
		{"the wheel's own, to come", future, false},
		{"told, past", past | 1, true},
		{"told, to come", future | 1, false},
		{"handed out", -past, true},
		{"none", scope.Never, false},
		{"at the end of all time", scope.Never - 1, false},
	} {
		if c.WheelStamp().Store(tc.stamp); plan.Passed(c) != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, plan.Passed(c), tc.want)
		}
	}
	c.WheelStamp().Store(past | 1)
	if c.Finish() != callctx.Expired || context.Cause(c) != errLimit { //nolint:errorlint // that very value
		t.Errorf("ended with %v", context.Cause(c))
	}

	// A timer's own deadline is exact.
	clk := clock.NewManual(start)
	m := scope.New(clk, nil)
	plan = m.NewPlan(limit, errLimit, false)
	c = callctx.New(t.Context(), plan)
	var passed []bool
	ask := func() { passed = append(passed, plan.Passed(c)) }
	clk.AfterFunc(limit-1, ask)
	clk.AfterFunc(limit, ask) // comes before the deadline's own event
	m.Arm(c, nil)
	clk.Advance(limit)
	if !slices.Equal(passed, []bool{false, true}) || c.Finish() != callctx.Expired {
		t.Errorf("passed %v, Err %v", passed, c.Err())
	}
	c = callctx.New(t.Context(), m.NewPlan(math.MaxInt64, errLimit, false))
	m.Arm(c, nil)
	clk.Advance(time.Hour)
	if c.Plan().Passed(c) || c.Finish() != callctx.InTime {
		t.Error("a limit that never comes has passed")
	}
}

// Of nested deadlines that pass together the outer one came first, whichever is
// found first.
func TestNested_T10_TheOuterOneComesFirst(t *testing.T) {
	eachMode(t, func(m *mode) {
		t, s := m.t, m.scope
		const n = 200
		plan, lv := s.NewPlan(limit, errLimit, false), s.Level(limit)
		type pair struct{ outer, inner *callctx.Context }
		pairs := make([]pair, n)
		for i := range pairs {
			p := &pairs[i]
			p.outer = callctx.New(t.Context(), plan)
			s.Arm(p.outer, lv)
			p.inner = callctx.New(p.outer, plan)
			s.Arm(p.inner, lv)
			if i%2 == 0 {
				p.inner.Done()
			}
		}
		m.pass(limit)
		// What the inner one leaves, it leaves on a goroutine of package context.
		for end := time.Now().Add(time.Minute); m.exact && s.Pending() != 0 && time.Now().Before(end); {
			runtime.Gosched()
		}
		for i := 0; s.Pending() != 0; i++ {
			if m.exact || i > 5000 {
				t.Fatalf("%d are pending", s.Pending())
			}
			m.pass(5 * time.Millisecond)
		}
		for _, p := range pairs {
			if v := p.inner.Finish(); v != callctx.Void {
				t.Errorf("inner: verdict %v", v)
			}
			if v := p.outer.Finish(); v != callctx.Expired {
				t.Errorf("outer: verdict %v", v)
			}
		}
	})
}

// A clock that ends the context while it arms the timer finds no lock held, and
// the timer that it returns is stopped.
func TestArm_X3_TheClockMayEndTheContextInAfterFunc(t *testing.T) {
	clk := &testkit.HookedClock{Manual: clock.NewManual(start)}
	s := scope.New(clk, nil)
	c := callctx.New(t.Context(), s.NewPlan(limit, errLimit, false))
	clk.AfterTimer = func(time.Duration) { c.Cancel(callctx.Canceled) }
	armed := make(chan struct{})
	go func() { s.Arm(c, nil); close(armed) }()
	select {
	case <-armed:
	case <-time.After(20 * time.Second):
		t.Fatal("a lock was held")
	}
	if c.Finish() != callctx.Cancelled || clk.Pending() != 0 || s.Pending() != 0 {
		t.Errorf("Err %v, %d timers, %d pending", c.Err(), clk.Pending(), s.Pending())
	}
}
