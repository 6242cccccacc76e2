package scope_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
)

var errLimit = errors.New("the limit was passed")

// mode is a kind of clock that deadlines live on.
type mode struct {
	t     *testing.T
	scope *scope.Scope
	exact bool // deadlines are exact
	// pass lets time pass.
	pass func(d time.Duration)
}

// eachMode runs f under a manual clock, in a synctest bubble, and with a wheel on
// the real clock.
func eachMode(t *testing.T, f func(m *mode)) {
	t.Helper()
	t.Run("manual", func(t *testing.T) {
		clk := clock.NewManual(start)
		m := &mode{t: t, scope: scope.New(clk, nil), exact: true, pass: clk.Advance}
		m.scope.Share()
		f(m)
		if clk.Pending() != 0 {
			t.Errorf("%v", clk)
		}
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &mode{t: t, scope: scope.New(nil, nil), exact: true, pass: func(d time.Duration) { time.Sleep(d); synctest.Wait() }}
			m.scope.Share()
			f(m)
		})
	})
	t.Run("wheel", func(t *testing.T) {
		s := scope.New(nil, nil)
		s.Share()
		f(&mode{t: t, scope: s, pass: func(d time.Duration) { waitReal(s, d) }})
		if s.Pending() != 0 {
			t.Errorf("%d pending", s.Pending())
		}
	})
}

// waitReal waits on a runtime timer for d and what the wheel may be late.
func waitReal(s *scope.Scope, d time.Duration) {
	over := make(chan struct{})
	s.AfterFunc(d, func() { close(over) })
	<-over
}

// mustEnd waits for c's deadline.
func (m *mode) mustEnd(c *callctx.Context) {
	t := m.t
	t.Helper()
	for i := 0; c.Err() == nil; i++ {
		if m.exact || i > 1000 {
			t.Fatal("the deadline has passed and nothing happened")
		}
		m.pass(5 * time.Millisecond)
	}
	if c.Err() != context.DeadlineExceeded || context.Cause(c) != errLimit { //nolint:errorlint // these very values
		t.Errorf("Err() = %v, cause %v", c.Err(), context.Cause(c))
	}
	if v := c.Finish(); v != callctx.Expired {
		t.Errorf("verdict %v", v)
	}
}

// wantPending wants c, which is armed, to be the only one that is. By real time it
// may have expired already.
func (m *mode) wantPending(c *callctx.Context) {
	m.t.Helper()
	if n := m.scope.Pending(); n != 1 && (n != 0 || m.exact || c.Err() == nil) {
		m.t.Errorf("%d pending, Err() = %v", n, c.Err())
	}
}

const limit = 20 * time.Millisecond

func TestArmExpiresAtTheLimit(t *testing.T) { // T-5, T-7
	eachMode(t, func(m *mode) {
		t := m.t
		for _, looked := range []bool{false, true} {
			s := m.scope
			plan, lv := s.NewPlan(limit, errLimit, false), s.Level(limit)
			c := callctx.New(t.Context(), plan)
			before := s.Now()
			s.Arm(c, lv)
			if looked {
				c.Done()
			}
			m.wantPending(c)
			at, ok := c.Deadline()
			due := s.Deadline(c)
			if !ok || !at.Equal(s.At(due)) || due < before+int64(limit) || m.exact && due != before+int64(limit) {
				t.Errorf("Deadline() = %v, %v, due %d, armed after %d", at, ok, due, before)
			}
			if m.exact {
				if m.pass(limit - 1); c.Err() != nil {
					t.Error("early")
				}
				m.pass(1)
			}
			for c.Err() == nil && !m.exact {
				m.pass(time.Millisecond)
			}
			if s.Now() < due {
				t.Error("early")
			}
			if again, _ := c.Deadline(); !again.Equal(at) {
				t.Errorf("Deadline() was %v and is %v", at, again)
			}
			m.mustEnd(c)
			if s.Pending() != 0 {
				t.Errorf("%d pending afterwards", s.Pending())
			}
		}
	})
}

func TestArmUntilIsExact(t *testing.T) {
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		for _, lv := range []*scope.Level{s.Level(limit), nil} {
			due := scope.After(s.Now(), limit)
			c := callctx.New(t.Context(), s.NewPlan(0, errLimit, true))
			s.ArmUntil(c, lv, due)
			if got := s.Deadline(c); got != due {
				t.Errorf("due %d, want %d", got, due)
			}
			m.wantPending(c)
			m.pass(limit)
			m.mustEnd(c)
		}
	})
}

func TestFinishedBeforeTheLimitLeavesNothing(t *testing.T) { // T-4
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		plan, lv := s.NewPlan(time.Hour, errLimit, false), s.Level(time.Hour)
		for i := range 10 {
			c := callctx.New(t.Context(), plan)
			switch i % 3 {
			case 0:
				s.Arm(c, lv)
			case 1:
				s.ArmUntil(c, lv, scope.After(s.Now(), time.Hour))
			case 2:
				s.Reserve(c, lv).Begin(c, s.Now(), scope.After(s.Now(), time.Hour))
			}
			if i%2 == 0 {
				c.Done()
			}
			if v := c.Finish(); v != callctx.InTime {
				t.Errorf("verdict %v", v)
			}
			if s.Pending() != 0 {
				t.Errorf("%d pending after the call", s.Pending())
			}
		}
		s.Each(func(*callctx.Context, *atomic.Pointer[callctx.Context]) { t.Error("a context is left") })
	})
}

// The longest limits do not overflow: they have no deadline or one in the far
// future, and do not fire.
func TestField_TO06_HugeLimitsSaturate(t *testing.T) { // T-12
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 2, 2562047 * time.Hour, math.MaxInt64 / 2} {
			for _, looked := range []bool{false, true} {
				plan, lv := s.NewPlan(d, errLimit, false), s.Level(d)
				var all []*callctx.Context
				for kind := range 3 {
					c := callctx.New(t.Context(), plan)
					switch kind {
					case 0:
						s.Arm(c, lv)
					case 1:
						s.ArmUntil(c, lv, scope.After(s.Now(), d))
					case 2:
						s.Reserve(c, lv).Begin(c, s.Now(), scope.After(s.Now(), d))
					}
					if looked {
						c.Done()
					}
					all = append(all, c)
				}
				if m.exact {
					m.pass(time.Hour)
				} else {
					m.pass(time.Millisecond)
				}
				for _, c := range all {
					if at, ok := c.Deadline(); ok && at.Before(s.Time().AddDate(100, 0, 0)) {
						t.Errorf("%v: deadline %v", d, at)
					}
					if c.Err() != nil {
						t.Errorf("%v: %v", d, c.Err())
					}
					if c.Finish() != callctx.InTime || s.Pending() != 0 && c == all[2] {
						t.Errorf("%v: %d pending", d, s.Pending())
					}
				}
			}
		}
	})
}

// A caller's context that has ended before: nothing is armed.
func TestArmUnderAnEndedParentLeavesNothing(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	cancel()
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		c := callctx.New(parent, s.NewPlan(limit, errLimit, false))
		s.Arm(c, s.Level(limit))
		if c.Err() != context.Canceled { //nolint:errorlint // that very value
			t.Errorf("Err() = %v", c.Err())
		}
		c.Finish()
		if s.Pending() != 0 {
			t.Errorf("%d pending", s.Pending())
		}
	})
}

// ender records when it is told.
type ender struct {
	callctx.Info
	key   callctx.Key
	ended func()
	after func()
}

func (*ender) Attempt() int        { return 1 }
func (e *ender) Key() *callctx.Key { return &e.key }
func (e *ender) Ended(*callctx.Context, callctx.Verdict) func() {
	e.ended()
	return e.after
}

// together is calls that are due at one instant, and what has become of them.
type together struct {
	all                    []*callctx.Context
	due                    int64
	ended, tooEarly, after atomic.Int64
	last                   atomic.Int64 // when the last one ended
}

func (m *mode) armTogether(n int, in time.Duration) *together {
	s := m.scope
	r := &together{due: scope.After(s.Now(), in)}
	lv := s.Level(in)
	for range n {
		c := callctx.New(m.t.Context(), s.NewPlan(0, errLimit, false))
		o := &ender{ended: func() {
			r.last.Store(s.Now())
			r.ended.Add(1)
		}, after: func() {
			if r.ended.Load() != int64(n) {
				r.tooEarly.Add(1)
			}
			r.after.Add(1)
		}}
		o.Info.Owner = o
		c.Own(&o.Info)
		s.ArmUntil(c, lv, r.due)
		r.all = append(r.all, c)
	}
	return r
}

// All that are due at one instant end before any of what follows happens. A-9
//
// The wheel gives up waiting for one that takes longer than a turn of the
// scheduler. So by real time only those are judged of whom all have ended sooner
// than that, which may take several rounds where others want the machine.
func TestSoonComesAfterAllThatIsDueNow(t *testing.T) {
	eachMode(t, func(m *mode) {
		const n, turn = 20, 10 * time.Millisecond
		s, in := m.scope, limit
		for began, judged := time.Now(), false; !judged; {
			r := m.armTogether(n, in)
			inTime := m.exact || s.Now() < r.due // else some may have ended before others were armed
			m.pass(in)
			if m.exact {
				m.pass(1)
			}
			for !m.exact && r.after.Load() < n {
				runtime.Gosched()
			}
			judged = m.exact || inTime && r.last.Load() < r.due+int64(turn)
			if r.ended.Load() != n || r.after.Load() != n || judged && r.tooEarly.Load() != 0 {
				m.t.Errorf("%d ended, %d followed, %d of them too early", r.ended.Load(), r.after.Load(), r.tooEarly.Load())
			}
			for _, c := range r.all {
				m.mustEnd(c)
			}
			if !inTime {
				in *= 2
			}
			if !m.exact && time.Since(began) > time.Minute {
				m.t.Log("never were all in time")
				break
			}
		}
	})
}

func TestWheelIsOnlyOnTheRealClock(t *testing.T) {
	s := scope.New(nil, nil)
	if s.Level(time.Second) != nil || s.Ticking() {
		t.Error("a wheel before Share")
	}
	if s.Share(); s.Level(time.Second) == nil {
		t.Error("no wheel after Share")
	}
	s.SetShortest(time.Second)
	m := scope.New(clock.NewManual(start), nil)
	if m.Share(); m.Level(time.Second) != nil {
		t.Error("a wheel under a manual clock")
	}
	m.SetShortest(time.Second)
}

func TestDeadlineWithoutAWheelIsNeverBeforeItIsSet(t *testing.T) {
	s := scope.New(clock.NewManual(start), nil)
	c := callctx.New(t.Context(), s.NewPlan(0, errLimit, true))
	if d := s.Deadline(c); d != scope.Never {
		t.Errorf("due at %d", d)
	}
	c.Finish()
}

// What the end of a context leads to may panic: that is reported, and delays
// nobody.
func TestPanicAtADeadlineIsReported(t *testing.T) {
	reported := make(chan policy.CallbackPanic, 1)
	s := scope.New(nil, func(_ context.Context, e policy.Event) { reported <- e.(policy.CallbackPanic) })
	s.Share()
	c := callctx.New(t.Context(), s.NewPlan(limit, errLimit, false))
	o := &ender{ended: func() { panic("boom") }}
	o.Info.Owner = o
	c.Own(&o.Info)
	s.Arm(c, s.Level(limit))
	if e := <-reported; e.Value != "boom" || e.Policy() != "timeout" {
		t.Errorf("reported %v", e)
	}
	if c.Finish() != callctx.Expired {
		t.Error("not expired")
	}
}

// Each visits contexts that come and go without losing those that stay.
func TestEachFindsWhatStays(t *testing.T) {
	eachMode(t, func(m *mode) {
		t := m.t
		s := m.scope
		plan, lv := s.NewPlan(time.Hour, errLimit, false), s.Level(time.Hour)
		stays := map[*callctx.Context]bool{}
		for range 50 {
			c := callctx.New(t.Context(), plan)
			s.Arm(c, lv)
			stays[c] = true
		}
		var stop atomic.Bool
		over := make(chan bool)
		go func() {
			defer close(over)
			for !stop.Load() {
				c := callctx.New(t.Context(), plan)
				s.Arm(c, lv)
				c.Finish()
				runtime.Gosched()
			}
		}()
		for range 20 {
			found := 0
			s.Each(func(c *callctx.Context, _ *atomic.Pointer[callctx.Context]) {
				if stays[c] {
					found++
				}
			})
			if found != len(stays) {
				t.Errorf("%d of %d found", found, len(stays))
			}
		}
		stop.Store(true)
		<-over
		for c := range stays {
			c.Finish()
		}
	})
}
