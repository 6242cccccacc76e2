package timeout_test

import (
	"context"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy/timeout"
)

// On a registry's wheel a call in time costs the one allocation of its context,
// and publishes nothing. T-6
func TestDo_OneAllocationOnTheWheel(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := scope.New(nil, nil)
	s.Share()
	p, err := timeout.NewIn(s, "reports", timeout.Config{Value: time.Hour}, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, fn := t.Context(), func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _ = p.Do(ctx, fn) }); n != 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
