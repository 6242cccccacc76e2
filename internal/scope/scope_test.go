package scope_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestWaitDrivesAManualClock(t *testing.T) { // K-5
	m := clock.NewManual(start)
	s := scope.New(m, nil)
	ready := make(chan struct{})
	var fired []time.Duration
	s.AfterFunc(time.Second, func() { fired = append(fired, m.Now().Sub(start)) })
	s.AfterFunc(3*time.Second, func() { fired = append(fired, m.Now().Sub(start)); close(ready) })
	s.AfterFunc(5*time.Second, func() { t.Error("driven past the grant") })
	if err := s.Wait(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fired, []time.Duration{time.Second, 3 * time.Second}) || s.Time().Sub(start) != 3*time.Second {
		t.Errorf("fired at %v, clock at %v", fired, s.Time().Sub(start))
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	for name, clk := range map[string]clock.Clock{"system": clock.System(), "manual": clock.NewManual(start)} {
		s := scope.New(clk, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ready := make(chan struct{})
		if err := s.Wait(ctx, ready); err != context.Canceled { //nolint:errorlint // that very value
			t.Errorf("%s: %v", name, err)
		}
		close(ready)
		for range 100 { // a select alone would pick at random
			if err := s.Wait(ctx, ready); err != nil {
				t.Errorf("%s: %v although it is ready", name, err)
			}
		}
	}
}

func TestSleepLastsItsTime(t *testing.T) {
	m := clock.NewManual(start)
	s := scope.New(m, nil)
	if err := s.Sleep(t.Context(), 2*time.Second); err != nil || m.Now().Sub(start) != 2*time.Second || m.Pending() != 0 {
		t.Errorf("%v, %v", err, m)
	}
	for _, d := range []time.Duration{0, -1} {
		if err := s.Sleep(t.Context(), d); err != nil || m.Now().Sub(start) != 2*time.Second {
			t.Errorf("Sleep(%v): %v, %v", d, err, m)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.AfterFunc(time.Second, cancel)
	if err := s.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) || m.Now().Sub(start) != 3*time.Second || m.Pending() != 0 {
		t.Errorf("%v, %v", err, m)
	}
	if err := s.Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

func TestSleepEndsWithClose(t *testing.T) {
	t.Run("manual", func(t *testing.T) {
		m := clock.NewManual(start)
		s := scope.New(m, nil)
		s.AfterFunc(time.Second, func() { s.Close() })
		if err := s.Sleep(t.Context(), time.Hour); !errors.Is(err, scope.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if m.Now().Sub(start) != time.Second || m.Pending() != 0 {
			t.Errorf("%v", m)
		}
		for _, d := range []time.Duration{0, time.Second} {
			if err := s.Sleep(t.Context(), d); !errors.Is(err, scope.ErrClosed) || m.Now().Sub(start) != time.Second {
				t.Errorf("Sleep(%v) after Close: %v, %v", d, err, m)
			}
		}
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := scope.New(nil, nil)
			began := time.Now()
			go func() {
				time.Sleep(time.Second)
				s.Close()
			}()
			if err := s.Sleep(t.Context(), time.Hour); !errors.Is(err, scope.ErrClosed) || time.Since(began) != time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
}

func TestCloseRunsHooksOnce(t *testing.T) {
	s := scope.New(nil, nil)
	ran := map[string]int{}
	s.OnClose(func() { ran["kept"]++ })
	remove := s.OnClose(func() { ran["removed"]++ })
	remove()
	remove()
	s.OnClose(func() { // a hook may register and close
		s.OnClose(func() { ran["nested"]++ })
		if s.Close() {
			t.Error("Close was the first twice")
		}
	})
	if s.Closed() {
		t.Error("closed before Close")
	}
	if !s.Close() || s.Close() || !s.Closed() {
		t.Error("Close must report true once")
	}
	if ran["kept"] != 1 || ran["removed"] != 0 || ran["nested"] != 1 {
		t.Errorf("hooks ran %v", ran)
	}
}

func TestOnCloseAfterCloseRunsAtOnce(t *testing.T) {
	s := scope.New(nil, nil)
	s.Close()
	ran := 0
	s.OnClose(func() { ran++ })()
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
}

// A hook that is registered while the scope is closed runs once, whoever comes
// first.
func TestOnCloseAgainstCloseRunsOnce(t *testing.T) {
	for range 500 {
		s := scope.New(nil, nil)
		var ran, first atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { s.OnClose(func() { ran.Add(1) }) })
		}
		for range 2 {
			wg.Go(func() {
				runtime.Gosched()
				if s.Close() {
					first.Add(1)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 3 || first.Load() != 1 {
			t.Fatalf("%d of 3 hooks ran, %d were first to close", ran.Load(), first.Load())
		}
	}
}

func TestNowIsNeverZeroAndMatchesAt(t *testing.T) {
	m := clock.NewManual(start)
	for name, s := range map[string]*scope.Scope{"manual": scope.New(m, nil), "system": scope.New(nil, nil)} {
		if s.Now() <= 0 {
			t.Errorf("%s: Now() = %d", name, s.Now())
		}
		if at, now := s.At(s.Now()), s.Time(); at.Sub(now).Abs() > time.Minute {
			t.Errorf("%s: At(Now()) = %v, Time() = %v", name, at, now)
		}
		if s.Foreign() || s.Bubble() || s.System() != (name == "system") {
			t.Errorf("%s: foreign %v, bubble %v, system %v", name, s.Foreign(), s.Bubble(), s.System())
		}
	}
	s := scope.New(m, nil)
	if m.Advance(time.Second); s.Now() != int64(time.Second)+1 || !s.At(s.Now()).Equal(m.Now()) || s.Clock() != m {
		t.Errorf("Now() = %d, At %v", s.Now(), s.At(s.Now()))
	}
	synctest.Test(t, func(t *testing.T) {
		if s := scope.New(nil, nil); !s.Bubble() || s.Foreign() || s.Now() != 1 {
			t.Errorf("in a bubble: %v, %v, %d", s.Bubble(), s.Foreign(), s.Now())
		}
	})
}

func TestAfterSaturates(t *testing.T) { // T-12, TO-06
	for _, tc := range []struct {
		now  int64
		d    time.Duration
		want int64
	}{
		{1, 5, 6},
		{1, scope.Never, scope.Never},
		{1, scope.Never - 1, scope.Never},
		{1, scope.Never - 2, scope.Never - 1},
		{1 << 60, 2562047 * time.Hour, scope.Never},
		{-5, scope.Never, scope.Never - 5},
		{-1 << 60, time.Second, -1<<60 + int64(time.Second)},
		{0, scope.Never, scope.Never},
	} {
		if got := scope.After(tc.now, tc.d); got != tc.want {
			t.Errorf("After(%d, %d) = %d, want %d", tc.now, tc.d, got, tc.want)
		}
	}
}
