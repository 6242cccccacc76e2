package peers_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/bench"
)

// parts are what a call cannot do without, and nothing else: no layers that may
// be there or not, no guard against a panic, no look whether the registry is
// closed or the context has ended. What they take is the floor of a row.
type parts struct {
	base  time.Time
	line  [8]atomic.Uint64 // a stripe of counters
	word  atomic.Uint64    // of a bulkhead or a limiter
	slot  atomic.Pointer[record]
	group sync.WaitGroup
}

// record has the size of an attempt's context and of its parent two pointers.
type record struct {
	parent context.Context
	state  atomic.Int64
	_      [5]int64
}

// refusal has the size of an error that says how long to wait.
type refusal struct {
	id   string
	wait time.Duration
}

func (r *refusal) Error() string { return r.id }

func (p *parts) begin() { p.line[0].Add(1) }
func (p *parts) end()   { p.line[1].Add(1) }

func (p *parts) swap() { w := p.word.Load(); p.word.CompareAndSwap(w, w+1) }

func (p *parts) call(ctx context.Context) error {
	_, err := bench.Op(ctx)
	return err
}

// made keeps the compiler from leaving an allocation on the stack.
var made atomic.Pointer[record]

//go:noinline
func (p *parts) context(ctx context.Context) *record {
	r := &record{parent: ctx}
	if p.base.IsZero() {
		made.Store(r)
	}
	return r
}

// BenchmarkParts is the floor of rows, by the name of their benchmark.
func BenchmarkParts(b *testing.B) {
	ctx := context.Background()
	p := &parts{base: time.Now()}
	armed := func() error {
		r := p.context(ctx)
		p.slot.CompareAndSwap(nil, r)
		err := p.call(ctx)
		p.slot.CompareAndSwap(r, nil)
		return err
	}
	slotted := func(call func() error) error {
		p.swap()
		err := call()
		p.swap()
		return err
	}
	permit := func() {
		_ = time.Since(p.base)
		p.swap()
		p.line[2].Add(1)
	}
	refuse := func() error {
		_ = time.Since(p.base)
		p.line[3].Add(1)
		return &refusal{"bench", time.Second}
	}
	counted := func(call func() error) func() error {
		return func() error {
			p.begin()
			err := call()
			p.end()
			return err
		}
	}
	op := func() error { return p.call(ctx) }
	compare(b,
		loop("Timeout", counted(armed)),
		loop("Retry", counted(func() error {
			r := p.context(ctx)
			err := p.call(ctx)
			r.state.Store(1)
			return err
		})),
		loop("Bulkhead", counted(func() error { return slotted(op) })),
		loop("RateLimit", counted(func() error { permit(); return p.call(ctx) })),
		loop("FullStack", counted(func() error {
			permit()
			return slotted(armed)
		})),
		side{"Refused", func(b *testing.B) {
			b.Helper()
			b.ReportAllocs()
			f := counted(refuse)
			for b.Loop() {
				if f() == nil {
					b.Fatal("not refused")
				}
			}
		}},
		loop("Async", counted(func() error {
			r := p.context(ctx)
			p.group.Go(func() { r.state.Store(1) })
			p.group.Wait()
			return nil
		})),
	)
}

// An allocation of 64 bytes, and nothing else.
func BenchmarkPartsParallel(b *testing.B) {
	ctx := context.Background()
	p := &parts{base: time.Now()}
	compare(b, loopParallel("allocation", func() error {
		p.context(ctx)
		return nil
	}))
}
