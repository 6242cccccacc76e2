package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/ratelimit"
)

func TestEnterAsyncTakesAFreePermit(t *testing.T) {
	p, m := newPassive(t, ratelimit.PerSecond(1))
	w := waitq.New(func() { t.Error("woken") })
	if entered, err := p.EnterAsync(t.Context(), time.Hour, 0, w); !entered || err != nil {
		t.Errorf("EnterAsync = %v, %v", entered, err)
	}
	if entered, err := p.EnterAsync(t.Context(), 0, 0, w); entered || retryAfter(t, err) != time.Second {
		t.Errorf("EnterAsync = %v, %v", entered, err)
	}
	if entered, err := p.EnterAsync(t.Context(), time.Second-1, 0, w); entered || retryAfter(t, err) != time.Second {
		t.Errorf("EnterAsync = %v, %v", entered, err)
	}
	if diff := cmp.Diff(counts{0, 0, 1, 2}, countsOf(p)); diff != "" || m.Pending() != 0 {
		t.Errorf("pending %d (-want +got)\n%s", m.Pending(), diff)
	}
}

// K-6: on a manual clock a grant wakes on the goroutine that moves the clock,
// in order, and a wake may use the limiter.
func TestGrantWakesOnTheAdvancingGoroutine(t *testing.T) {
	p, m := newPassive(t, ratelimit.PerSecond(1))
	drain(p)
	var order []int // not guarded: the race detector sees another goroutine
	for i := range 3 {
		w := waitq.New(func() {
			order = append(order, i)
			p.Snapshot()
			if p.TryAcquire() {
				t.Error("a permit was left")
			}
			m.Advance(0)
		})
		if entered, err := p.EnterAsync(t.Context(), time.Hour, 0, w); entered || err != nil {
			t.Fatal(entered, err)
		}
	}
	m.Advance(time.Second)
	if diff := cmp.Diff([]int{0}, order); diff != "" {
		t.Errorf("after 1 s (-want +got)\n%s", diff)
	}
	setRate(t, p, 1, time.Second, 3) // wakes both, on this goroutine
	if diff := cmp.Diff([]int{0, 1, 2}, order); diff != "" {
		t.Errorf("after the change (-want +got)\n%s", diff)
	}
}

// On the system clock a wake that takes its time delays neither the next one
// nor whoever changed the rate.
func TestSlowWakeDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newOn(t, clock.System(), ratelimit.PerSecond(1))
		drain(p)
		began := time.Now()
		woken := make(chan time.Duration, 4)
		for range 4 {
			w := waitq.New(func() {
				woken <- time.Since(began)
				time.Sleep(time.Hour)
			})
			if entered, err := p.EnterAsync(t.Context(), time.Hour, 0, w); entered || err != nil {
				t.Fatal(entered, err)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		setRate(t, p, 1, time.Second, 3)
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("SetRate took until %s", took)
		}
		var got []time.Duration
		for range 4 {
			got = append(got, <-woken)
		}
		want := []time.Duration{time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("woken at (-want +got)\n%s", diff)
		}
		time.Sleep(2 * time.Hour)
	})
}

// The refusal of a queued call is told with the context with which it came.
func TestRefusalOfAQueuedCallIsToldWithItsContext(t *testing.T) {
	p, _, m, l := newIn(t, ratelimit.PerSecond(1))
	drain(p)
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "call")
	w := newQueued(m)
	if entered, err := p.EnterAsync(ctx, time.Second, 0, w.Waiter); entered || err != nil {
		t.Fatal(entered, err)
	}
	setRate(t, p, 1, time.Minute, 1)
	<-w.woken
	if l.Len() != 1 || l.Contexts()[0].Value(key{}) != "call" || !errors.Is(w.Err(), ratelimit.ErrLimited) {
		t.Errorf("events %v, error %v", l.Events(), w.Err())
	}
}

// a listener that panics, or calls back, costs nobody a permit.
func TestListenerMayCallBackAndPanic(t *testing.T) {
	m := clock.NewManual(start)
	var p *ratelimit.Policy
	calls := 0
	s := scope.New(m, func(context.Context, policy.Event) {
		calls++
		p.Snapshot()
		p.TryAcquire()
		panic("listener")
	})
	var err error
	if p, err = ratelimit.NewIn(s, "b", config(ratelimit.PerSecond(1))); err != nil {
		t.Fatal(err)
	}
	drain(p)
	if got := retryAfter(t, p.Acquire(t.Context())); got != time.Second || calls != 2 {
		t.Errorf("RetryAfter %s, %d calls; want the event and the report of its panic", got, calls)
	}
	m.Advance(time.Second)
	if err := p.Acquire(t.Context()); err != nil {
		t.Error(err)
	}
}

// A waiter that has left is never woken, whatever comes after.
func TestLeftWaiterIsNeverWoken(t *testing.T) {
	p, s, m, _ := newIn(t, ratelimit.PerSecond(1))
	drain(p)
	w := waitq.New(func() { t.Error("woken after it had left") })
	if entered, err := p.EnterAsync(t.Context(), time.Hour, 0, w); entered || err != nil {
		t.Fatal(entered, err)
	}
	if !p.Leave(w) {
		t.Error("it did not leave")
	}
	setRate(t, p, 1, time.Millisecond, 5)
	m.Advance(time.Hour)
	s.Close()
	if w.State() != waitq.Left {
		t.Errorf("state %v", w.State())
	}
}
