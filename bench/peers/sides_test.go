package peers_test

import (
	"context"
	"flag"
	"slices"
	"testing"

	failsafe "github.com/failsafe-go/failsafe-go"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/pipeline"
)

// A machine that gets slower during a pass makes those look bad that come last,
// so every other pass is run backwards.
var backwards = flag.Bool("backwards", false, "run the sides of each benchmark in the opposite order")

// side is one way to do the operation.
type side struct {
	lib string
	run func(*testing.B)
}

func compare(b *testing.B, sides ...side) {
	b.Helper()
	if *backwards {
		slices.Reverse(sides)
	}
	for _, s := range sides {
		b.Run("lib="+s.lib, s.run)
	}
}

func ours(run func(*testing.B)) side { return side{"ours", run} }

func pipelineOf(tb testing.TB, layers ...bench.Layer) *pipeline.Pipeline[int] {
	tb.Helper()
	p, _ := bench.Build(tb, layers...)
	return p
}

// execute is our side where only the function, its context and the layers vary.
func execute(ctx context.Context, fn func(context.Context) (int, error), layers ...bench.Layer) side {
	return ours(func(b *testing.B) { b.Helper(); bench.Execute(b, pipelineOf(b, layers...), ctx, fn) })
}

func executeParallel(ctx context.Context, fn func(context.Context) (int, error), layers ...bench.Layer) side {
	return ours(func(b *testing.B) { b.Helper(); bench.ExecuteParallel(b, pipelineOf(b, layers...), ctx, fn) })
}

// loop is a peer whose operation is f.
func loop(lib string, f func() error) side {
	return side{lib, func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	}}
}

func loopParallel(lib string, f func() error) side {
	return side{lib, func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}}
}

// failsafeCall returns a call through failsafe-go's executor. A context that can
// end is handed over with each call, as it is to Execute; without one this is
// saved.
func failsafeCall(ctx context.Context, fn func(context.Context) (int, error), policies ...failsafe.Policy[int]) func() error {
	ex := failsafe.With(policies...)
	run := func(e failsafe.Execution[int]) (int, error) { return fn(e.Context()) }
	if ctx.Done() == nil {
		return func() error {
			_, err := ex.GetWithExecution(run)
			return err
		}
	}
	return func() error {
		_, err := ex.WithContext(ctx).GetWithExecution(run)
		return err
	}
}
