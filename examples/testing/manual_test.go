package prices_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	prices "resilience4cata.dev/go/examples/testing"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// A slow shop is a call of clk.Sleep with the context that the shop was given. It
// moves the clock, meets the timeout on the way and stops there: the test runs on
// one goroutine, takes no time, and every number is exact.
func TestPrice_ASlowShopIsAskedThreeTimes(t *testing.T) {
	clk := clock.NewManual(noon)
	var asked []time.Duration
	c, _ := newClient(t, clk, func(ctx context.Context, _ string) (int, error) {
		asked = append(asked, clk.Now().Sub(noon))
		return 0, clk.Sleep(ctx, 5*time.Second)
	})

	_, err := c.Price(t.Context(), "tea")
	if !errors.Is(err, timeout.ErrExceeded) || !errors.Is(err, retry.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	// Two seconds until the timeout, then a backoff of one and of two.
	if diff := cmp.Diff([]time.Duration{0, 3 * time.Second, 7 * time.Second}, asked); diff != "" {
		t.Error(diff)
	}
	if d := clk.Now().Sub(noon); d != 9*time.Second {
		t.Errorf("it took %v", d)
	}
	if n := clk.Pending(); n != 0 {
		t.Errorf("%d timers were left behind", n)
	}
}

// Advance in place of Sleep is a shop that ignores its context: the clock moves
// on, and the answer comes too late.
func TestPrice_AnAnswerAfterTheTimeoutDoesNotCount(t *testing.T) {
	clk := clock.NewManual(noon)
	c, _ := newClient(t, clk, func(ctx context.Context, _ string) (int, error) {
		if retry.Attempt(ctx) == 1 {
			clk.Advance(2 * time.Second) // one nanosecond less would have been in time
			return 100, nil
		}
		return 200, nil
	})
	if cents, err := c.Price(t.Context(), "tea"); cents != 200 || err != nil {
		t.Errorf("got %d, %v", cents, err)
	}
}

func TestPrice_AnUnknownProductIsAnAnswer(t *testing.T) {
	clk := clock.NewManual(noon)
	asked := 0
	c, reg := newClient(t, clk, func(context.Context, string) (int, error) {
		asked++
		return 0, prices.ErrUnknown
	})
	for range 20 {
		if _, err := c.Price(t.Context(), "unicorn"); !errors.Is(err, prices.ErrUnknown) {
			t.Errorf("got %v", err)
		}
	}
	if asked != 20 {
		t.Errorf("asked %d times", asked)
	}
	if b, _ := reg.CircuitBreaker("prices"); b.State() != circuitbreaker.Closed {
		t.Errorf("the breaker is %s", b.State())
	}
}

// Minutes and hours cost nothing: the breaker is open for one, and closes again.
func TestPrice_TheBreakerOpensAndCloses(t *testing.T) {
	clk := clock.NewManual(noon)
	up, asked := false, 0
	c, reg := newClient(t, clk, func(context.Context, string) (int, error) {
		asked++
		if !up {
			return 0, errDown
		}
		return 100, nil
	})
	breaker, _ := reg.CircuitBreaker("prices")

	_, _ = c.Price(t.Context(), "tea") // three failures
	_, err := c.Price(t.Context(), "tea")
	if asked != 4 || !errors.Is(err, circuitbreaker.ErrOpen) || !errors.Is(err, errDown) {
		t.Errorf("asked %d times, then %v", asked, err)
	}
	if _, err := c.Price(t.Context(), "tea"); asked != 4 || !errors.Is(err, circuitbreaker.ErrOpen) {
		t.Errorf("asked %d times, then %v", asked, err)
	}

	up = true
	clk.Advance(time.Minute)
	if s := breaker.State(); s != circuitbreaker.HalfOpen {
		t.Errorf("after a minute the breaker is %s", s)
	}
	if cents, err := c.Price(t.Context(), "tea"); cents != 100 || err != nil {
		t.Errorf("got %d, %v", cents, err)
	}
	if s := breaker.State(); s != circuitbreaker.Closed {
		t.Errorf("after a good answer the breaker is %s", s)
	}
}

// The caller's own end is not a timeout, and nothing is retried.
func TestPrice_TheCallerLeaves(t *testing.T) {
	clk := clock.NewManual(noon)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c, reg := newClient(t, clk, func(ctx context.Context, _ string) (int, error) {
		asked++
		clk.AfterFunc(time.Second, cancel) // the caller leaves after a second
		return 0, clk.Sleep(ctx, 5*time.Second)
	})
	_, err := c.Price(ctx, "tea")
	if asked != 1 || !errors.Is(err, context.Canceled) || errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("asked %d times, then %v", asked, err)
	}
	if d := clk.Now().Sub(noon); d != time.Second {
		t.Errorf("it took %v", d)
	}
	if n := reg.Snapshot().Pipelines[0].Calls.Cancelled; n != 1 {
		t.Errorf("%d calls were counted as cancelled", n)
	}
}
