package bulkhead_test

import (
	"testing"

	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// Success and refusal allocate nothing, by every way in.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	free := newPolicy(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: unbounded})
	full := newPolicy(t, bulkhead.Config{MaxConcurrent: 1})
	mustAcquire(t, full)
	lined := newPolicy(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: unbounded})
	mustAcquire(t, lined)
	enqueue(t, lined, unbounded)
	w := waitq.New(nil)

	for name, f := range map[string]func() bool{
		"Acquire":           func() bool { defer free.Release(); return free.Acquire(ctx) == nil },
		"TryAcquire":        func() bool { defer free.Release(); return free.TryAcquire() },
		"Enter":             func() bool { defer free.Release(); return free.Enter(ctx, 0) == nil },
		"EnterAsync":        func() bool { ok, _ := free.EnterAsync(ctx, 0, w); free.Release(); return ok },
		"Acquire, full":     func() bool { return full.Acquire(ctx) != nil },
		"TryAcquire, full":  func() bool { return !full.TryAcquire() },
		"Enter, full":       func() bool { return full.Enter(ctx, unbounded) != nil },
		"EnterAsync, full":  func() bool { _, err := full.EnterAsync(ctx, 0, w); return err != nil },
		"Acquire, no place": func() bool { return lined.Acquire(ctx) != nil },
		"Snapshot":          func() bool { return free.Snapshot().Limit == 1 },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if !f() {
				t.Fatalf("%s: the wrong outcome", name)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times, want 0", name, n)
		}
	}
}
