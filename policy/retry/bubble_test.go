package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

// Each entry point works in a synctest bubble on the system clock, and leaves
// nothing behind that would keep the bubble from ending.

func TestBubbleDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := on(t, clock.System(), retry.Constant(time.Second), retry.MaxDuration(time.Minute), retry.Budget(1, 1))
		began := time.Now()
		calls := 0
		err := p.Do(t.Context(), func(ctx context.Context) error {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(began.Add(time.Minute)) {
				t.Errorf("deadline %v %v", d, ok)
			}
			if calls++; calls < 3 {
				return errBoom
			}
			return nil
		})
		if took := time.Since(began); err != nil || calls != 3 || took != 2*time.Second {
			t.Errorf("%d calls in %v, %v", calls, took, err)
		}
	})
}

func TestBubbleMaxDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := on(t, clock.System(), retry.MaxDuration(time.Second), retry.Constant(300*time.Millisecond))
		began := time.Now()
		err := p.Do(t.Context(), func(ctx context.Context) error {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			<-derived.Done()
			if cause := context.Cause(derived); cause != retry.ErrOutOfTime { //nolint:errorlint // that value
				t.Errorf("cause %v", cause)
			}
			return derived.Err()
		})
		wantIs(t, err, retry.ErrOutOfTime)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestBubbleCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := on(t, clock.System(), retry.Unlimited(), retry.Constant(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began, calls := time.Now(), 0
		err := p.Do(ctx, func(context.Context) error { calls++; return errBoom })
		wantIs(t, err, retry.ErrOutOfTime, context.DeadlineExceeded, errBoom)
		if took := time.Since(began); calls != 3 || took != 2*time.Second {
			t.Errorf("%d calls in %v, want 3 in 2s: the third sleep would end exactly at the deadline", calls, took)
		}
	})
}

func TestBubbleDrivenByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := on(t, clock.System(), retry.Constant(time.Second), retry.MaxAttempts(2))
		r, err := drive(t.Context(), p, returned(errBoom), returned(errOther))
		wantIs(t, err, retry.ErrExhausted, errOther)
		if r.Attempt != 2 || p.WithRules(retry.Config{}).Snapshot().Retries != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestARetryMadeOutsideABubbleKeepsItsBudget(t *testing.T) { // never kills the process
	p := on(t, clock.System(), retry.Budget(0, 1), retry.Constant(time.Second))
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := p.Do(t.Context(), func(context.Context) error { calls++; return errBoom })
		if !errors.Is(err, retry.ErrBudget) || calls != 2 {
			t.Errorf("%d calls, %v", calls, err)
		}
	})
}
