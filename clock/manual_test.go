package clock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const maxDuration = time.Duration(math.MaxInt64)

// since is how far the clock has come.
func since(m *clock.Manual) time.Duration { return m.Now().Sub(start) }

// diary records what fired and where the clock stood.
type diary struct {
	m       *clock.Manual
	entries []string
}

func (d *diary) note(name string) { d.entries = append(d.entries, fmt.Sprint(name, "@", since(d.m))) }

func (d *diary) noting(name string) func() { return func() { d.note(name) } }

func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.entries); diff != "" {
		t.Errorf("fired (-want +got):\n%s", diff)
	}
}

func checkClock(t *testing.T, m *clock.Manual, at time.Duration, pending int) {
	t.Helper()
	if got := since(m); got != at {
		t.Errorf("clock at %v, want %v", got, at)
	}
	if got := m.Pending(); got != pending {
		t.Errorf("%d pending, want %d", got, pending)
	}
}

// recovered is the value that f panics with, nil if it returns.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestManualAdvance_FiresInOrderOfDeadlines(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	for _, s := range []time.Duration{5, 1, 4, 2, 3, 7} {
		m.AfterFunc(s*time.Second, d.noting("e"))
	}
	if at, ok := m.Next(); !ok || at.Sub(start) != time.Second {
		t.Errorf("Next() = %v, %v", at, ok)
	}
	m.Advance(6*time.Second - 1)
	d.check(t, "e@1s", "e@2s", "e@3s", "e@4s", "e@5s")
	checkClock(t, m, 6*time.Second-1, 1)
	m.Advance(time.Second)
	checkClock(t, m, 7*time.Second-1, 1)
	m.Advance(1)
	checkClock(t, m, 7*time.Second, 0)
	if _, ok := m.Next(); ok {
		t.Error("Next() found an event in an empty queue")
	}
}

func TestManualAdvance_K3_FiresOnTheAdvancingGoroutine(t *testing.T) {
	m := clock.NewManual(start)
	done := false // plain: the race detector proves that it is this goroutine
	m.AfterFunc(2*time.Second, func() { done = true })
	m.Advance(5 * time.Second)
	if !done {
		t.Error("due, but not done when Advance returned")
	}
}

func TestManualAdvance_K3_TiesFireInArmingOrder(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	var want []string
	for i := range 50 {
		name := strconv.Itoa(i)
		m.AfterFunc(time.Second, d.noting(name))
		want = append(want, name+"@1s")
	}
	m.Advance(time.Second)
	d.check(t, want...)
}

func TestField_CL01_CallbackUsesItsClock(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	stopped := m.AfterFunc(20*time.Second, d.noting("stopped"))
	var again func()
	again = func() {
		d.note("a")
		stopped.Stop()
		if len(d.entries) == 1 {
			m.AfterFunc(5*time.Second, d.noting("b"))
			m.AfterFunc(10*time.Second, again)
		}
	}
	m.AfterFunc(10*time.Second, again)
	m.Advance(30 * time.Second)
	d.check(t, "a@10s", "b@15s", "a@20s")
	checkClock(t, m, 30*time.Second, 0)
}

func TestManualCallback_K3_MayUseEveryMethod(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.AfterFunc(time.Second, func() {
		d.note("begin")
		m.AfterFunc(0, d.noting("now"))
		m.AfterFunc(2*time.Second, d.noting("later"))
		m.Set(start.Add(2 * time.Second))
		if err := m.Sleep(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
		m.AfterFunc(time.Second, d.noting("driven"))
		if err := m.Drive(t.Context(), func() bool { return m.Pending() == 0 }); err != nil {
			t.Error(err)
		}
		if _, ok := m.Next(); ok {
			t.Error("pending after Drive")
		}
		d.note("end")
	})
	m.Advance(time.Minute)
	d.check(t, "begin@1s", "now@1s", "later@3s", "driven@4s", "end@4s")
	checkClock(t, m, time.Minute, 0)
}

func TestManualAfterFunc_ZeroAndNegativeAreDueNow(t *testing.T) {
	for name, move := range map[string]func(*clock.Manual, context.Context) error{
		"Advance(0)": func(m *clock.Manual, _ context.Context) error { m.Advance(0); return nil },
		"Set(now)":   func(m *clock.Manual, _ context.Context) error { m.Set(m.Now()); return nil },
		"Sleep(1)":   func(m *clock.Manual, ctx context.Context) error { return m.Sleep(ctx, 1) },
		"Drive": func(m *clock.Manual, ctx context.Context) error {
			return m.Drive(ctx, func() bool { return m.Pending() == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := clock.NewManual(start)
			d := &diary{m: m}
			m.AfterFunc(0, d.noting("zero"))
			m.AfterFunc(-time.Hour, d.noting("negative"))
			m.AfterFunc(math.MinInt64, d.noting("least"))
			if len(d.entries) != 0 || m.Pending() != 3 {
				t.Errorf("before anything moved the clock: %v, %v", d.entries, m)
			}
			if err := move(m, t.Context()); err != nil {
				t.Error(err)
			}
			d.check(t, "zero@0s", "negative@0s", "least@0s")
		})
	}
}

func TestManualAdvance_NegativeDoesNothing(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.AfterFunc(0, d.noting("due"))
	m.Advance(-time.Second)
	m.Advance(math.MinInt64)
	d.check(t)
	checkClock(t, m, 0, 1)
}

func TestManualSet_MovesForwardOnly(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.AfterFunc(time.Second, d.noting("a"))
	m.AfterFunc(3*time.Second, d.noting("b"))
	m.Set(start.Add(2 * time.Second))
	d.check(t, "a@1s")
	m.Set(start)
	m.Set(time.Time{})
	checkClock(t, m, 2*time.Second, 1)
}

func TestManualAfterFunc_FarDeadlinesNeverFireEarly(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	m.Advance(time.Hour)
	m.AfterFunc(maxDuration, d.noting("far"))
	m.AfterFunc(maxDuration-1, d.noting("nearly"))
	m.AfterFunc(maxDuration/2, d.noting("half"))
	at, ok := m.Next()
	if !ok || !at.After(m.Now()) {
		t.Fatalf("Next() = %v, %v", at, ok)
	}
	m.Advance(maxDuration/2 - 1)
	d.check(t)
	m.Advance(1)
	if len(d.entries) != 1 || m.Pending() != 2 {
		t.Errorf("at half the longest delay: %v, %v", d.entries, m)
	}
	m.Advance(maxDuration - maxDuration/2 - 1)
	if len(d.entries) != 2 || m.Pending() != 1 {
		t.Errorf("one nanosecond before the end of the longest delay: %v, %v", d.entries, m)
	}
	m.Advance(1)
	if len(d.entries) != 3 || m.Pending() != 0 {
		t.Errorf("at the end of the longest delay: %v, %v", d.entries, m)
	}
}

// More than a time.Duration away from where the clock stood: no difference of two
// times may be taken on the way.
func TestManualSet_K4_GoesFartherThanADurationReaches(t *testing.T) {
	var m clock.Manual
	fired := 0
	m.AfterFunc(maxDuration, func() { fired++ })
	m.AfterFunc(time.Second, func() { m.Set(start) }) // in an Advance: it adds nothing to that
	m.Advance(time.Minute)
	checkClock(t, &m, 0, 0)
	ctx, _ := timeout(t, &m, 2*time.Second)
	if err := m.Sleep(ctx, 5*time.Second); !errors.Is(err, context.Canceled) || fired != 1 {
		t.Errorf("Sleep: %v, %d fired", err, fired)
	}
	checkClock(t, &m, 2*time.Second, 0)
	m.Advance(maxDuration)
	if far := m.Now(); !far.Add(-maxDuration).Equal(start.Add(2 * time.Second)) {
		t.Errorf("wrapped or saturated: %v", far)
	}
}

// The last second that a time.Time can hold: every sum saturates there.
func TestManualAfterFunc_TimeNeverWraps(t *testing.T) {
	end := time.Unix(math.MaxInt64-62135596800, 0)
	m := clock.NewManual(end)
	fired := 0
	m.AfterFunc(maxDuration, func() { fired++ })
	m.AfterFunc(2*time.Second, func() { fired++ })
	m.Advance(1)
	if fired != 0 || m.Now().Before(end) {
		t.Errorf("%d fired, clock at %v", fired, m.Now())
	}
	for range 3 {
		m.Advance(maxDuration)
		if m.Now().Before(end) {
			t.Errorf("wrapped to %v", m.Now())
		}
	}
	if fired != 2 || m.Pending() != 0 {
		t.Errorf("%d fired, %v", fired, m)
	}
}

func TestManualStop_ReportsWhetherItPreventedTheCall(t *testing.T) {
	m := clock.NewManual(start)
	d := &diary{m: m}
	stopped := m.AfterFunc(time.Second, d.noting("stopped"))
	fired := m.AfterFunc(time.Second, d.noting("fired"))
	var itself clock.Timer
	itself = m.AfterFunc(time.Second, func() {
		if itself.Stop() {
			t.Error("Stop in its own callback: true")
		}
	})
	if !stopped.Stop() {
		t.Error("first Stop: false")
	}
	if stopped.Stop() {
		t.Error("second Stop: true")
	}
	checkClock(t, m, 0, 2)
	m.Advance(time.Second)
	d.check(t, "fired@1s")
	if fired.Stop() {
		t.Error("Stop after the call: true")
	}
}

func TestManualCallback_PanicLeavesTheClockUsable(t *testing.T) {
	for name, move := range map[string]func(*clock.Manual, context.Context){
		"Advance": func(m *clock.Manual, _ context.Context) { m.Advance(5 * time.Second) },
		"Set":     func(m *clock.Manual, _ context.Context) { m.Set(start.Add(5 * time.Second)) },
		"Sleep":   func(m *clock.Manual, ctx context.Context) { _ = m.Sleep(ctx, 5*time.Second) },
		"Drive":   func(m *clock.Manual, ctx context.Context) { _ = m.Drive(ctx, func() bool { return false }) },
		"Wait":    func(m *clock.Manual, ctx context.Context) { _ = m.Wait(ctx, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m := clock.NewManual(start)
			d := &diary{m: m}
			m.AfterFunc(time.Second, func() { panic("callback") })
			m.AfterFunc(time.Second, d.noting("tie"))
			m.AfterFunc(2*time.Second, d.noting("later"))
			if v := recovered(func() { move(m, t.Context()) }); v != "callback" {
				t.Errorf("recovered %v", v)
			}
			checkClock(t, m, time.Second, 2)
			m.Advance(4 * time.Second)
			d.check(t, "tie@1s", "later@2s")
			checkClock(t, m, 5*time.Second, 0)
		})
	}
}

func TestManualCallback_GoexitLeavesTheClockUsable(t *testing.T) {
	m := clock.NewManual(start)
	m.AfterFunc(time.Second, runtime.Goexit)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Advance(time.Minute)
	}()
	<-done
	m.Advance(time.Second)
	checkClock(t, m, 2*time.Second, 0)
}

func TestManual_ZeroValueIsReady(t *testing.T) {
	var m clock.Manual
	fired := false
	m.AfterFunc(time.Second, func() { fired = true })
	m.Advance(time.Second)
	if want := (time.Time{}).Add(time.Second); !fired || !m.Now().Equal(want) {
		t.Errorf("fired %v, clock at %v", fired, m.Now())
	}
}

func TestManualNow_HasNoMonotonicReading(t *testing.T) {
	m := clock.NewManual(time.Now())
	m.Set(time.Now().Add(time.Hour))
	if s := m.Now().String(); strings.Contains(s, "m=") {
		t.Error(s)
	}
}

func TestManualString_NamesTimeAndPending(t *testing.T) {
	m := clock.NewManual(start)
	m.AfterFunc(time.Second, func() {})
	if got, want := m.String(), "manual clock at 2030-01-01T00:00:00Z, 1 pending"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
