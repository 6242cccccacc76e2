package conform_test

import (
	"context"
	"testing"
	"time"

	"resilience4cata.dev/go/registry"
)

// watch takes snapshots until it is stopped, and checks S-2 on each.
func (s *stress) watch() {
	var last registry.Snapshot
	for n := 0; ; n++ {
		now := s.reg.Snapshot()
		checkConsistent(s.T, &now)
		if n > 0 {
			checkMonotone(s.T, &last, &now)
		}
		last = now
		select {
		case <-s.stop:
			return
		default:
			_ = s.clk.Sleep(context.Background(), 100*time.Microsecond)
		}
	}
}

// checkConsistent is S-2 for one snapshot, whatever goes on.
func checkConsistent(t *testing.T, s *registry.Snapshot) {
	t.Helper()
	for _, p := range s.Pipelines {
		c := p.Calls
		if ended := c.Succeeded + c.Failed + c.TimedOut + c.Cancelled + c.Rejected + c.Panicked; ended > c.Started || c.InFlight != int64(c.Started-ended) {
			t.Errorf("S-2: pipeline %s: %d ended of %d started, %d in flight", p.ID, ended, c.Started, c.InFlight)
		}
		if p.Abandoned.Running < 0 || p.Fallback.Failed > p.Fallback.Applied {
			t.Errorf("S-2: pipeline %s: %+v %+v", p.ID, p.Abandoned, p.Fallback)
		}
	}
	for _, b := range s.Bulkheads {
		if b.InUse < 0 || b.Available != max(0, b.Limit-b.InUse) || b.Waiting < 0 || b.Config.Queue >= 0 && b.Waiting > b.Config.Queue {
			t.Errorf("S-2: bulkhead %s: %d of %d in use, %d available, %d waiting", b.ID, b.InUse, b.Limit, b.Available, b.Waiting)
		}
	}
	for _, l := range s.RateLimiters {
		if l.Available < 0 || l.Available > l.Config.Burst || l.Waiting < 0 {
			t.Errorf("S-2: limiter %s: %d available of %d, %d waiting", l.ID, l.Available, l.Config.Burst, l.Waiting)
		}
	}
	for _, b := range s.CircuitBreakers {
		if b.FailureRatio < 0 || b.FailureRatio > 1 || b.RetryAfterMs < 0 {
			t.Errorf("S-2: breaker %s: %+v", b.ID, b)
		}
	}
	if s.Wheel.Pending < 0 {
		t.Errorf("S-2: %d deadlines pending", s.Wheel.Pending)
	}
}

// checkMonotone is S-2 for two snapshots: counters only grow.
func checkMonotone(t *testing.T, before, after *registry.Snapshot) {
	t.Helper()
	grows := func(kind, id string, counters ...uint64) {
		t.Helper()
		half := len(counters) / 2
		for i := range half {
			if counters[i] > counters[half+i] {
				t.Errorf("S-2: counter %d of %s %s went from %d to %d", i, kind, id, counters[i], counters[half+i])
			}
		}
	}
	for i, a := range before.Pipelines {
		b := after.Pipelines[i]
		x, y := a.Calls, b.Calls
		grows("pipeline", a.ID, x.Started, x.Succeeded, x.Failed, x.TimedOut, x.Cancelled, x.Rejected, x.Panicked,
			a.Fallback.Applied, a.Fallback.Failed, a.Abandoned.LateSuccess, a.Abandoned.LateFailure, a.Abandoned.LatePanic,
			y.Started, y.Succeeded, y.Failed, y.TimedOut, y.Cancelled, y.Rejected, y.Panicked,
			b.Fallback.Applied, b.Fallback.Failed, b.Abandoned.LateSuccess, b.Abandoned.LateFailure, b.Abandoned.LatePanic)
	}
	for i, a := range before.Bulkheads {
		b := after.Bulkheads[i]
		grows("bulkhead", a.ID, a.Admitted, a.Rejected, b.Admitted, b.Rejected)
	}
	for i, a := range before.RateLimiters {
		b := after.RateLimiters[i]
		grows("limiter", a.ID, a.Admitted, a.Rejected, b.Admitted, b.Rejected)
	}
	for i, a := range before.CircuitBreakers {
		grows("breaker", a.ID, a.Rejected, after.CircuitBreakers[i].Rejected)
	}
	for i, a := range before.Retries {
		b := after.Retries[i]
		grows("retry", a.ID, a.Retries, a.Exhausted, a.OutOfTime, a.BudgetDenied, b.Retries, b.Exhausted, b.OutOfTime, b.BudgetDenied)
	}
	for i, a := range before.Timeouts {
		grows("timeout", a.Instance, a.TimedOut, after.Timeouts[i].TimedOut)
	}
}
