package retry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

// counted is a clock that counts how often it is read.
type counted struct {
	clock.Clock
	reads atomic.Int64
}

func (c *counted) Now() time.Time {
	c.reads.Add(1)
	return c.Clock.Now()
}

func TestSuccessReadsNoClock(t *testing.T) {
	ok := func(context.Context) error { return nil }
	for _, tc := range []struct {
		name  string
		opts  []retry.Option
		reads int64
	}{
		{"plain", nil, 0},
		{"with a reserve", []retry.Option{retry.Reserve(time.Second)}, 0},
		{"with a budget", []retry.Option{retry.Budget(1, 1)}, 1},
	} {
		clk := &counted{Clock: clock.NewManual(start)}
		p := on(t, clk, tc.opts...)
		before := clk.reads.Load()
		if err := p.Do(t.Context(), ok); err != nil {
			t.Fatal(err)
		}
		if got := clk.reads.Load() - before; got != tc.reads {
			t.Errorf("%s: %d readings, want %d", tc.name, got, tc.reads)
		}
	}
}

var sink error

func TestBeginAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, opts := range map[string][]retry.Option{
		"plain":       nil,
		"MaxDuration": {retry.MaxDuration(time.Hour)},
		"budget":      {retry.Budget(1, 1)},
	} {
		p := on(t, clock.System(), opts...)
		if n := testing.AllocsPerRun(100, func() {
			r := p.Begin()
			r.Entered = true
			if r.Attempt != 1 {
				t.Error("not the first attempt")
			}
		}); n != 0 {
			t.Errorf("%s: a first attempt that succeeds allocates %v times, want 0", name, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			r := p.Begin()
			r.Entered = true
			_, stop := p.Next(context.Background(), &r, retry.Returned, errBoom, retry.ByRules)
			if stop != nil {
				sink = stop
			}
		}); n > 1 { // errors.As looks for a hint
			t.Errorf("%s: a decision to retry allocates %v times, want at most one", name, n)
		}
	}
	p := on(t, clock.System())
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { sink = p.Do(ctx, func(context.Context) error { return nil }) }); n != 1 {
		t.Errorf("Do allocates %v times, want once: the attempt's context", n)
	}
	open := open(0)
	if n := testing.AllocsPerRun(100, func() {
		r := p.Begin()
		_, stop := p.Next(ctx, &r, retry.Refused, open, retry.ByRules)
		sink = p.Fail(ctx, &r, stop)
	}); n > 1 {
		t.Errorf("a refusal that is not retried allocates %v times", n)
	}
}

func TestRunIsSmall(t *testing.T) { // a call holds it on its stack, a future in its record
	if got := unsafe.Sizeof(retry.Run{}); got > 80 {
		t.Errorf("a Run is %d bytes, want at most 80", got)
	}
}

func BenchmarkBegin(b *testing.B) {
	p := on(b, clock.System())
	for b.Loop() {
		r := p.Begin()
		r.Entered = true
	}
}

func BenchmarkDo(b *testing.B) {
	ok := func(context.Context) error { return nil }
	for name, opts := range map[string][]retry.Option{"plain": nil, "budget": {retry.Budget(0.2, 1)}, "MaxDuration": {retry.MaxDuration(time.Minute)}} {
		b.Run(name, func(b *testing.B) {
			p := on(b, clock.System(), opts...)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				sink = p.Do(ctx, ok)
			}
		})
	}
}
