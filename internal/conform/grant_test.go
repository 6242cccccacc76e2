package conform_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// B-3: a waiter is cancelled at the moment of its grant. It runs, or it is
// cancelled and the slot goes to the one behind it, who runs in every round.
func TestField_BH11_GrantAgainstCancel(t *testing.T) {
	for _, form := range forms {
		t.Run(string(form), func(t *testing.T) {
			reg, err := registry.New()
			if err != nil {
				t.Fatal(err)
			}
			slot := []bulkhead.Option{bulkhead.MaxConcurrent(1), bulkhead.Queue(2), bulkhead.Name("shared")}
			bare, err := pipeline.New[int](reg, "bare").Bulkhead(slot...).Build()
			if err != nil {
				t.Fatal(err)
			}
			full, err := pipeline.New[int](reg, "full").Bulkhead(slot...).Timeout(time.Hour).Retry(retry.MaxAttempts(2)).Build()
			if err != nil {
				t.Fatal(err)
			}
			b, _ := reg.Bulkhead("shared")
			g := &granting{T: t, form: form, b: b}
			for i := range rounds(100_000) {
				g.p = bare
				if i%8 >= 4 {
					g.p = full
				}
				g.round(i)
			}
			checkBalance(t, reg)
			var late uint64
			for _, p := range reg.Snapshot().Pipelines {
				late += p.Abandoned.LateSuccess
			}
			if g.ranInVain != late {
				t.Errorf("%d functions ran for cancelled futures, %d of them are counted", g.ranInVain, late)
			}
			t.Logf("granted %d, cancelled %d, of these running already %d", g.granted, g.cancelled, g.ranInVain)
		})
	}
}

type granting struct {
	*testing.T
	form form
	p    *pipeline.Pipeline[int]
	b    *bulkhead.Policy

	granted, cancelled, ranInVain uint64
}

func (g *granting) round(i int) {
	if !g.b.TryAcquire() {
		g.Fatalf("round %d: the slot is not free", i)
	}
	var ran, behind atomic.Int32
	first := func(context.Context) (int, error) { ran.Add(1); return 1, nil }
	second := func(context.Context) (int, error) { behind.Add(1); return 2, nil }
	w1 := begin(g.p, g.form, first, completed(first))
	eventually(func() bool { return g.b.Snapshot().Waiting == 1 })
	w2 := begin(g.p, g.form, second, completed(second))
	eventually(func() bool { return g.b.Snapshot().Waiting == 2 })

	cancel := w1.cancel
	if w1.future != nil && i%2 == 0 {
		cancel = func() { w1.future.Cancel() }
	}
	switch i % 16 {
	case 0, 1:
		cancel()
		g.b.Release()
	case 2, 3:
		g.b.Release()
		cancel()
	default:
		together(cancel, g.b.Release)
	}

	a1, a2 := w1.get(), w2.get()
	if a2.v != 2 || a2.err != nil || behind.Load() != 1 {
		g.Fatalf("round %d: the one behind: %+v, ran %d times", i, a2, behind.Load())
	}
	n := ran.Load()
	switch {
	case a1.err == nil && n == 1:
		g.granted++
	case errors.Is(a1.err, context.Canceled) && n == 0:
		g.cancelled++
	case errors.Is(a1.err, context.Canceled) && n == 1 && w1.future != nil:
		// The grant won and the function was running when its future was
		// cancelled: abandoned work, as after any cancel.
		g.cancelled++
		g.ranInVain++
	default:
		g.Fatalf("round %d: %+v, ran %d times", i, a1, n)
	}
	if s := g.b.Snapshot(); s.Available != 1 || s.Waiting != 0 {
		eventually(func() bool { return g.b.Snapshot().Available == 1 }) // hangs if the slot is lost
		if s := g.b.Snapshot(); s.Waiting != 0 {
			g.Fatalf("round %d: %d waiting", i, s.Waiting)
		}
	}
}
