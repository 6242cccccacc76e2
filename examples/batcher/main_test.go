package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// In a bubble: the machine may be as slow as it likes.
func TestProgram_SaysWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"10 answered, 0 timed out, 0 refused, 0 failed",
			"requests: 3",
			"0 answered, 4 timed out, 0 refused, 0 failed",
			"15 answered, 0 timed out, 15 refused, 0 failed",
			"InFlight:0",
			"0 in use",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the output lacks %q", want)
			}
		}
		if t.Failed() {
			t.Log(out.String())
		}
	})
}

// bench is a batcher on a manual clock whose flushes the test sees and answers.
type bench struct {
	clk     *clock.Manual
	b       *batcher
	lookups *pipeline.Pipeline[string]
	flushed chan flush
}

type flush struct {
	keys   []string
	answer chan error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)).Passive()
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	w := &bench{
		clk:     clk,
		lookups: pipeline.Must(pipeline.New[string](reg, "lookups").Timeout(time.Second).Build()),
		flushed: make(chan flush),
	}
	w.b = newBatcher(clk, 3, 2*time.Second, func(_ context.Context, keys []string) ([]string, error) {
		f := flush{keys, make(chan error)}
		w.flushed <- f
		return keys, <-f.answer
	})
	t.Cleanup(func() { w.b.close(context.Background()) })
	return w
}

func (w *bench) ask(t *testing.T, key string) *pipeline.Future[string] {
	t.Helper()
	return w.lookups.ExecuteFuture(t.Context(), func(context.Context) *pipeline.Future[string] { return w.b.lookup(key) })
}

func TestBatcher_AFullBatchLeavesAtOnce(t *testing.T) {
	w := newBench(t)
	a, b, c := w.ask(t, "a"), w.ask(t, "b"), w.ask(t, "c")
	f := <-w.flushed
	if diff := cmp.Diff([]string{"a", "b", "c"}, f.keys); diff != "" {
		t.Error(diff)
	}
	f.answer <- nil
	for _, future := range []*pipeline.Future[string]{a, b, c} {
		if _, err := future.Get(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := w.clk.Pending(); n != 0 {
		t.Errorf("%d events are pending", n)
	}
}

func TestBatcher_OneAnswerFailsTheWholeBatch(t *testing.T) {
	w := newBench(t)
	down := errors.New("down")
	futures := []*pipeline.Future[string]{w.ask(t, "a"), w.ask(t, "b"), w.ask(t, "c")}
	(<-w.flushed).answer <- down
	for _, f := range futures {
		if _, err := f.Get(t.Context()); !errors.Is(err, down) {
			t.Errorf("got %v", err)
		}
	}
}

// A key whose caller got its timeout is taken out of the batch before it leaves.
func TestBatcher_ATimeoutTakesTheKeyOut(t *testing.T) {
	w := newBench(t)
	early := w.ask(t, "early")
	w.clk.Advance(999 * time.Millisecond)
	w.ask(t, "later")
	w.clk.Advance(time.Millisecond)
	if _, err := early.Get(t.Context()); !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("got %v", err)
	}

	w.ask(t, "more")
	w.ask(t, "last")
	f := <-w.flushed
	if diff := cmp.Diff([]string{"later", "more", "last"}, f.keys); diff != "" {
		t.Error(diff)
	}
	f.answer <- nil
}

// A caller that leaves alone ends the lingering as well.
func TestBatcher_AnEmptyBatchDoesNotLinger(t *testing.T) {
	w := newBench(t)
	future := w.ask(t, "a")
	if !future.Cancel() {
		t.Error("the future had ended")
	}
	if n := w.clk.Pending(); n != 0 {
		t.Errorf("%d events are pending", n)
	}
}

// A key that has left is answered in vain; its work still tells how it ended.
func TestBatcher_ALateAnswerIsTheWorksOwn(t *testing.T) {
	w := newBench(t)
	futures := []*pipeline.Future[string]{w.ask(t, "a"), w.ask(t, "b"), w.ask(t, "c")}
	f := <-w.flushed
	w.clk.Advance(time.Second)
	f.answer <- nil
	w.b.flights.Wait()
	for i, future := range futures {
		if _, err := future.Get(t.Context()); !errors.Is(err, timeout.ErrExceeded) {
			t.Errorf("got %v", err)
		}
		if v, done, err := future.Work().Poll(); v != f.keys[i] || !done || err != nil {
			t.Errorf("the work: %q %v %v", v, done, err)
		}
	}
}
