package bench

import (
	"context"
	"testing"

	"resilience4cata.dev/go/pipeline"
)

// Execute calls fn through p, one call after the other.
func Execute(b *testing.B, p *pipeline.Pipeline[int], ctx context.Context, fn func(context.Context) (int, error)) { //nolint:revive // a testing.B comes first
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Execute(ctx, fn); err != nil {
			b.Fatal(err)
		}
	}
}

// ExecuteParallel calls fn through p from all processors at once.
func ExecuteParallel(b *testing.B, p *pipeline.Pipeline[int], ctx context.Context, fn func(context.Context) (int, error)) { //nolint:revive // see Execute
	b.Helper()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Execute(ctx, fn); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// ExecuteFreshParent calls fn with a cancellable context of its own for each
// call, as net/http has them. Making it counts.
func ExecuteFreshParent(b *testing.B, p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := p.Execute(ctx, fn)
		cancel()
		if err != nil {
			b.Fatal(err)
		}
	}
}

// Refused makes calls that p refuses. Nobody reads the error's text.
func Refused(b *testing.B, p *pipeline.Pipeline[int]) {
	b.Helper()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Execute(ctx, Op); err == nil {
			b.Fatal("not refused")
		}
	}
}

// Async starts fn and waits for it, one call after the other.
func Async(b *testing.B, p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) {
	b.Helper()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.ExecuteAsync(ctx, fn).Get(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// AsyncParallel does the same from all processors at once.
func AsyncParallel(b *testing.B, p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) {
	b.Helper()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		for pb.Next() {
			if _, err := p.ExecuteAsync(ctx, fn).Get(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// Stages makes calls whose work is a promise that somebody completes, as for a
// broker's acknowledgement: promise, call, completion and result are counted.
func Stages(b *testing.B, p *pipeline.Pipeline[int]) {
	b.Helper()
	s := NewStage(p)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Call(); err != nil {
			b.Fatal(err)
		}
	}
}

// Stage makes calls with pending work, one at a time.
type Stage struct {
	p       *pipeline.Pipeline[int]
	promise *pipeline.Promise[int]
	start   func(context.Context) *pipeline.Future[int]
}

// NewStage returns a Stage that calls through p.
//
// The function that starts the work is made once. One that captures a variable
// of the loop would be an allocation a call; it is the caller's own, and he has
// it with every library and with none.
func NewStage(p *pipeline.Pipeline[int]) *Stage {
	s := &Stage{p: p}
	s.start = func(context.Context) *pipeline.Future[int] { return s.promise.Future() }
	return s
}

// Call starts a call, completes its work, and takes the result.
func (s *Stage) Call() error {
	ctx := context.Background()
	s.promise = pipeline.NewPromise[int]()
	f := s.p.ExecuteFuture(ctx, s.start)
	s.promise.Complete(1, nil)
	_, err := f.Get(ctx)
	return err
}
