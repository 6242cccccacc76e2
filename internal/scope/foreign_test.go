package scope_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
)

// In these tests the scope was made outside of the synctest bubble in which it is
// used, as a registry in a package variable is. What must never happen is that
// the process dies: the runtime ends it when a bubble's channel or timer is
// touched from outside. X-2

// bubble is a synctest bubble and the scope that is used in it.
type bubble struct {
	t       *testing.T
	s       *scope.Scope
	ticking bool
}

// foreign runs f in a bubble with a scope that was made outside, once with a
// quiet wheel, once with a ticking one, and once without one. ticking says that
// contexts are armed without the clock being read.
func foreign(t *testing.T, f func(b *bubble)) {
	t.Helper()
	t.Run("quiet", func(t *testing.T) {
		s := scope.New(nil, nil)
		s.Share()
		synctest.Test(t, func(t *testing.T) { f(&bubble{t, s, false}) })
		checkQuiet(t, s)
	})
	t.Run("ticking", func(t *testing.T) {
		s := scope.New(nil, nil)
		s.Share()
		stop := keepTicking(t, s)
		synctest.Test(t, func(t *testing.T) { f(&bubble{t, s, true}) })
		stop()
		checkQuiet(t, s)
	})
	t.Run("alone", func(t *testing.T) {
		s := scope.New(nil, nil)
		synctest.Test(t, func(t *testing.T) { f(&bubble{t, s, false}) })
		checkQuiet(t, s)
	})
}

func checkQuiet(t *testing.T, s *scope.Scope) {
	t.Helper()
	if s.Pending() != 0 {
		t.Errorf("%d pending", s.Pending())
	}
	s.Each(func(*callctx.Context, *atomic.Pointer[callctx.Context]) { t.Error("a context is left") })
}

// keepTicking makes calls outside, so that the wheel ticks, until stop.
func keepTicking(t *testing.T, s *scope.Scope) (stop func()) {
	t.Helper()
	plan, lv := s.NewPlan(time.Hour, errLimit, false), s.Level(time.Hour)
	var stopped atomic.Bool
	over := make(chan bool)
	go func() {
		defer close(over)
		for !stopped.Load() {
			c := callctx.New(context.Background(), plan)
			s.Arm(c, lv)
			c.Finish()
			runtime.Gosched()
		}
	}()
	for !s.Ticking() {
		runtime.Gosched()
	}
	return func() { stopped.Store(true); <-over }
}

// armed arms c, and where the wheel ticks, waits for a moment in which it does:
// a crowded machine makes it go quiet for a while.
func (b *bubble) armed(d time.Duration) *callctx.Context {
	s := b.s
	plan, lv := s.NewPlan(d, errLimit, false), s.Level(d)
	for {
		c := callctx.New(b.t.Context(), plan)
		if s.Arm(c, lv); !b.ticking || c.WheelStart() >= 0 {
			return c
		}
		c.Finish()
		runtime.Gosched()
	}
}

func TestForeignBubble_X2_DoneFiresAtTheBubblesTime(t *testing.T) {
	foreign(t, func(b *bubble) {
		t, s := b.t, b.s
		if !s.Foreign() || s.Now() > 0 {
			t.Fatal("not noticed")
		}
		for _, derived := range []bool{false, true} {
			c := b.armed(time.Hour)
			ctx := context.Context(c)
			if derived {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(c)
				defer cancel()
			}
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took != time.Hour {
				t.Errorf("ended after %v", took)
			}
			if context.Cause(ctx) != errLimit || c.Finish() != callctx.Expired { //nolint:errorlint // that very value
				t.Errorf("cause %v", context.Cause(ctx))
			}
		}
	})
}

func TestForeignBubble_X2_CallsInTimeLeaveNothing(t *testing.T) {
	var retained []*callctx.Context
	foreign(t, func(b *bubble) {
		t := b.t
		for i := range 20 {
			c := b.armed(time.Hour)
			if i%2 == 0 {
				c.Done()
			}
			<-time.After(time.Second)
			if c.Err() != nil || c.Finish() != callctx.InTime {
				t.Errorf("ended with %v", c.Err())
			}
			retained = append(retained, c)
		}
	})
	for _, c := range retained { // outside, after the bubble has ended
		if c.Err() != context.Canceled || c.Cancel(callctx.Canceled) { //nolint:errorlint // that very value
			t.Errorf("a retained context says %v", c.Err())
		}
		c.Tell()
	}
}

func TestForeignBubble_X2_ArmUntilAndBegin(t *testing.T) {
	foreign(t, func(b *bubble) {
		t, s := b.t, b.s
		lv := s.Level(time.Hour)
		for _, looked := range []bool{false, true} {
			for kind := range 3 {
				c := callctx.New(t.Context(), s.NewPlan(time.Hour, errLimit, false))
				began := time.Now()
				want := time.Minute
				switch kind {
				case 0:
					s.ArmUntil(c, lv, scope.After(s.Now(), want))
				case 1:
					p := s.Reserve(c, lv)
					if looked { // the function that starts a stage looks at its context
						c.Done()
					}
					<-time.After(2 * time.Hour) // and takes its time, which does not count
					if c.Err() != nil {
						t.Errorf("ended before it had begun: %v", c.Err())
					}
					p.Begin(c, s.Now(), scope.After(s.Now(), want))
					want += 2 * time.Hour
				case 2: // no limit but that of MaxDuration
					c = callctx.New(t.Context(), s.NewPlan(0, errLimit, false))
					s.Reserve(c, lv).Begin(c, s.Now(), scope.After(s.Now(), want))
				}
				if at, ok := c.Deadline(); ok && (at.Before(began.Add(want)) || at.After(began.Add(want+time.Second))) {
					t.Errorf("kind %d: Deadline() is in %v, want in %v", kind, at.Sub(began), want)
				}
				<-c.Done()
				if took := time.Since(began); took != want || c.Finish() != callctx.Expired {
					t.Errorf("kind %d: ended after %v, want %v", kind, took, want)
				}
			}
		}
	})
}

// The real time in which a call is in flight passes its limit. It may end, which
// it would not by the bubble's time, but not by the wheel's hand.
func TestForeignBubble_X2_RealDeadlinesPassMeanwhile(t *testing.T) {
	foreign(t, func(b *bubble) {
		t, s := b.t, b.s
		plan, lv := s.NewPlan(time.Millisecond, errLimit, false), s.Level(time.Millisecond)
		for i := range 30 {
			c := callctx.New(t.Context(), plan)
			s.Arm(c, lv)
			for range 2 * i {
				runtime.Gosched()
				busy()
			}
			<-c.Done()
			if c.Err() != context.DeadlineExceeded || c.Finish() != callctx.Expired { //nolint:errorlint // that very value
				t.Fatalf("round %d: %v", i, c.Err())
			}
		}
	})
}

// The wheel has handed the call out to expire, and has not come to it.
func TestForeignBubble_X2_HandedOutAlready(t *testing.T) {
	foreign(t, func(b *bubble) {
		if !b.ticking {
			return
		}
		c := b.armed(time.Hour)
		followed := make(chan bool)
		o := &ender{ended: func() {}, after: func() { close(followed) }}
		o.Info.Owner = o
		c.Own(&o.Info)
		c.WheelStamp().Store(-7) // as a tick does
		if d := b.s.Deadline(c); d != 7 {
			b.t.Errorf("due at %d", d)
		}
		began := time.Now()
		<-c.Done()
		<-followed
		if took := time.Since(began); took != 0 || c.Finish() != callctx.Expired {
			b.t.Errorf("ended after %v with %v", took, c.Err())
		}
	})
}

func TestForeignBubble_X2_FarDeadlinesDoNotWrap(t *testing.T) { // TO-06
	foreign(t, func(b *bubble) {
		for _, due := range []int64{scope.Never - 1, scope.Never, scope.After(b.s.Now(), scope.Never), scope.After(b.s.Now(), scope.Never-5)} {
			c := callctx.New(b.t.Context(), b.s.NewPlan(0, errLimit, false))
			b.s.ArmUntil(c, b.s.Level(time.Hour), due)
			<-time.After(24 * time.Hour)
			if c.Err() != nil || c.Finish() != callctx.InTime {
				b.t.Errorf("due at %d: %v", due, c.Err())
			}
		}
	})
}

var sink int

// busy is some microseconds of real time.
func busy() {
	for i := range 20000 {
		sink += i
	}
}

// A registry is closed outside, or the caller's context ends there, while a call
// in the bubble has a channel of the bubble.
func TestForeignBubble_X2_EndsFromOutside(t *testing.T) {
	end := callctx.NewEnd(context.Canceled, scope.ErrClosed)
	for _, how := range []string{"cancel", "parent"} {
		t.Run(how, func(t *testing.T) {
			run := testkit.Outside(t)
			foreign(t, func(b *bubble) {
				t, s := b.t, b.s
				for _, last := range []string{"Done", "Finish"} {
					parent, cancel := context.WithCancelCause(t.Context())
					if how == "parent" {
						run(func() {
							parent, cancel = context.WithCancelCause(context.Background())
							parent.Done() // made inside, its own cancel would end the process
						})
					}
					defer cancel(nil)
					plan, lv := s.NewPlan(time.Hour, errLimit, false), s.Level(time.Hour)
					c := callctx.New(parent, plan)
					s.Arm(c, lv)
					done := c.Done()
					told := false
					c.AfterFunc(func() { told = true })
					if how == "cancel" {
						run(func() {
							s.Each(func(e *callctx.Context, slot *atomic.Pointer[callctx.Context]) {
								if e == c {
									e.EndIn(slot, end)
									e.Tell()
								}
							})
						})
					} else {
						run(func() { cancel(scope.ErrClosed) })
					}
					for c.Err() == nil {
						runtime.Gosched()
					}
					if !errors.Is(context.Cause(c), scope.ErrClosed) {
						t.Errorf("cause %v", context.Cause(c))
					}
					if last == "Done" {
						<-done // at the bubble's own deadline at the latest
					}
					if c.Finish() == callctx.Expired || !told {
						t.Errorf("told %v", told)
					}
					<-done
				}
			})
		})
	}
}

// The context was made and armed outside, and its function runs a bubble.
func TestForeignBubble_X2_ACallFromOutsideLooksInside(t *testing.T) {
	s := scope.New(nil, nil)
	s.Share()
	for _, kind := range []string{"arm", "until", "reserved"} {
		for _, d := range []time.Duration{time.Hour, 30 * time.Millisecond} {
			parent, cancel := context.WithCancel(t.Context())
			parent.Done() // whatever is made inside a bubble belongs to it
			c := callctx.New(parent, s.NewPlan(d, errLimit, false))
			if kind == "until" {
				c = callctx.New(parent, s.NewPlan(0, errLimit, false))
			}
			lv := s.Level(d)
			switch kind {
			case "arm":
				s.Arm(c, lv)
			case "until":
				s.ArmUntil(c, lv, scope.After(s.Now(), d))
			case "reserved":
				s.Reserve(c, lv).Begin(c, s.Now(), scope.After(s.Now(), d))
			}
			synctest.Test(t, func(t *testing.T) {
				done := c.Done()
				if kind == "until" { // its limit is not known inside: real time decides
					for c.Err() == nil && d < time.Hour {
						runtime.Gosched()
					}
					c.Finish()
				}
				<-done
				if d < time.Hour && c.Err() != context.DeadlineExceeded { //nolint:errorlint // that very value
					t.Errorf("%s: Err() = %v", kind, c.Err())
				}
			})
			c.Finish()
			cancel()
		}
	}
	checkQuiet(t, s)
}

func TestForeignBubble_X2_SleepEndsByItselfWhenClosedOutside(t *testing.T) {
	run := testkit.Outside(t)
	s := scope.New(nil, nil)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		over := make(chan error, 1)
		go func() { over <- s.Sleep(t.Context(), time.Hour) }()
		synctest.Wait()
		run(func() { s.Close() })
		if err := <-over; !errors.Is(err, scope.ErrClosed) || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
	s = scope.New(nil, nil)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		go func() {
			<-time.After(time.Second)
			s.Close()
		}()
		if err := s.Sleep(t.Context(), time.Hour); !errors.Is(err, scope.ErrClosed) || time.Since(began) != time.Second {
			t.Errorf("closed inside: %v after %v", err, time.Since(began))
		}
	})
}
