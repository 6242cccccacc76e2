package timeout_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/timeout"
)

// holding is a clock whose timers hold up the first who stops them.
type holding struct {
	*clock.Manual
	held, free chan struct{}
}

type heldTimer struct {
	clock.Timer
	c *holding
}

func (h *holding) AfterFunc(d time.Duration, f func()) clock.Timer {
	return heldTimer{h.Manual.AfterFunc(d, f), h}
}

func (t heldTimer) Stop() bool {
	select {
	case t.c.held <- struct{}{}:
		<-t.c.free
	default:
	}
	return t.Timer.Stop()
}

// The goroutine that brings the news of the caller's end may take its time: when the call
// returns, nothing of it is left on the clock.
func TestDo_T4_NothingIsPendingWhenItReturns(t *testing.T) {
	clk := &holding{clock.NewManual(noon), make(chan struct{}, 1), make(chan struct{})}
	p, err := timeout.New("reports", limit, clk)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_ = p.Do(ctx, func(context.Context) error {
		cancel()                 // package context starts a goroutine that tells us
		for len(clk.held) == 0 { // until it is about to stop the timer
			runtime.Gosched()
		}
		return nil
	})
	if n := clk.Pending(); n != 0 {
		t.Errorf("%d timers pending", n)
	}
	close(clk.free)
}
