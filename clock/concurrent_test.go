package clock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
)

func TestManualAdvance_K4_ConcurrentCallsAddUp(t *testing.T) {
	const goroutines, calls = 8, 200
	m := clock.NewManual(start)
	var fired atomic.Int64
	var want time.Duration
	for i := range goroutines * calls {
		m.AfterFunc(time.Duration(i)*5*time.Microsecond, func() { fired.Add(1) })
		want += time.Duration(i % 11)
	}
	want *= time.Microsecond
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for c := range calls {
				m.Advance(time.Duration((g*calls+c)%11) * time.Microsecond)
			}
		})
	}
	wg.Wait()
	checkClock(t, m, want, m.Pending())
	if due := int64(want/(5*time.Microsecond)) + 1; fired.Load() != min(due, goroutines*calls) {
		t.Errorf("%d fired, want %d", fired.Load(), due)
	}
}

// Both calls are held inside a callback when they overlap: no luck involved.
func TestManualAdvance_K4_OverlappingCallsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewManual(start)
		hold := make(chan struct{})
		m.AfterFunc(time.Second, func() { <-hold })
		m.AfterFunc(2*time.Second, func() { <-hold })
		var wg sync.WaitGroup
		wg.Go(func() { m.Advance(5 * time.Second) })
		synctest.Wait()
		wg.Go(func() { m.Advance(10 * time.Second) })
		synctest.Wait()
		m.Advance(20 * time.Second) // all of it while both are held
		close(hold)
		wg.Wait()
		checkClock(t, m, 35*time.Second, 0)
	})
}

func TestManualAdvance_K4_NestedCallsAddUp(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.AfterFunc(2*time.Second, func() {
		m.AfterFunc(time.Second, d.noting("armed inside"))
		m.Advance(500 * time.Millisecond)
		d.note("inner done")
	})
	m.Advance(5 * time.Second)
	d.check(t, "inner done@2.5s", "armed inside@3s")
	checkClock(t, m, 5500*time.Millisecond, 0)
}

// What a dependency sleeps while the test advances is part of the advance.
func TestManualAdvance_NestedSleepIsNotAdded(t *testing.T) {
	m := clock.NewManual(start)
	m.AfterFunc(2*time.Second, func() {
		if err := m.Sleep(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
	})
	m.Advance(5 * time.Second)
	checkClock(t, m, 5*time.Second, 0)
}

// A panic ends its own Advance; the other one still covers all of its distance.
func TestManualAdvance_PanicDoesNotShortenAnother(t *testing.T) {
	m := clock.NewManual(start)
	m.AfterFunc(2*time.Second, func() {
		m.AfterFunc(time.Second, func() { panic("inner") })
		if recovered(func() { m.Advance(2 * time.Second) }) == nil {
			t.Error("no panic")
		}
	})
	m.Advance(5 * time.Second)
	checkClock(t, m, 6*time.Second, 0)
}

func TestManualNow_K4_NeverGoesBack(t *testing.T) {
	m := clock.NewManual(start)
	var done atomic.Bool
	var readers, movers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for last := m.Now(); !done.Load(); {
				now := m.Now()
				if now.Before(last) {
					t.Errorf("back from %v to %v", last, now)
					return
				}
				last = now
				runtime.Gosched()
			}
		})
	}
	for g := range 4 {
		movers.Go(func() {
			ctx := t.Context()
			for i := range 200 {
				at := m.Now()
				m.AfterFunc(time.Duration(i%7), func() {
					if m.Now().Before(at) {
						t.Errorf("callback before it was armed")
					}
				})
				switch (g + i) % 4 {
				case 0:
					m.Advance(time.Duration(i % 13))
				case 1:
					m.Set(at.Add(time.Duration(i%5) - 2))
				case 2:
					_ = m.Sleep(ctx, time.Duration(i%3))
				case 3:
					_ = m.Drive(ctx, func() bool { return m.Now().After(at) || m.Pending() == 0 })
				}
			}
		})
	}
	movers.Wait()
	done.Store(true)
	readers.Wait()
	m.Advance(time.Second)
	if m.Pending() != 0 {
		t.Error(m)
	}
}

// Every timer is either called or stopped, never both and never neither.
func TestManualStop_RacesWithFiring(t *testing.T) {
	m := clock.NewManual(start)
	var called, prevented atomic.Int64
	var wg sync.WaitGroup
	const rounds = 2000
	wg.Go(func() {
		for range rounds {
			if !m.AfterFunc(1, func() { called.Add(1) }).Stop() {
				continue
			}
			prevented.Add(1)
		}
	})
	wg.Go(func() {
		for range rounds {
			m.Advance(1)
		}
	})
	wg.Wait()
	m.Advance(1)
	if got := called.Load() + prevented.Load(); got != rounds {
		t.Errorf("%d called + %d prevented of %d", called.Load(), prevented.Load(), rounds)
	}
}

func TestManualWait_K5_ParksWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewManual(start)
		ready := make(chan struct{})
		res := async(func() error { return m.Wait(t.Context(), ready) })
		synctest.Wait()
		if err := m.AwaitSleepers(t.Context(), 1); err != nil {
			t.Error(err)
		}
		checkClock(t, m, 0, 0)
		m.Advance(time.Second) // no business of Wait's
		synctest.Wait()
		checkClock(t, m, time.Second, 0)

		// An event armed by another goroutine sets it going, and it parks again.
		m.AfterFunc(2*time.Second, func() {})
		synctest.Wait()
		checkClock(t, m, 3*time.Second, 0)
		m.AfterFunc(time.Second, func() { close(ready) })
		if err := <-res; err != nil {
			t.Error(err)
		}
		checkClock(t, m, 4*time.Second, 0)
	})
}

func TestManualWait_K5_ParkedEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewManual(start)
		ctx, cancel := context.WithCancel(t.Context())
		res := async(func() error { return m.Wait(ctx, nil) })
		synctest.Wait()
		cancel()
		if err := <-res; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		checkClock(t, m, 0, 0)
	})
}

func TestManualSleep_SeesAContextThatAnotherGoroutineEnds(t *testing.T) {
	m := clock.NewManual(start)
	ctx, cancel := context.WithCancel(t.Context())
	m.AfterFunc(time.Second, func() {
		done := make(chan struct{})
		go func() { defer close(done); cancel() }()
		<-done
	})
	if err := m.Sleep(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	checkClock(t, m, time.Second, 0)
}

func TestManualDrive_ParksAndLooksAgain(t *testing.T) {
	for name, change := range map[string]func(m *clock.Manual, flag *atomic.Bool){
		"event armed": func(m *clock.Manual, flag *atomic.Bool) {
			m.AfterFunc(time.Second, func() { flag.Store(true) })
		},
		"clock moved": func(m *clock.Manual, flag *atomic.Bool) {
			flag.Store(true)
			m.Advance(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clock.NewManual(start)
				var flag atomic.Bool
				res := async(func() error { return m.Drive(t.Context(), flag.Load) })
				synctest.Wait()
				change(m, &flag)
				if err := <-res; err != nil {
					t.Error(err)
				}
			})
		})
	}
	// The clock has moved to the event before the condition holds, and does not
	// move after it.
	t.Run("event called elsewhere", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := clock.NewManual(start)
			var flag atomic.Bool
			hold := make(chan struct{})
			m.AfterFunc(time.Second, func() { <-hold; flag.Store(true) })
			go m.Advance(time.Second)
			synctest.Wait()
			res := async(func() error { return m.Drive(t.Context(), flag.Load) })
			synctest.Wait()
			close(hold)
			if err := <-res; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("context ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := clock.NewManual(start)
			ctx, cancel := context.WithCancel(t.Context())
			m.AfterFunc(time.Second, func() {})
			looks := 0
			res := async(func() error { return m.Drive(ctx, func() bool { looks++; return false }) })
			synctest.Wait()
			if looks != 2 { // parked: its own event is no reason to look a third time
				t.Errorf("%d looks for one event", looks)
			}
			cancel()
			if err := <-res; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	})
}

// A rush of waits, granted in the end: nobody is lost and nobody moves the clock.
func TestManualWait_RushOfParkedGoroutines(t *testing.T) {
	for _, m := range []*clock.Manual{clock.NewManual(start), clock.NewManual(start).Passive()} {
		const n = 2000
		ready := make(chan struct{})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := m.Wait(t.Context(), ready); err != nil {
					t.Error(err)
				}
			})
		}
		if err := m.AwaitSleepers(t.Context(), n); err != nil {
			t.Error(err)
		}
		checkClock(t, m, 0, 0)
		close(ready)
		wg.Wait()
	}
}

func TestManualPassive_OneMoverDecidesForAll(t *testing.T) {
	const n = 32
	m := clock.NewManual(start).Passive()
	var interrupted atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer m.AfterFunc(2*time.Second, cancel).Stop()
			if m.Sleep(ctx, 5*time.Second) != nil {
				interrupted.Add(1)
			}
		})
	}
	mustAwait(t, m.AwaitSleepers(t.Context(), n))
	m.Advance(2*time.Second - 1)
	if got := interrupted.Load(); got != 0 {
		t.Errorf("%d interrupted early", got)
	}
	m.Advance(1)
	wg.Wait()
	if got := interrupted.Load(); got != n {
		t.Errorf("%d interrupted, want %d", got, n)
	}
	checkClock(t, m, 2*time.Second, 0)
}
