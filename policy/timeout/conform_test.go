package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/timeout"
)

func TestConform_22_LimitAgainstDuration(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		limit, takes time.Duration
		late         bool
	}{
		{1000 * ms, 20000 * ms, true},
		{1000 * ms, 10 * ms, false},
		{2000 * ms, 1500 * ms, false},
		{2000 * ms, 2500 * ms, true},
		{500 * ms, 10 * ms, false},
		{500 * ms, 1000 * ms, true},
		{2 * time.Second, 1500 * ms, false},
		{2 * time.Second, 2500 * ms, true},
	} {
		p, m := newTimeout(t, tc.limit)
		err := p.Do(t.Context(), func(ctx context.Context) error {
			_ = m.Sleep(ctx, tc.takes)
			return errOwn
		})
		if late := errors.Is(err, timeout.ErrExceeded); late != tc.late || !late && err != errOwn { //nolint:errorlint // unchanged
			t.Errorf("limit %v, takes %v: %v", tc.limit, tc.takes, err)
		}
		if want := min(tc.limit, tc.takes); m.Now().Sub(noon) != want {
			t.Errorf("limit %v, takes %v: over at %v", tc.limit, tc.takes, m.Now().Sub(noon))
		}
	}
}

func TestConform_23_AFunctionThatIgnoresItsContextRunsToItsEnd(t *testing.T) {
	p, m := newTimeout(t, 500*time.Millisecond)
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := time.Duration(0)
	err := p.Do(parent, func(context.Context) error {
		m.Advance(time.Second)
		ended = m.Now().Sub(noon)
		return nil
	})
	wantError(t, err, &timeout.Error{Instance: "reports", Limit: 500 * time.Millisecond})
	if ended != time.Second || parent.Err() != nil || m.Pending() != 0 {
		t.Errorf("ended at %v, caller's context %v, %v", ended, parent.Err(), m)
	}
}

// Limits of zero and less are mistakes, but for what Func says of one call.
func TestConform_25_NoLimitForOneCall(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Millisecond, -1 << 63} {
		p, m := newTimeout(t, time.Second, timeout.Func(func(context.Context) time.Duration { return d }))
		err := p.Do(t.Context(), func(ctx context.Context) error {
			if ctx != t.Context() || m.Pending() != 0 {
				t.Errorf("%v: a context or a timer although there is no limit", d)
			}
			m.Advance(time.Hour)
			return nil
		})
		if err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if err := (timeout.Config{Value: d}).Validate(); err == nil {
			t.Errorf("%v is valid", d)
		}
	}
}

func TestConform_27_TheCallersCancellationIsNoTimeout(t *testing.T) {
	m := clock.NewManual(noon)
	p, events := listened(t, timeout.Config{Value: 10 * time.Second}, m)
	reason := errors.New("reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	m.AfterFunc(time.Second, func() { cancel(reason) })
	err := p.Do(ctx, func(ctx context.Context) error {
		if err := m.Sleep(ctx, time.Minute); err == nil {
			t.Error("not interrupted")
		}
		return context.Cause(ctx)
	})
	if err != reason || len(*events) != 0 || m.Now().Sub(noon) != time.Second { //nolint:errorlint // unchanged
		t.Errorf("%v, events %v, at %v", err, *events, m.Now().Sub(noon))
	}
	wantTimedOut(t, p, 0)
}

func TestConform_28_NothingOfTheCallIsLeft(t *testing.T) {
	p, m := newTimeout(t, time.Second)
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := p.Do(parent, func(ctx context.Context) error {
		if ctx == parent || m.Pending() != 1 {
			t.Errorf("no context of its own, or no timer: %v", m)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if parent.Err() != nil || m.Pending() != 0 {
		t.Errorf("caller's context %v, %v", parent.Err(), m)
	}
}

func TestConform_29_FuncIsAskedOncePerAttempt(t *testing.T) {
	type key struct{}
	asked := 0
	p, m := newTimeout(t, 10*time.Millisecond, timeout.Func(func(ctx context.Context) time.Duration {
		asked++
		return ctx.Value(key{}).(time.Duration)
	}))
	for i, d := range []time.Duration{time.Second, 2 * time.Second, 2 * time.Second, time.Second} {
		before := m.Now()
		err := p.Do(context.WithValue(t.Context(), key{}, d), func(ctx context.Context) error { return m.Sleep(ctx, time.Minute) })
		wantError(t, err, &timeout.Error{Instance: "reports", Limit: d, Cause: context.DeadlineExceeded})
		if asked != i+1 || m.Now().Sub(before) != d {
			t.Errorf("asked %d times in %d calls, timed out after %v, want %v", asked, i+1, m.Now().Sub(before), d)
		}
	}
	p, m = newTimeout(t, 10*time.Millisecond)
	err := p.Do(t.Context(), func(ctx context.Context) error { return m.Sleep(ctx, time.Minute) })
	wantError(t, err, &timeout.Error{Instance: "reports", Limit: 10 * time.Millisecond, Cause: context.DeadlineExceeded})
}
