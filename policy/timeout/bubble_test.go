package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/timeout"
)

// Rule X-2: on the system clock, in a bubble, nothing is left behind.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := timeout.New("reports", limit, clock.System())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err = p.Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(begin); !errors.Is(err, timeout.ErrExceeded) || took < 2*time.Second || took > 2*time.Second+100*time.Millisecond {
			t.Errorf("Do = %v after %v, want a timeout after 2s", err, took)
		}
		if err := p.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
			t.Errorf("Do = %v, want nil: it ended in time", err)
		}
	})
}
