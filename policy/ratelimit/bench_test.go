package ratelimit_test

import (
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
)

func BenchmarkTryAcquire(b *testing.B) {
	p := newOn(b, clock.System(), ratelimit.PerSecond(1_000_000_000))
	b.ReportAllocs()
	for b.Loop() {
		p.TryAcquire()
	}
}

// Units are a billionth of a nanosecond here, so the bucket is replaced every second.
func BenchmarkTryAcquireAwkwardRate(b *testing.B) {
	p := newOn(b, clock.System(), ratelimit.PerSecond(999_999_999))
	b.ReportAllocs()
	for b.Loop() {
		p.TryAcquire()
	}
}

func BenchmarkTryAcquireParallel(b *testing.B) {
	p := newOn(b, clock.System(), ratelimit.PerSecond(1_000_000_000))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.TryAcquire()
		}
	})
}

func BenchmarkAcquire(b *testing.B) {
	p := newOn(b, clock.System(), ratelimit.PerSecond(1_000_000_000))
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		sink = p.Acquire(ctx)
	}
}

func BenchmarkRefused(b *testing.B) {
	p := newOn(b, clock.System(), ratelimit.Per(1, time.Hour))
	drain(p)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		sink = p.Acquire(ctx)
	}
}

// A permit that has to be waited for, all of it but the time: the clock is moved
// by the wait.
func BenchmarkWait(b *testing.B) {
	p := newOn(b, clock.NewManual(start), ratelimit.PerSecond(1), ratelimit.MaxWait(time.Hour))
	ctx := b.Context()
	drain(p)
	b.ReportAllocs()
	for b.Loop() {
		sink = p.Acquire(ctx)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	p := newOn(b, clock.System(), ratelimit.PerSecond(1000))
	b.ReportAllocs()
	for b.Loop() {
		p.Snapshot()
	}
}
