package circuitbreaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

// every entry point works in a bubble, with the system clock, and leaves
// nothing behind there.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(t, clock.System(), circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second),
			circuitbreaker.TimeWindow(10*time.Second), circuitbreaker.SlowCall(time.Minute, 1))
		record(t, p, nil, errE)
		wantState(t, p, circuitbreaker.Open)
		time.Sleep(300 * time.Millisecond)
		if e := refusal(t, p); e.Wait != 700*time.Millisecond {
			t.Errorf("Wait %v, want 700ms", e.Wait)
		}
		time.Sleep(700 * time.Millisecond)
		wantState(t, p, circuitbreaker.HalfOpen)
		permit, err := p.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		permit.Ignored()
		allow(t, p).Failure()
		wantState(t, p, circuitbreaker.Open)
		time.Sleep(time.Second)
		allow(t, p).Success()
		wantState(t, p, circuitbreaker.Closed)
		p.ForceOpen()
		p.ForceClosed()
		p.Reset()
		if err := p.Reconfigure(circuitbreaker.Default()); err != nil {
			t.Fatal(err)
		}
		if got := p.Snapshot(); got.State != circuitbreaker.Closed || got.Rejected != 1 {
			t.Errorf("snapshot %+v", got)
		}
	})
}
