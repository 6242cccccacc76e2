package prices_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/timeout"
)

// In a bubble the system's own time is fake: it moves when every goroutine of the
// bubble waits. So the shop may use time.Sleep, context.WithTimeout or a library
// that does, and the numbers are as exact as on a manual clock. Make the registry
// inside of the bubble.
func TestBubble_ASlowShopIsAskedThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, _ := newClient(t, clock.System(), func(ctx context.Context, _ string) (int, error) {
			asked++
			select {
			case <-time.After(5 * time.Second):
				return 100, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		start := time.Now()
		_, err := c.Price(t.Context(), "tea")
		if asked != 3 || !errors.Is(err, timeout.ErrExceeded) {
			t.Errorf("asked %d times, then %v", asked, err)
		}
		// Timeouts are never early, and a little late: up to two ticks, see package timeout.
		if d := time.Since(start); d < 9*time.Second || d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// Many callers at once need no choreography: synctest.Wait returns when all of
// them wait for something.
func TestBubble_AHundredCallersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, reg := newClient(t, clock.System(), func(context.Context, string) (int, error) {
			time.Sleep(time.Second) // ignores its context, but is in time
			return 100, nil
		})
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if _, err := c.Price(t.Context(), "tea"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := reg.Snapshot().Pipelines[0].Calls.InFlight; n != 100 {
			t.Errorf("%d are in flight", n)
		}
		start := time.Now()
		callers.Wait()
		if d := time.Since(start); d != time.Second {
			t.Errorf("they took %v", d)
		}
	})
}

// The bubble ends only when no goroutine of it is left: abandoned work would be
// found here, without goleak.
func TestBubble_AnAsyncCallThatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, reg := newClient(t, clock.System(), func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		f := c.PriceAsync(t.Context(), "tea")
		synctest.Wait() // the shop is at work
		if !f.Cancel() {
			t.Error("the future had ended")
		}
		if _, err := f.Get(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait() // and now it has stopped
		if a := reg.Snapshot().Pipelines[0].Abandoned; a.Running != 0 || a.LateFailure != 1 {
			t.Errorf("abandoned: %+v", a)
		}
	})
}
