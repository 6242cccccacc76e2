package wheel_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// Every entry point in a bubble of its own, which ends while the wheel ticks.
func TestWheelInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newReal()
		w.Use(160 * time.Millisecond)
		for range 100 {
			arm(w, new(call), time.Minute).finish()
		}
		synctest.Wait()
		if !w.Ticking() || w.Foreign() {
			t.Errorf("ticking %v, foreign %v", w.Ticking(), w.Foreign())
		}
		done := make(chan struct{}) // the bubble's own: only the bubble may close it
		began := time.Now()
		c := arm(w, &call{onExpire: func(*call) func() { return func() { close(done) } }}, 2*time.Second)
		deadline := w.Deadline(c)
		<-done
		late := time.Since(began) - 2*time.Second
		if late < 0 || late > 20*time.Millisecond || time.Now().Before(w.Time(deadline)) {
			t.Errorf("%v late, deadline %v", late, w.Time(deadline))
		}
		c = hold(w, new(call))
		w.SetShortest(time.Second)
		n := 0
		w.Each(func(e *call, slot *atomic.Pointer[call]) {
			if slot.CompareAndSwap(e, nil) {
				n++
			}
		})
		if n != 1 || w.Pending() != 0 || c.slot.Load() != nil {
			t.Errorf("Each found %d, %d pending", n, w.Pending())
		}
		for range 100 {
			arm(w, new(call), time.Minute).finish()
		}
	})
}

// A wheel made outside, in a bubble: noticed, and no timer is made there.
func TestWheelOfOutsideInABubble(t *testing.T) {
	w := newReal()
	synctest.Test(t, func(t *testing.T) {
		if !w.Foreign() {
			t.Error("not noticed")
		}
		if start, _ := w.Start(int64(time.Second)); start != wheel.Refused {
			t.Errorf("start %d", start)
		}
		time.Sleep(time.Hour)
	})
	if w.Foreign() {
		t.Error("foreign where it was made")
	}
}

// The other way round: the bubble has taken the wheel's timers with it, set or
// not. To reset one of them would be a fatal error.
func TestWheelOfAnEndedBubble(t *testing.T) { // architecture, wheel 7
	for _, pending := range []bool{true, false} {
		for _, limit := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond} {
			var w *testWheel
			synctest.Test(t, func(*testing.T) {
				w = newReal()
				w.Use(20 * time.Millisecond)
				for range 3 { // the chain has its own timer then
					arm(w, new(call), 20*time.Millisecond)
					time.Sleep(15 * time.Millisecond)
				}
				if pending {
					arm(w, new(call), time.Hour)
				}
				time.Sleep(time.Second)
			})
			if w.Ticking() {
				t.Fatal("it should be quiet")
			}
			fire := make(chan struct{})
			arm(w, &call{onExpire: func(*call) func() { close(fire); return nil }}, limit)
			<-fire
			if w.Gen() == 0 {
				t.Error("the chain was not given up")
			}
		}
	}
}

// A bubble that has slept for longer than the years since 2000 is past the wheel,
// which takes it for its own place. The bubble's time must not become the wheel's:
// those outside would not live to see it.
func TestWheel_X2_ABubblesTimeIsNeverTaken(t *testing.T) { // T-5
	w := newReal()
	w.Use(20 * time.Millisecond)
	waits := hold(w, new(call))
	synctest.Test(t, func(*testing.T) {
		time.Sleep(60 * 365 * 24 * time.Hour)
		for range 100 { // enough to have it tick
			arm(w, new(call), time.Second).finish()
		}
		arm(w, new(call), time.Second)
		time.Sleep(time.Minute)
	})
	if w.Ticking() {
		t.Error("it ticks at the bubble's time")
	}
	for _, limit := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond} {
		for !w.Ticking() { // a ticking wheel counts on its own time most
			w.WantTicks()
			runtime.Gosched()
		}
		fire := make(chan struct{})
		began := time.Now()
		arm(w, &call{onExpire: func(*call) func() { close(fire); return nil }}, limit)
		<-fire
		if early := limit - time.Since(began); early > 0 {
			t.Errorf("%v early", early)
		}
	}
	waits.finish()
}
