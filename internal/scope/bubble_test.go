package scope_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/internal/waitq"
)

// If this fails with a new version of Go, the text that nameIn reads has changed.
func TestBubble_X2_EachHasItsName(t *testing.T) {
	seen := map[uint64]bool{0: true, scope.Nameless: true}
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			name := scope.Here()
			if seen[name] || !scope.In(name) {
				t.Errorf("here is %d", name)
			}
			seen[name] = true
			timer, child := make(chan uint64), make(chan uint64)
			time.AfterFunc(time.Hour, func() { timer <- scope.Here() })
			go func() { child <- scope.Here() }()
			if a, b := <-child, <-timer; a != name || b != name {
				t.Errorf("a goroutine is in %d, a timer in %d, both should be in %d", a, b, name)
			}
		})
	}
	for name := range seen {
		if out := scope.In(name); out != (name == 0) {
			t.Errorf("outside, In(%d) is %v", name, out)
		}
	}
}

func TestBubble_X2_ATextThatSaysNothingIsNoName(t *testing.T) {
	for text, want := range map[string]uint64{
		"goroutine 7 [running, synctest bubble 3]:\nf()":          3,
		"goroutine 7 [running, synctest bubble 12, locked]:":      12,
		"goroutine 7 [running]:\nsynctest bubble 3":               scope.Nameless,
		"goroutine 7 [running, synctest bubble x]:":               scope.Nameless,
		"goroutine 7 [running, synctest bubble 0]:":               scope.Nameless,
		"goroutine 7 [running, synctest bubble 99999999999999999": 99999999999999999,
		"": scope.Nameless,
	} {
		if got := scope.NameIn([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if scope.In(scope.Nameless) {
		t.Error("somebody is in a bubble without a name")
	}
}

func TestBubble_X2_AScopeThatWasMadeInAnOldOneIsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		s := scope.New(nil, nil)
		s.Share()
		if !s.Bubble() || s.Foreign() || s.Visited() != 0 {
			t.Errorf("bubble %v, foreign %v", s.Bubble(), s.Foreign())
		}
		c := callctx.New(t.Context(), s.NewPlan(time.Second, errLimit, false))
		s.Arm(c, s.Level(time.Second))
		began := time.Now()
		<-c.Done()
		if took := time.Since(began); took != time.Second || c.Finish() != callctx.Expired {
			t.Errorf("ended after %v", took)
		}
	})
}

// Its clock is past the scope's, as nobody expects of a bubble.
func TestForeignBubble_X2_AnOldOneIsForeign(t *testing.T) {
	s := scope.New(nil, nil)
	s.Share()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(60 * 365 * 24 * time.Hour)
		if now := s.Now(); now > 0 || !s.Foreign() || s.Visited() == 0 {
			t.Fatalf("Now() = %d, foreign %v", now, s.Foreign())
		}
		if at := s.At(s.Now()); !at.Equal(time.Now()) {
			t.Errorf("At(Now()) = %v at %v", at, time.Now())
		}
		c := callctx.New(t.Context(), s.NewPlan(time.Second, errLimit, false))
		s.Arm(c, s.Level(time.Second))
		began := time.Now()
		if d, ok := c.Deadline(); !ok || !d.Equal(began.Add(time.Second)) {
			t.Errorf("Deadline() = %v at %v", d, began)
		}
		<-c.Done()
		if took := time.Since(began); took != time.Second || c.Finish() != callctx.Expired {
			t.Errorf("ended after %v", took)
		}
	})
	checkQuiet(t, s)
}

// A scope is closed, or a waiter is settled, outside or in another bubble. All of
// these end the process if a channel or a timer is touched.
func TestForeignBubble_X2_TwoBubbles(t *testing.T) {
	for _, where := range []string{"outside", "in another"} {
		t.Run(where, func(t *testing.T) {
			run := testkit.Outside(t)
			if out := run; where == "in another" {
				run = func(f func()) { out(func() { synctest.Test(t, func(*testing.T) { f() }) }) }
			}
			s := scope.New(nil, nil)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				slept := make(chan error)
				go func() { slept <- s.Sleep(t.Context(), time.Hour) }()

				timer := s.AfterFunc(time.Hour, func() {})

				granted, ready := waitq.NewChan()
				s.Lodge(granted, nil)
				left := waitq.New(func() { t.Error("one who had left was woken") })
				s.Lodge(left, nil)

				over := make(chan struct{}) // not the bubble's business
				g := scope.NewGuest(s.Visited(), func() bool {
					select {
					case <-over:
						return true
					default:
						return false
					}
				})
				if !g.Of(s.Visited()) || g.Of(0) {
					t.Error("the guest does not know his bubble")
				}

				c := callctx.New(t.Context(), s.NewPlan(time.Hour, errLimit, false))
				s.Arm(c, nil)
				done := c.Done()

				synctest.Wait()
				run(func() {
					s.Close()
					if timer.Stop() {
						t.Error("a bubble's timer was stopped from elsewhere")
					}
					granted.Grant()
					granted.Wake()
					left.Leave()
					g.Wake()
					c.Cancel(callctx.Canceled)
				})
				<-ready
				if took := time.Since(began); took != time.Millisecond {
					t.Errorf("granted after %v", took)
				}
				close(over)
				<-g.Ready
				if err := <-slept; !errors.Is(err, scope.ErrClosed) {
					t.Errorf("Sleep = %v", err)
				}
				<-done
				c.Finish()
			})
		})
	}
}

func TestForeignBubble_X2_WhoIsInTheSameOneWakesAtOnce(t *testing.T) {
	s := scope.New(nil, nil)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var looks atomic.Int64
		w, ready := waitq.NewChan()
		s.Lodge(w, func() { looks.Add(1) })
		time.AfterFunc(time.Hour+time.Microsecond, func() {
			w.Grant()
			w.Wake()
		})
		<-ready
		if took := time.Since(began); took != time.Hour+time.Microsecond {
			t.Errorf("woken after %v", took)
		}
		if n := looks.Load(); n < 4096 || n > 40_000 { // each millisecond for four seconds, then less often
			t.Errorf("looked %d times", n)
		}
	})
	w := waitq.New(func() {})
	s.Lodge(w, func() { t.Error("looked at outside") })
	w.Grant()
	w.Wake()
}

// Parallel tests, each in its bubble, that all use one scope.
func TestForeignBubble_X2_ManyAtOnce(t *testing.T) {
	s := scope.New(nil, nil)
	s.Share()
	plan, lv := s.NewPlan(10*time.Millisecond, errLimit, false), s.Level(10*time.Millisecond)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				synctest.Test(t, func(t *testing.T) {
					var in sync.WaitGroup
					for i := range 10 {
						in.Go(func() {
							c := callctx.New(context.Background(), plan)
							s.Arm(c, lv)
							if i%2 == 0 {
								<-c.Done()
							}
							c.Finish()
							if err := s.Sleep(context.Background(), time.Second); err != nil {
								t.Error(err)
							}
						})
					}
					in.Wait()
				})
			}
		})
	}
	wg.Wait()
	checkQuiet(t, s)
}

func TestNow_FarClocksNeitherWrapNorStop(t *testing.T) { // TO-06, T-12
	for _, tc := range []struct {
		name string
		move func(m *clock.Manual)
	}{
		{"the zero clock, set", func(m *clock.Manual) { m.Set(start) }},
		{"by the longest step", func(m *clock.Manual) { m.Advance(1<<63 - 1) }},
		{"in the time of the zero clock", func(m *clock.Manual) { m.Advance(time.Hour) }},
	} {
		var m clock.Manual
		s := scope.New(&m, nil)
		first := s.Now()
		tc.move(&m)
		for range 3 {
			now := s.Now()
			if now <= first || !s.At(now).Equal(m.Now()) {
				t.Errorf("%s: Now() = %d after %d, At = %v, the clock is at %v", tc.name, now, first, s.At(now), m.Now())
			}
			due := scope.After(now, 2*time.Second)
			if at := s.At(due); !at.Equal(m.Now().Add(2 * time.Second)) {
				t.Errorf("%s: in 2 s it is %v, now %v", tc.name, at, m.Now())
			}
			first = now
			m.Advance(time.Second)
			if took := s.Now() - now; took != int64(time.Second) {
				t.Errorf("%s: a second lasts %v", tc.name, time.Duration(took))
			}
		}
	}
}

// A clock that may show anything.
type anyClock struct {
	clock.Clock
	now time.Time
}

func (c *anyClock) Now() time.Time { return c.now }

func TestNow_SaturatesAtBothEnds(t *testing.T) { // TO-06
	clk := &anyClock{clock.System(), start}
	s := scope.New(clk, nil)
	last := s.Now()
	for _, years := range []int{100, 200, 290, 300, 1000, 5000} {
		clk.now = start.AddDate(years, 0, 0)
		now := s.Now()
		if now < last || now == scope.Never {
			t.Errorf("%d years on: %d after %d", years, now, last)
		}
		last = now
	}
	last = 1
	for _, years := range []int{100, 200, 300, 1000} {
		clk.now = start.AddDate(-years, 0, 0)
		now := s.Now()
		if now > last || now == 0 {
			t.Errorf("%d years back: %d after %d", years, now, last)
		}
		last = now
	}
}
