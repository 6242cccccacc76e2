package prices_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// With several goroutines only the test may move the time, or the result would
// depend on who is scheduled first: the clock is passive. The pattern is always
// the same: wait until everybody has got to where he waits, then advance.
func TestPriceAsync_EachStepIsTheTests(t *testing.T) {
	clk := clock.NewManual(noon).Passive()
	c, _ := newClient(t, clk, func(ctx context.Context, _ string) (int, error) {
		return 100, clk.Sleep(ctx, time.Second) // parks, on the goroutine of the call
	})
	f := c.PriceAsync(t.Context(), "tea")

	if err := clk.AwaitSleepers(t.Context(), 1); err != nil { // the shop is at work
		t.Fatal(err)
	}
	clk.Advance(999 * time.Millisecond)
	if _, done, _ := f.Poll(); done {
		t.Error("the answer came too soon")
	}
	clk.Advance(time.Millisecond)
	if cents, err := f.Get(t.Context()); cents != 100 || err != nil {
		t.Errorf("got %d, %v", cents, err)
	}
	if n := clk.Pending(); n != 0 {
		t.Errorf("%d timers were left behind", n)
	}
}

// A retry between two attempts holds no goroutine: it is a pending timer. Where
// there is no sleeper to wait for, an event says how far the call has got.
func TestPriceAsync_ABackoffIsATimer(t *testing.T) {
	clk := clock.NewManual(noon).Passive()
	retrying := make(chan retry.Retrying, 1)
	listener := registry.WithListener(func(_ context.Context, e policy.Event) {
		if e, ok := e.(retry.Retrying); ok {
			retrying <- e
		}
	})
	c, _ := newClient(t, clk, func(ctx context.Context, _ string) (int, error) {
		if retry.Attempt(ctx) == 1 {
			return 0, errDown
		}
		return 100, nil
	}, listener)

	f := c.PriceAsync(t.Context(), "tea")
	if e := <-retrying; e.Attempt != 1 || e.Delay != time.Second {
		t.Errorf("%+v", e)
	}
	if err := clk.AwaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	clk.Advance(time.Second)
	if cents, err := f.Get(t.Context()); cents != 100 || err != nil {
		t.Errorf("got %d, %v", cents, err)
	}
}

// A shop that ignores its context holds no caller: the future fails on time, and
// what the shop did afterwards is still to be seen.
func TestPriceAsync_TheLastAttemptEndsLate(t *testing.T) {
	clk := clock.NewManual(noon).Passive()
	gate := make(chan struct{})
	c, reg := newClient(t, clk, func(context.Context, string) (int, error) {
		<-gate
		return 100, nil
	})
	f := c.PriceAsync(t.Context(), "tea")
	for range 3 { // three attempts, each abandoned after two seconds
		if err := clk.AwaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		clk.Advance(2 * time.Second) // the timeout; its future fails before Advance returns
		at, ok := clk.Next()
		if !ok {
			break // that was the last attempt
		}
		clk.Set(at) // the backoff
	}
	if _, err := f.Get(t.Context()); !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("got %v", err)
	}
	if n := reg.Snapshot().Pipelines[0].Abandoned.Running; n != 3 {
		t.Errorf("%d are abandoned", n)
	}

	close(gate)
	<-f.Work().Done()
	if cents, _, err := f.Work().Poll(); cents != 100 || err != nil {
		t.Errorf("the work: %d, %v", cents, err)
	}
	if err := reg.Drain(t.Context()); err != nil { // no attempt runs any more
		t.Error(err)
	}
	if n := reg.Snapshot().Pipelines[0].Abandoned.LateSuccess; n != 3 {
		t.Errorf("%d late successes", n)
	}
}
