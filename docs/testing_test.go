package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// reportsOn is a stand-in for a constructor of the code under test: it takes the clock.
func reportsOn(clk clock.Clock) *pipeline.Pipeline[string] {
	reg := must(registry.New(registry.WithClock(clk)))
	return pipeline.Must(pipeline.New[string](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.Constant(time.Second)).
		Timeout(2 * time.Second).
		Build())
}

func TestSlowDependency(t *testing.T) {
	clk := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	start := clk.Now()
	reports := reportsOn(clk) // retry(3), 1 s between attempts, timeout(2s)

	_, err := reports.Execute(t.Context(), func(ctx context.Context) (string, error) {
		return "report", clk.Sleep(ctx, 5*time.Second) // the ctx of the function, not the test's
	})
	if !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("error %v, want a timeout", err)
	}
	if took := clk.Now().Sub(start); took != 8*time.Second { // 2 s + 1 s + 2 s + 1 s + 2 s
		t.Errorf("took %v, want 8s", took)
	}
	if n := clk.Pending(); n != 0 {
		t.Errorf("%d timers left behind", n)
	}
}

func TestDependencyThatIgnoresItsContext(t *testing.T) {
	clk := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	reg := must(registry.New(registry.WithClock(clk)))
	reports := pipeline.Must(pipeline.New[string](reg, "reports").Timeout(2 * time.Second).Build())

	_, err := reports.Execute(t.Context(), func(context.Context) (string, error) {
		clk.Advance(5 * time.Second)
		return "report", nil // too late: it is dropped
	})
	if !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("error %v, want a timeout", err)
	}
	if got := reg.Snapshot().Pipelines[0].Abandoned.LateSuccess; got != 1 {
		t.Errorf("late successes: %d, want 1", got)
	}
}

func TestSeveralGoroutines(t *testing.T) {
	ctx := t.Context()
	clk := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)).Passive()
	reports := reportsOn(clk)

	future := reports.ExecuteAsync(ctx, func(ctx context.Context) (string, error) {
		if retry.Attempt(ctx) == 1 {
			return "", clk.Sleep(ctx, time.Minute) // hangs
		}
		return "report", clk.Sleep(ctx, 500*time.Millisecond)
	})
	step := func(d time.Duration) {
		if err := clk.AwaitSleepers(ctx, 1); err != nil { // the function is asleep
			t.Fatal(err)
		}
		clk.Advance(d)
	}
	step(2 * time.Second)    // the timeout: when Advance returns, the backoff is pending
	clk.Advance(time.Second) // the backoff: the second attempt begins on its goroutine
	step(500 * time.Millisecond)

	if v, err := future.Get(ctx); v != "report" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := reportsOn(clock.System()) // makes the registry: inside the bubble
		start := time.Now()

		_, err := reports.Execute(t.Context(), func(ctx context.Context) (string, error) {
			select { // code that knows nothing of our clocks
			case <-time.After(5 * time.Second):
				return "report", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		if !errors.Is(err, timeout.ErrExceeded) {
			t.Errorf("error %v, want a timeout", err)
		}
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("took %v, want 8s", took)
		}
	})
}
