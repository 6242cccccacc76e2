package bulkhead_test

import (
	"testing"

	"resilience4cata.dev/go/policy/bulkhead"
)

// The rows "channel" are the idiom to compare with: a buffered channel as a
// semaphore, with the caller's context in the select where Acquire has one.

func BenchmarkFreeSlot(b *testing.B) {
	ctx := b.Context()
	b.Run("Acquire", func(b *testing.B) {
		p := newPolicy(b, bulkhead.Config{MaxConcurrent: 10})
		b.ReportAllocs()
		for b.Loop() {
			if p.Acquire(ctx) != nil {
				b.Fatal("refused")
			}
			p.Release()
		}
	})
	b.Run("TryAcquire", func(b *testing.B) {
		p := newPolicy(b, bulkhead.Config{MaxConcurrent: 10})
		b.ReportAllocs()
		for b.Loop() {
			if !p.TryAcquire() {
				b.Fatal("refused")
			}
			p.Release()
		}
	})
	b.Run("channel", func(b *testing.B) {
		slots := make(chan struct{}, 10)
		b.ReportAllocs()
		for b.Loop() {
			slots <- struct{}{}
			<-slots
		}
	})
	b.Run("channel-select", func(b *testing.B) {
		slots := make(chan struct{}, 10)
		b.ReportAllocs()
		for b.Loop() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				b.Fatal("done")
			}
			<-slots
		}
	})
}

func BenchmarkFreeSlotParallel(b *testing.B) {
	b.Run("TryAcquire", func(b *testing.B) {
		p := newPolicy(b, bulkhead.Config{MaxConcurrent: 1000})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if p.TryAcquire() {
					p.Release()
				}
			}
		})
	})
	b.Run("channel", func(b *testing.B) {
		slots := make(chan struct{}, 1000)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				slots <- struct{}{}
				<-slots
			}
		})
	})
}

func BenchmarkFull(b *testing.B) {
	ctx := b.Context()
	p := newPolicy(b, bulkhead.Config{MaxConcurrent: 1})
	mustAcquire(b, p)
	b.ReportAllocs()
	for b.Loop() {
		if p.Acquire(ctx) == nil {
			b.Fatal("admitted")
		}
	}
}

// Each operation is one hand-over: eight goroutines take turns on one slot.
func BenchmarkHandOver(b *testing.B) {
	ctx := b.Context()
	p := newPolicy(b, bulkhead.Config{MaxConcurrent: 1, Queue: bulkhead.Unbounded, MaxWait: bulkhead.Unbounded})
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := p.Acquire(ctx); err != nil {
				b.Error(err)
				return
			}
			p.Release()
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	p := newPolicy(b, bulkhead.Config{MaxConcurrent: 10})
	b.ReportAllocs()
	for b.Loop() {
		if p.Snapshot().InUse != 0 {
			b.Fatal("in use")
		}
	}
}
