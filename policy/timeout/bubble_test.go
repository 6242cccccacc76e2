package timeout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/timeout"
)

// In a synctest bubble deadlines are exact, too, and nothing is left in it.
func TestBubbleDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := timeout.New("reports", timeout.Config{Value: 2 * time.Second}, clock.System())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = p.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		wantError(t, err, &timeout.Error{Instance: "reports", Limit: 2 * time.Second, Cause: context.DeadlineExceeded})
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
		err = p.Do(t.Context(), func(context.Context) error { time.Sleep(5 * time.Second); return nil })
		wantError(t, err, &timeout.Error{Instance: "reports", Limit: 2 * time.Second})
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("took %v", took)
		}
		if err := p.Do(t.Context(), func(context.Context) error { time.Sleep(2*time.Second - 1); return errOwn }); err != errOwn { //nolint:errorlint // unchanged
			t.Errorf("in time: %v", err)
		}
	})
}
