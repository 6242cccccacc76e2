package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/timeout"
)

var errOwn = errors.New("the function's own error")

// newTimeout returns a timeout of the given limit on a manual clock.
func newTimeout(t *testing.T, d time.Duration, opts ...timeout.Option) (*timeout.Policy, *clock.Manual) {
	t.Helper()
	c := timeout.Config{Value: d}
	c.Apply(opts...)
	return newPolicy(t, c)
}

// listened returns a timeout whose events are recorded.
func listened(t *testing.T, c timeout.Config, clk clock.Clock) (*timeout.Policy, *[]policy.Event) {
	t.Helper()
	events := new([]policy.Event)
	p, err := timeout.NewIn(scope.New(clk, func(_ context.Context, e policy.Event) { *events = append(*events, e) }), "reports", c, false)
	if err != nil {
		t.Fatal(err)
	}
	return p, events
}

func wantError(t *testing.T, err error, want *timeout.Error) {
	t.Helper()
	got, ok := err.(*timeout.Error) //nolint:errorlint // it is not wrapped
	if !ok {
		t.Fatalf("error %v, want %v", err, want)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *timeout.Error) bool {
		return a.Instance == b.Instance && a.Limit == b.Limit && a.Cause == b.Cause && a.Started() == b.Started() //nolint:errorlint // that very value
	})); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func wantTimedOut(t *testing.T, p *timeout.Policy, n uint64) {
	t.Helper()
	if got := p.Snapshot().TimedOut; got != n {
		t.Errorf("timedOut %d, want %d", got, n)
	}
}

func TestDo_T1_RunsOnTheCallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTimeout(t, time.Second)
		n, ran := testkit.Goroutines(t), false // plain: the race detector proves that it is this goroutine
		if err := p.Do(t.Context(), func(context.Context) error {
			ran = true
			if got := testkit.Goroutines(t); got > n {
				t.Errorf("%d goroutines more", got-n)
			}
			return nil
		}); err != nil || !ran {
			t.Errorf("%v, ran %v", err, ran)
		}
	})
}

func TestDo_T2_TheErrorCarriesTheFunctionsOwn(t *testing.T) {
	p, m := newTimeout(t, 2*time.Second)
	var seen error
	err := p.Do(t.Context(), func(ctx context.Context) error {
		seen = m.Sleep(ctx, 5*time.Second)
		return fmt.Errorf("query: %w", errors.Join(errOwn, seen))
	})
	var e *timeout.Error
	if !errors.As(err, &e) || !errors.Is(err, errOwn) || seen != context.DeadlineExceeded { //nolint:errorlint // that very value
		t.Errorf("error %v, the function saw %v", err, seen)
	}
	if at := m.Now().Sub(noon); at != 2*time.Second { // K-1
		t.Errorf("interrupted at %v", at)
	}
	if want := `timeout "reports": exceeded 2s: query: the function's own error` + "\ncontext deadline exceeded"; err.Error() != want { // T-13
		t.Errorf("text %q, want %q", err, want)
	}
	wantTimedOut(t, p, 1)
}

func TestDo_T3_ALateValueIsDropped(t *testing.T) { // K-2
	p, m := newTimeout(t, 2*time.Second)
	err := p.Do(t.Context(), func(context.Context) error {
		m.Advance(5 * time.Second)
		return nil
	})
	wantError(t, err, &timeout.Error{Instance: "reports", Limit: 2 * time.Second})
	if at := m.Now().Sub(noon); at != 5*time.Second || err.Error() != `timeout "reports": exceeded 2s` {
		t.Errorf("%v at %v", err, at)
	}
}

func TestDo_T4_NothingIsLeft(t *testing.T) {
	p, m := newTimeout(t, time.Second)
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	var retained context.Context
	for _, err := range []error{nil, errOwn} {
		if got := p.Do(parent, func(ctx context.Context) error {
			retained = ctx
			ctx.Done()
			m.Advance(time.Second - 1)
			return err
		}); got != err { //nolint:errorlint // that very value
			t.Errorf("got %v, want %v", got, err)
		}
		if m.Pending() != 0 || retained.Err() != context.Canceled || parent.Err() != nil {
			t.Errorf("%v, retained %v, parent %v", m, retained.Err(), parent.Err())
		}
	}
	wantTimedOut(t, p, 0)
}

func TestDo_T7_TheDeadlineItselfIsTooLate(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		late  bool
	}{{2*time.Second - 1, false}, {2 * time.Second, true}, {2*time.Second + 1, true}, {0, false}} {
		for name, spend := range map[string]func(context.Context, *clock.Manual){
			"Sleep":   func(ctx context.Context, m *clock.Manual) { _ = m.Sleep(ctx, tc.takes) },
			"Advance": func(_ context.Context, m *clock.Manual) { m.Advance(tc.takes) },
		} {
			p, m := newTimeout(t, 2*time.Second)
			err := p.Do(t.Context(), func(ctx context.Context) error { spend(ctx, m); return nil })
			if late := errors.Is(err, timeout.ErrExceeded); late != tc.late || !late && err != nil {
				t.Errorf("%s of %v: %v", name, tc.takes, err)
			}
		}
	}
}

func TestDo_T8_WhateverComesAfterIsATimeout(t *testing.T) {
	for name, tc := range map[string]error{"a value": nil, "its own": errOwn, "wrapped": fmt.Errorf("w: %w", context.DeadlineExceeded), "canceled": context.Canceled} {
		p, m := newTimeout(t, time.Second)
		late := func(context.Context) error { m.Advance(time.Second); return tc }
		wantError(t, p.Do(t.Context(), late), &timeout.Error{Instance: "reports", Limit: time.Second, Cause: tc})
		inTime := func(context.Context) error { return tc }
		if err := p.Do(t.Context(), inTime); err != tc { //nolint:errorlint // unchanged
			t.Errorf("%s: %v in time", name, err)
		}
		wantTimedOut(t, p, 1)
	}
}

func TestDo_T10_TheCallersEndIsTheCallers(t *testing.T) { // TO-03, conformance 27
	reason := errors.New("the caller's reason")
	for name, at := range map[string]time.Duration{"before ours": 10 * time.Millisecond, "at the same instant, first": 100 * time.Millisecond} {
		m := clock.NewManual(noon)
		p, events := listened(t, timeout.Config{Value: 100 * time.Millisecond}, m)
		ctx, cancel := context.WithCancelCause(t.Context())
		m.AfterFunc(at, func() { cancel(reason) }) // armed before ours
		err := p.Do(ctx, func(ctx context.Context) error {
			err := m.Sleep(ctx, time.Minute)
			if context.Cause(ctx) != reason { //nolint:errorlint // that very value
				t.Errorf("%s: cause %v", name, context.Cause(ctx))
			}
			m.Advance(time.Minute) // our deadline fires in vain
			return err
		})
		if err != context.Canceled || errors.Is(err, timeout.ErrExceeded) { //nolint:errorlint // unchanged
			t.Errorf("%s: %v", name, err)
		}
		if wantTimedOut(t, p, 0); len(*events) != 0 {
			t.Errorf("%s: events %v", name, *events)
		}
	}
}

func TestField_TO02_EndedBeforeTheCall(t *testing.T) { // O-5, T-10
	reason := errors.New("the caller's reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	p, m := newTimeout(t, time.Second)
	for range 1000 {
		err := p.Do(ctx, func(context.Context) error { t.Fatal("called"); return nil })
		if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) || errors.Is(err, timeout.ErrExceeded) {
			t.Fatalf("error %v", err)
		}
	}
	if wantTimedOut(t, p, 0); m.Pending() != 0 {
		t.Errorf("%v", m)
	}
}

func TestDo_T10_NestedTimeoutsNameTheOneThatFired(t *testing.T) {
	m := clock.NewManual(noon)
	for _, tc := range []struct {
		outer, inner time.Duration
		want         string
	}{{time.Second, 2 * time.Second, "outer"}, {2 * time.Second, time.Second, "inner"}, {time.Second, time.Second, "outer"}} {
		outer, err := timeout.New("outer", timeout.Config{Value: tc.outer}, m)
		if err != nil {
			t.Fatal(err)
		}
		inner, err := timeout.New("inner", timeout.Config{Value: tc.inner}, m)
		if err != nil {
			t.Fatal(err)
		}
		err = outer.Do(t.Context(), func(ctx context.Context) error {
			return inner.Do(ctx, func(ctx context.Context) error {
				err := m.Sleep(ctx, time.Minute)
				var cause *timeout.Error
				if !errors.As(context.Cause(ctx), &cause) || cause.Instance != tc.want {
					t.Errorf("%v: cause %v, want %s", tc, context.Cause(ctx), tc.want)
				}
				return err
			})
		})
		var e *timeout.Error
		if !errors.As(err, &e) || e.Instance != tc.want {
			t.Errorf("%v: %v, want %s", tc, err, tc.want)
		}
		counts := map[string]uint64{"outer": outer.Snapshot().TimedOut, "inner": inner.Snapshot().TimedOut}
		want := map[string]uint64{"outer": 0, "inner": 0}
		want[tc.want] = 1
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("%v: counts (-want +got):\n%s", tc, diff)
		}
	}
}

// deadlined is a context with a deadline by a clock of its own.
type deadlined struct {
	context.Context
	at time.Time
}

func (c deadlined) Deadline() (time.Time, bool) { return c.at, true }

func TestDo_T11_TheFunctionSeesDeadlineAndCause(t *testing.T) {
	for name, tc := range map[string]struct{ caller, want time.Duration }{
		"ours alone": {0, time.Second}, "the caller's is later": {time.Hour, time.Second}, "the caller's is earlier": {time.Millisecond, time.Millisecond},
	} {
		p, m := newTimeout(t, time.Second)
		parent := t.Context()
		if tc.caller != 0 {
			parent = deadlined{parent, noon.Add(tc.caller)}
		}
		err := p.Do(parent, func(ctx context.Context) error {
			if at, ok := ctx.Deadline(); !ok || at.Sub(noon) != tc.want {
				t.Errorf("%s: Deadline() = %v, %v", name, at, ok)
			}
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			m.Advance(time.Second)
			for _, ctx := range []context.Context{ctx, child} {
				wantError(t, context.Cause(ctx), &timeout.Error{Instance: "reports", Limit: time.Second})
				if ctx.Err() != context.DeadlineExceeded {
					t.Errorf("%s: Err() = %v", name, ctx.Err())
				}
			}
			return nil
		})
		wantError(t, err, &timeout.Error{Instance: "reports", Limit: time.Second})
	}
}

func TestField_TO06_HugeLimitsDoNotFire(t *testing.T) { // T-12
	for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 2562047 * time.Hour} {
		p, m := newTimeout(t, d)
		if err := p.Do(t.Context(), func(ctx context.Context) error {
			if at, ok := ctx.Deadline(); ok && at.Before(noon.AddDate(100, 0, 0)) {
				t.Errorf("%v: deadline %v", d, at)
			}
			m.Advance(time.Hour)
			return ctx.Err()
		}); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if m.Pending() != 0 {
			t.Errorf("%v: %v", d, m)
		}
	}
}

func TestField_TO14_NilArgumentsPanicAtOnce(t *testing.T) {
	p, m := newTimeout(t, time.Second)
	fn := func(context.Context) error { t.Error("called"); return nil }
	for want, f := range map[string]func() error{
		"timeout: Do: ctx is nil":                                func() error { return p.Do(nil, fn) }, //nolint:staticcheck // it is the point
		"timeout: Do: fn is nil":                                 func() error { return p.Do(t.Context(), nil) },
		"timeout: Do on a nil or zero Policy: make it with New":  func() error { return new(timeout.Policy).Do(t.Context(), fn) },
		"timeout: Do on a nil or zero Policy: make it with New ": func() error { return (*timeout.Policy)(nil).Do(t.Context(), fn) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want && got+" " != want {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			t.Errorf("returned %v", f())
		}()
	}
	if m.Pending() != 0 {
		t.Errorf("%v", m)
	}
}

func TestField_TO10_PanicAndGoexitPassThrough(t *testing.T) {
	p, m := newTimeout(t, time.Second)
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, late := range []bool{false, true} {
			left := make(chan any)
			go func() {
				defer func() { left <- recover() }()
				_ = p.Do(t.Context(), func(context.Context) error {
					if late {
						m.Advance(time.Second)
					}
					leave()
					return nil
				})
				t.Errorf("%s: Do has returned", name)
			}()
			if got, want := <-left, map[string]any{"panic": "boom", "Goexit": nil}[name]; got != want {
				t.Errorf("%s: recovered %v", name, got)
			}
			if m.Pending() != 0 {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
	if err := p.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("the next call: %v", err)
	}
	wantTimedOut(t, p, 0)
}

func TestExceeded_IsPublishedOnce(t *testing.T) { // T-6
	m := clock.NewManual(noon)
	p, events := listened(t, timeout.Config{Value: time.Second}, m)
	_ = p.Do(t.Context(), func(context.Context) error { m.Advance(time.Second - 1); return errOwn })
	if len(*events) != 0 {
		t.Errorf("a call in time publishes %v", *events)
	}
	_ = p.Do(t.Context(), func(context.Context) error { m.Advance(3 * time.Second); return nil })
	want := timeout.Exceeded{Meta: policy.NewMeta("timeout", "reports", noon.Add(4*time.Second-1)), Limit: time.Second, WorkDone: true}
	if len(*events) != 1 || (*events)[0] != want {
		t.Errorf("events %v, want %v", *events, want)
	}
	if got, want := want.LogValue().String(), "[policy=timeout id=reports limit=1s workDone=true]"; got != want {
		t.Errorf("LogValue %s, want %s", got, want)
	}
}

func TestRealClock_T5_NeverEarly(t *testing.T) {
	s := scope.New(nil, nil)
	s.Share()
	shared, err := timeout.NewIn(s, "shared", timeout.Config{Value: 5 * time.Millisecond}, false)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := timeout.New("alone", timeout.Config{Value: 5 * time.Millisecond}, clock.System())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*timeout.Policy{shared, alone} {
		for range 5 {
			began := time.Now()
			err := p.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil })
			if took := time.Since(began); !errors.Is(err, timeout.ErrExceeded) || took < 5*time.Millisecond {
				t.Errorf("%s: %v after %v", p.ID(), err, took)
			}
		}
	}
	if s.Pending() != 0 {
		t.Errorf("%d pending", s.Pending())
	}
}
