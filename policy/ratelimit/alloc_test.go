package ratelimit_test

import (
	"testing"
	"time"
	"unsafe"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
)

// A free permit allocates nothing, a refusal at most its error: 48 bytes.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	free := newOn(t, clock.System(), ratelimit.PerSecond(1_000_000_000))
	none := newOn(t, clock.System(), ratelimit.Per(1, time.Hour), ratelimit.MaxWait(time.Second))
	drain(none)
	ctx := t.Context()
	tests := []struct {
		name string
		want float64
		f    func()
	}{
		{"TryAcquire, free", 0, func() { free.TryAcquire() }},
		{"Acquire, free", 0, func() { sink = free.Acquire(ctx) }},
		{"Enter, free", 0, func() { sink = free.Enter(ctx, time.Second, 1) }},
		{"EnterAsync, free", 0, func() { _, sink = free.EnterAsync(ctx, 0, 0, nil) }},
		{"TryAcquire, refused", 0, func() { none.TryAcquire() }},
		{"Enter, refused", 1, func() { sink = none.Enter(ctx, 0, 0) }},
		{"EnterAsync, refused", 1, func() { _, sink = none.EnterAsync(ctx, time.Second, 0, nil) }},
		{"Acquire, the wait does not fit", 1, func() { sink = none.Acquire(ctx) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
	if size := unsafe.Sizeof(ratelimit.Error{}); size > 48 {
		t.Errorf("a refusal is %d bytes", size)
	}
}

// sink keeps results, so that they are made.
var sink error
