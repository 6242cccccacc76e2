package callctx_test

import (
	"math/bits"
	"testing"

	"resilience4cata.dev/go/internal/callctx"
)

var sink *callctx.Context

func TestOneAllocationOf64Bytes(t *testing.T) {
	if callctx.Size > 64 || bits.UintSize == 64 && callctx.Size != 64 {
		t.Errorf("a Context is %d bytes, want 64", callctx.Size)
	}
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	type key struct{}
	plan, parent, s := retrying(), t.Context(), new(slot)
	arm := func() {
		sink = callctx.New(parent, plan)
		s.Store(sink)
		sink.Armed(s)
	}
	for name, f := range map[string]func(){
		"finish": func() { arm(); sink.Finish() },
		"expire": func() { arm(); sink.WheelExpire(s); sink.Finish() },
		"questions": func() {
			arm()
			_ = sink.Err()
			sink.Deadline()
			_ = sink.Value(key{})
			callctx.Find(sink).Attempt()
			sink.Finish()
			_ = sink.Err()
			sink.Done()
		},
		"without a deadline": func() { sink = callctx.New(parent, plan); sink.Finish() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 1 {
			t.Errorf("%s: %v allocations, want 1", name, n)
		}
	}
}

func BenchmarkFinish(b *testing.B) {
	plan, s := newPlan(), new(slot)
	b.ReportAllocs()
	for b.Loop() {
		sink = callctx.New(b.Context(), plan)
		s.Store(sink)
		sink.Armed(s)
		sink.Finish()
	}
}

func BenchmarkDone(b *testing.B) {
	plan, s := newPlan(), new(slot)
	b.ReportAllocs()
	for b.Loop() {
		sink = callctx.New(b.Context(), plan)
		s.Store(sink)
		sink.Armed(s)
		sink.Done()
		sink.Finish()
	}
}
