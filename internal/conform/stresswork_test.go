package conform_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// worker makes calls, one after the other, and keeps some futures for later.
type worker struct {
	*stress
	rng  *rand.Rand
	kept []func()
}

func (w *worker) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *worker) micros(n int) time.Duration { return time.Duration(w.rng.IntN(n)) * time.Microsecond }

// call makes one call in a random form, with a random context and outcome.
func (w *worker) call() {
	p := w.pipes[w.rng.IntN(len(w.pipes))]
	ctx, done := w.context()
	switch w.rng.IntN(3) {
	case 0:
		w.sync(ctx, p)
		done()
	case 1:
		w.future(ctx, p, p.p.ExecuteAsync(ctx, w.function(p, true)), done)
	default:
		w.future(ctx, p, p.p.ExecuteFuture(ctx, w.stage(p)), done)
	}
	if len(w.kept) > 20 {
		w.settle()
	}
}

// context is one that never ends, has ended, or will end soon.
func (w *worker) context() (ctx context.Context, done func()) {
	if w.chance(60) {
		return context.Background(), func() {}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if w.chance(5) {
		cancel(errGone)
		return ctx, func() {}
	}
	timer := w.clk.AfterFunc(w.micros(3000), func() { cancel(errGone) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

func (w *worker) sync(ctx context.Context, p *stressed) {
	p.calls.Add(1)
	end := make(chan struct{})
	go func() { // it may be ended by Goexit
		defer close(end)
		returned := false
		defer func() {
			if recover() != nil || !returned {
				p.panicked.Add(1)
			}
		}()
		v, err := p.p.Execute(ctx, w.function(p, true))
		returned = true
		p.answered(v, err)
	}()
	<-end
}

// answered is what a caller does with its answer.
func (p *stressed) answered(v int, err error) {
	if err == nil {
		p.succeeded.Add(1)
		if v > 0 {
			p.delivered.Add(1)
		}
	}
	// Where the call was ended while it dealt with a panic, the error tells of both.
	ended := errors.Is(err, context.Canceled) || errors.Is(err, registry.ErrClosed)
	var panicked *pipeline.PanicError
	if !ended && (errors.Is(err, pipeline.ErrGoexit) || errors.As(err, &panicked)) {
		p.panicked.Add(1)
	}
}

// function is the work: it may fail, panic, take its time, and honor its context.
func (w *worker) function(p *stressed, mayExit bool) func(context.Context) (int, error) {
	kind, takes, id := w.rng.IntN(100), w.micros(3000), 1+w.rng.IntN(1_000_000)
	return func(ctx context.Context) (int, error) {
		switch {
		case kind < 55:
		case kind < 65:
			return 0, errBoom
		case kind < 75:
			for range 5 {
				runtime.Gosched()
			}
		case kind < 88:
			if err := w.clk.Sleep(ctx, takes); err != nil {
				return 0, err
			}
		case kind < 94:
			_ = w.clk.Sleep(context.Background(), takes)
		case kind < 97:
			panic(errBoom)
		case mayExit:
			runtime.Goexit()
		}
		if !p.plain {
			p.produced.Add(1)
		}
		return id, nil
	}
}

// stage is the work as one: complete from the start, later, after its cancel, or
// a call of another pipeline.
func (w *worker) stage(p *stressed) func(context.Context) *pipeline.Future[int] {
	kind, takes, id := w.rng.IntN(100), w.micros(3000), 1+w.rng.IntN(1_000_000)
	inner := w.pipes[w.rng.IntN(len(w.pipes))]
	return func(ctx context.Context) *pipeline.Future[int] {
		promise := pipeline.NewPromise[int]()
		complete := func() {
			if p.produced.Add(1); !promise.Complete(id, nil) {
				p.produced.Add(-1) // it stays ours
			}
		}
		switch {
		case p.plain || kind < 5: // a plain pipeline has nobody who discards
			promise.Complete(0, nil)
		case kind < 40:
			complete()
		case kind < 50:
			promise.Complete(0, errBoom)
		case kind < 55:
			panic(errBoom)
		case kind < 58:
			return nil
		case kind < 75:
			inner.calls.Add(1)
			f := inner.p.ExecuteAsync(ctx, func(context.Context) (int, error) { return 0, nil })
			w.late.Add(1)
			f.OnComplete(func(v int, err error) {
				defer w.late.Done()
				inner.answered(v, err)
			})
			if kind < 65 {
				return f.View()
			}
			return f
		default:
			w.late.Add(1)
			timer := w.clk.AfterFunc(takes, func() { defer w.late.Done(); complete() })
			if kind < 90 {
				promise.OnCancel(func() {
					if timer.Stop() {
						w.late.Done()
					}
				})
			}
		}
		return promise.Future()
	}
}

// future deals with a future: waits for it, cancels it, or keeps it for later.
func (w *worker) future(ctx context.Context, p *stressed, f *pipeline.Future[int], done func()) {
	p.calls.Add(1)
	finish := func() {
		w.await(f.Done(), "an answer", p)
		v, err := f.Get(context.Background())
		p.answered(v, err)
		w.await(f.Work().Done(), "the work's end", p)
		done()
	}
	switch w.rng.IntN(10) {
	case 0:
		w.kept = append(w.kept, finish)
	case 1:
		f.Cancel()
		finish()
	case 2:
		if _, err := f.View().Get(ctx); err == nil && ctx.Err() == nil {
			<-f.Done()
		}
		finish()
	default:
		finish()
	}
}

func (w *worker) settle() {
	for _, finish := range w.kept {
		finish()
	}
	w.kept = nil
}

// disturb changes limits, rates and the breakers' states all the time.
func (s *stress) disturb(rng *rand.Rand) {
	for {
		select {
		case <-s.stop:
			return
		default:
		}
		snapshot := s.reg.Snapshot()
		for _, row := range snapshot.Bulkheads {
			b, _ := s.reg.Bulkhead(row.ID)
			if err := b.SetLimit(rng.IntN(6)); err != nil {
				s.Error(err)
			}
		}
		for _, row := range snapshot.RateLimiters {
			l, _ := s.reg.RateLimiter(row.ID)
			if err := l.SetRate(1+rng.IntN(40), time.Millisecond, 1+rng.IntN(40)); err != nil {
				s.Error(err)
			}
		}
		for _, row := range snapshot.CircuitBreakers {
			b, _ := s.reg.CircuitBreaker(row.ID)
			switch rng.IntN(20) {
			case 0:
				b.ForceOpen()
			case 1:
				b.ForceClosed()
			case 2, 3, 4:
				b.Reset()
			}
		}
		_ = s.clk.Sleep(context.Background(), 300*time.Microsecond)
	}
}
