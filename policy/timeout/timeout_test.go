package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/timeout"
)

func newPolicy(t *testing.T, c timeout.Config) (*timeout.Policy, *clock.Manual) {
	t.Helper()
	clk := clock.NewManual(noon)
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

var (
	noon  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	limit = timeout.Config{Value: 2 * time.Second}
)

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
	if got := clk.Now().Sub(noon); got != 2*time.Second {
		t.Errorf("the call in flight took %v, want 2s", got)
	}
	_ = p.Do(t.Context(), sleep)
	if got := clk.Now().Sub(noon); got != 3*time.Second {
		t.Errorf("both took %v, want 3s", got)
	}
	err := p.Reconfigure(timeout.Config{})
	if errs := policy.ConfigErrors(err); len(errs) != 1 || errs[0].ID != "reports" || p.Config().Value != time.Second {
		t.Errorf("Reconfigure with no limit: %v, then %v", err, p.Config().Value)
	}
}
