package timeout_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/timeout"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func newPolicy(t *testing.T, c timeout.Config) (*timeout.Policy, *clock.Manual) {
	t.Helper()
	clk := clock.NewManual(start)
	p, err := timeout.New("reports", c, clk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := clk.Pending(); n != 0 {
			t.Errorf("%d timers left behind", n)
		}
	})
	return p, clk
}

var limit = timeout.Config{Value: 2 * time.Second}

func TestDo_T6_InTimeNothingIsChanged(t *testing.T) {
	p, _ := newPolicy(t, limit)
	own := errors.New("down")
	for _, want := range []error{nil, own, context.DeadlineExceeded} {
		if err := p.Do(t.Context(), func(context.Context) error { return want }); err != want { //nolint:errorlint // it passes unchanged
			t.Errorf("Do = %v, want %v itself", err, want)
		}
	}
	if got := p.Snapshot().TimedOut; got != 0 {
		t.Errorf("timedOut = %d, want 0", got)
	}
}

func TestDo_T7_TheDeadlineItselfIsTooLate(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		late  bool
	}{
		{2*time.Second - 1, false},
		{2 * time.Second, true},
		{2*time.Second + 1, true},
	} {
		p, clk := newPolicy(t, limit)
		err := p.Do(t.Context(), func(context.Context) error { clk.Advance(tc.takes); return nil })
		if got := errors.Is(err, timeout.ErrExceeded); got != tc.late {
			t.Errorf("a function of %v: %v, want a timeout: %v", tc.takes, err, tc.late)
		}
	}
}

func TestDo_T2_TheErrorCarriesTheFunctionsOwn(t *testing.T) {
	p, clk := newPolicy(t, limit)
	interrupted := errors.New("interrupted")
	var cause error
	err := p.Do(t.Context(), func(ctx context.Context) error {
		defer func() { cause = context.Cause(ctx) }()
		if err := clk.Sleep(ctx, time.Minute); err != nil {
			return errors.Join(interrupted, err)
		}
		return nil
	})
	if got := clk.Now().Sub(start); got != 2*time.Second {
		t.Errorf("returned after %v, want 2s", got)
	}
	var e *timeout.Error
	if !errors.As(err, &e) || e.Instance != "reports" || e.Limit != 2*time.Second || !errors.Is(e.Cause, interrupted) || !e.Started() {
		t.Errorf("Do = %#v, want a timeout of reports after 2s, started, with the function's error", err)
	}
	// T-11: inside, the cause is the same error but for its own cause.
	if !errors.As(cause, &e) || e.Instance != "reports" || e.Limit != 2*time.Second || e.Cause != nil {
		t.Errorf("cause of the context: %#v", cause)
	}
}

func TestDo_T3_ALateValueIsDropped(t *testing.T) {
	p, clk := newPolicy(t, limit)
	err := p.Do(t.Context(), func(context.Context) error { clk.Advance(5 * time.Second); return nil })
	var e *timeout.Error
	if !errors.As(err, &e) || e.Cause != nil {
		t.Errorf("Do = %v, want a timeout without a cause", err)
	}
	if got := clk.Now().Sub(start); got != 5*time.Second {
		t.Errorf("returned after %v, want the function's own 5s", got)
	}
	want := timeout.Snapshot{Instance: "reports", Config: limit, TimedOut: 1}
	if diff := cmp.Diff(want, p.Snapshot()); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestDo_T10_TheCallersEndIsTheCallers(t *testing.T) {
	p, clk := newPolicy(t, limit)
	ctx, cancel := context.WithCancel(t.Context())
	left := errors.New("the caller has left")
	err := p.Do(ctx, func(ctx context.Context) error {
		clk.Advance(time.Second)
		cancel()
		clk.Advance(time.Minute)
		<-ctx.Done()
		return left
	})
	if !errors.Is(err, left) || errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("Do = %v, want the function's own error", err)
	}
	// O-5: and a context that has ended never gets in.
	err = p.Do(ctx, func(context.Context) error { t.Error("the function was called"); return nil })
	if !errors.Is(err, context.Canceled) || errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("Do = %v, want the caller's cancellation", err)
	}
	if got := p.Snapshot().TimedOut; got != 0 {
		t.Errorf("timedOut = %d, want 0", got)
	}
}

func TestDo_T11_TheFunctionSeesTheEarlierDeadline(t *testing.T) {
	p, _ := newPolicy(t, limit)
	_ = p.Do(t.Context(), func(outer context.Context) error {
		if d, ok := outer.Deadline(); !ok || !d.Equal(start.Add(2*time.Second)) {
			t.Errorf("deadline %v, %v; want 2s from the start", d, ok)
		}
		hour, err := timeout.New("inner", timeout.Config{Value: time.Hour}, clock.NewManual(start))
		if err != nil {
			t.Fatal(err)
		}
		return hour.Do(outer, func(ctx context.Context) error {
			if d, _ := ctx.Deadline(); !d.Equal(start.Add(2 * time.Second)) {
				t.Errorf("nested deadline %v, want the caller's", d)
			}
			return nil
		})
	})
}

// Nothing stays armed, which newPolicy checks.
func TestDo_PanicAndGoexitPassThrough(t *testing.T) {
	p, _ := newPolicy(t, limit)
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v, want the function's own value", got)
			}
		}()
		_ = p.Do(t.Context(), func(context.Context) error { panic("boom") })
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
	}()
	<-ended
}

func TestDo_NilArgumentsPanic(t *testing.T) {
	p, _ := newPolicy(t, limit)
	for name, call := range map[string]func(){
		"timeout: Do: ctx is nil": func() { _ = p.Do(nil, func(context.Context) error { return nil }) }, //nolint:staticcheck // the nil is the test
		"timeout: Do: fn is nil":  func() { _ = p.Do(t.Context(), nil) },
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("recovered %v, want %q", got, name)
				}
			}()
			call()
		}()
	}
}

func TestFunc_IsAskedForEachAttempt(t *testing.T) {
	type key struct{}
	c := limit
	c.Apply(timeout.Func(func(ctx context.Context) time.Duration {
		switch v := ctx.Value(key{}).(type) {
		case time.Duration:
			return v
		default:
			panic("no limit")
		}
	}))
	for _, tc := range []struct {
		name string
		says any
		want time.Duration // of the timeout; 0: none
	}{
		{"a limit", time.Second, time.Second},
		{"none", time.Duration(0), 0},
		{"a negative one", time.Duration(-1), 0},
		{"a panic: the configured one", nil, 2 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, clk := newPolicy(t, c)
			err := p.Do(context.WithValue(t.Context(), key{}, tc.says), func(ctx context.Context) error {
				if tc.want == 0 {
					clk.Advance(time.Hour)
					return ctx.Err()
				}
				return clk.Sleep(ctx, time.Hour)
			})
			var e *timeout.Error
			switch errors.As(err, &e) {
			case true:
				if e.Limit != tc.want {
					t.Errorf("limit %v, want %v", e.Limit, tc.want)
				}
			default:
				if tc.want != 0 || err != nil {
					t.Errorf("Do = %v, want a limit of %v", err, tc.want)
				}
			}
		})
	}
}

func TestReconfigure_AttemptsInFlightKeepTheirLimit(t *testing.T) {
	p, clk := newPolicy(t, limit)
	sleep := func(ctx context.Context) error { return clk.Sleep(ctx, time.Hour) }
	_ = p.Do(t.Context(), func(ctx context.Context) error {
		if err := p.Reconfigure(timeout.Config{Value: time.Second}); err != nil {
			t.Fatal(err)
		}
		return sleep(ctx)
	})
	if got := clk.Now().Sub(start); got != 2*time.Second {
		t.Errorf("the call in flight took %v, want 2s", got)
	}
	_ = p.Do(t.Context(), sleep)
	if got := clk.Now().Sub(start); got != 3*time.Second {
		t.Errorf("both took %v, want 3s", got)
	}
	err := p.Reconfigure(timeout.Config{})
	if errs := policy.ConfigErrors(err); len(errs) != 1 || errs[0].ID != "reports" || p.Config().Value != time.Second {
		t.Errorf("Reconfigure with no limit: %v, then %v", err, p.Config().Value)
	}
}

func TestDo_T12_TheLongestLimitNeverFires(t *testing.T) {
	p, clk := newPolicy(t, timeout.Config{Value: math.MaxInt64})
	err := p.Do(t.Context(), func(ctx context.Context) error {
		if d, ok := ctx.Deadline(); ok && d.Before(clk.Now()) {
			t.Errorf("deadline %v is in the past", d)
		}
		return clk.Sleep(ctx, 24*365*time.Hour)
	})
	if err != nil {
		t.Errorf("Do = %v", err)
	}
}
