package ratelimit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/ratelimit"
)

// A higher burst lets those go on who wait, and not the next to come in the place
// of one who has left but is not out of the queue yet.
func TestSetRate_L5_ARaiseIsNotForThePlaceOfWhoHasLeft(t *testing.T) {
	p, m := newPassive(t, ratelimit.PerSecond(1))
	drain(p)
	gone, next := enqueue(t, p, m, time.Minute), enqueue(t, p, m, time.Minute)
	if !gone.Waiter.Leave() { // the instant before Policy.Leave has the lock
		t.Fatal("it did not leave")
	}
	setRate(t, p, 1, time.Second, 3)
	if diff := cmp.Diff([]time.Duration{-1, 0}, dues(gone, next)); diff != "" {
		t.Errorf("woken at (-want +got)\n%s", diff)
	}
	if n := drain(p); n != 0 {
		t.Errorf("%d permits came from nowhere", n)
	}
	if got := nextWait(t, p); got != time.Second {
		t.Errorf("the next waits %s", got)
	}
}

// script is a clock that says, one reading after the other, how far it is from
// the manual clock; then it agrees with it.
type script struct {
	*clock.Manual
	offsets []time.Duration
}

func (s *script) Now() time.Time {
	if len(s.offsets) == 0 {
		return s.Manual.Now()
	}
	d := s.offsets[0]
	s.offsets = s.offsets[1:]
	return s.Manual.Now().Add(d)
}

// A call that may not wait does not, also if the clock goes back between its two
// readings and makes a permit that was there one that comes.
func TestNoWait_L2_AlsoIfTheClockGoesBackMeanwhile(t *testing.T) {
	clk := &script{Manual: clock.NewManual(start).Passive()}
	p := newOn(t, clk, ratelimit.PerSecond(10), ratelimit.Burst(1))
	drain(p)
	enqueue(t, p, clk, time.Minute) // due at 100 ms
	clk.offsets = []time.Duration{250 * time.Millisecond, 0}
	w := newQueued(clk)
	entered, err := p.EnterAsync(t.Context(), 0, 0, w.Waiter)
	if entered || !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("got %v, %v; want a refusal", entered, err)
	}
}

// What a snapshot says is in store is what the next calls get, also when the clock
// has caught up and no call has noticed.
func TestSnapshot_L6_WhenTheClockHasCaughtUp(t *testing.T) {
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(10))
	drain(p)
	clk.step(-8 * time.Hour)
	drain(p)
	clk.step(8 * time.Hour)
	if s, n := p.Snapshot(), drain(p); s.Available != n {
		t.Errorf("%d available, but %d were taken", s.Available, n)
	}
}

// A listener that ends its goroutine keeps nobody from hearing of its refusal.
func TestRefusal_L5_AListenerThatEndsTheGoroutineStrandsNobody(t *testing.T) {
	var told, woken atomic.Int32
	s := scope.New(clock.NewManual(start).Passive(), func(context.Context, policy.Event) {
		told.Add(1)
		runtime.Goexit()
	})
	p, err := ratelimit.NewIn(s, "b", config(ratelimit.PerSecond(1)))
	if err != nil {
		t.Fatal(err)
	}
	drain(p)
	var all sync.WaitGroup
	for range 3 {
		all.Add(1)
		w := waitq.New(func() { woken.Add(1); all.Done() })
		if entered, err := p.EnterAsync(t.Context(), 3*time.Second, 0, w); entered || err != nil {
			t.Fatal(entered, err)
		}
	}
	all.Go(func() {
		_ = p.SetRate(1, time.Hour, 1) // does not return
	})
	all.Wait()
	if told.Load() != 3 || woken.Load() != 3 {
		t.Errorf("%d told, %d woken; want 3", told.Load(), woken.Load())
	}
}

// G-7: what SetRate has set stays unless Reconfigure brings another rate or
// another burst than before.
func TestReconfigure_G7_KeepsARateSetAtRunTime(t *testing.T) {
	p, _ := newManual(t, ratelimit.PerSecond(5), ratelimit.Burst(10))
	setRate(t, p, 600, time.Minute, 7)
	steps := []struct{ give, want ratelimit.Config }{
		{config(ratelimit.PerSecond(5), ratelimit.Burst(10), ratelimit.MaxWait(1)), ratelimit.Config{Limit: 600, Period: time.Minute, Burst: 7, MaxWait: 1}},
		{config(ratelimit.PerSecond(5), ratelimit.Burst(11)), ratelimit.Config{Limit: 600, Period: time.Minute, Burst: 11}},
		{config(ratelimit.Per(5, time.Minute), ratelimit.Burst(11)), ratelimit.Config{Limit: 5, Period: time.Minute, Burst: 11}},
	}
	for i, step := range steps {
		if err := p.Reconfigure(step.give); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, p.Config()); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", i, diff)
		}
	}
}
