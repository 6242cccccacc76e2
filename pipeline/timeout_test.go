package pipeline_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

func twoSeconds(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(2 * time.Second) }

func TestTimeout_T2_K1_AFunctionThatHonorsItsContextReturnsAtTheDeadline(t *testing.T) {
	w := newWorld(t)
	p := build(w, "reports", twoSeconds)
	interrupted := errors.New("interrupted")
	var seen error
	v, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) {
		if err := w.clk.Sleep(ctx, 5*time.Second); err != nil {
			seen = context.Cause(ctx)
			return 0, errors.Join(interrupted, err)
		}
		return 7, nil
	})
	w.elapsed(2 * time.Second)
	if v != 0 {
		t.Errorf("value %d", v)
	}
	w.is(err, timeout.ErrExceeded, context.DeadlineExceeded, interrupted)
	w.isNot(err, context.Canceled)
	var te, cause *timeout.Error
	if !errors.As(err, &te) || te.Instance != "reports" || te.Limit != 2*time.Second || !te.Started() {
		t.Errorf("got %#v", te)
	}
	if !errors.As(seen, &cause) || cause.Instance != te.Instance || cause.Limit != te.Limit || cause.Cause != nil || !cause.Started() {
		t.Errorf("T-11: the cause inside was %#v", seen)
	}
	if c := w.calls("reports"); c.TimedOut != 1 || c.Started != 1 {
		t.Errorf("%+v", c)
	}
	if e := heard[timeout.Exceeded](w); len(e) != 1 || !e[0].WorkDone || e[0].Limit != 2*time.Second || e[0].ID() != "reports" {
		t.Errorf("events %+v", e)
	}
}

func TestTimeout_T3_K2_ALateValueIsDiscardedOnce(t *testing.T) {
	w := newWorld(t)
	var discarded []int
	p := build(w, "reports", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(2 * time.Second).OnDiscard(func(v int) { discarded = append(discarded, v) })
	})
	_, err := p.Execute(t.Context(), func(context.Context) (int, error) {
		w.clk.Advance(5 * time.Second)
		return 7, nil
	})
	w.elapsed(5 * time.Second)
	var te *timeout.Error
	if !errors.As(err, &te) || te.Cause != nil {
		t.Errorf("got %v", err)
	}
	if len(discarded) != 1 || discarded[0] != 7 {
		t.Errorf("discarded %v", discarded)
	}
	late := heard[pipeline.LateSuccess](w)
	if len(late) != 1 || late[0].Late != 3*time.Second || late[0].Attempt != 1 || late[0].Policy() != "pipeline" {
		t.Errorf("late events %+v", late)
	}
}

func TestTimeout_T7_OneNanosecondDecides(t *testing.T) {
	w := newWorld(t)
	p := build(w, "reports", twoSeconds)
	v, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) {
		return 1, w.clk.Sleep(ctx, 2*time.Second-1)
	})
	if v != 1 || err != nil {
		t.Errorf("a nanosecond early: %d, %v", v, err)
	}
	_, err = p.Execute(t.Context(), func(ctx context.Context) (int, error) {
		return 1, w.clk.Sleep(ctx, 2*time.Second)
	})
	w.is(err, timeout.ErrExceeded)
}

func TestField_TO03_TheCallersCancellationIsNoTimeout(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(100*time.Millisecond).Retry(retry.MaxAttempts(3), retry.Constant(0))
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("client went away")
	attempts := 0
	_, err := p.Execute(ctx, func(ctx context.Context) (int, error) {
		attempts++
		w.clk.Advance(10 * time.Millisecond)
		cancel(why)
		return 0, ctx.Err()
	})
	w.is(err, context.Canceled)
	w.isNot(err, timeout.ErrExceeded)
	if !errors.Is(context.Cause(ctx), why) {
		t.Error("the cause is lost")
	}
	if c := w.calls("x"); attempts != 1 || c.Cancelled != 1 || c.TimedOut != 0 {
		t.Errorf("attempts %d, %+v", attempts, c)
	}
	if e := heard[timeout.Exceeded](w); len(e) != 0 {
		t.Errorf("events %v", e)
	}
}

func TestTimeout_T10_TheCallersEarlierEndVoidsOurDeadline(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	ctx, cancel := context.WithCancel(t.Context())
	own := errors.New("own")
	_, err := p.Execute(ctx, func(context.Context) (int, error) {
		cancel()
		w.clk.Advance(time.Hour)
		return 0, own
	})
	if err != own { //nolint:errorlint // it must pass unchanged
		t.Errorf("got %v, want the function's own error unchanged", err)
	}
	if c := w.calls("x"); c.TimedOut != 0 || c.Cancelled != 1 {
		t.Errorf("%+v", c)
	}
}

func TestField_TO06_HugeTimeoutsDoNotFire(t *testing.T) {
	w := newWorld(t)
	for i, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 2562047 * time.Hour} {
		p := build(w, string(rune('a'+i)), func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(d) })
		v, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) {
			if end, ok := ctx.Deadline(); ok && end.Before(w.clk.Now().Add(100*365*24*time.Hour)) {
				t.Errorf("%v: deadline %v", d, end)
			}
			w.clk.Advance(time.Hour)
			return 7, ctx.Err()
		})
		if v != 7 || err != nil {
			t.Errorf("%v: %d, %v", d, v, err)
		}
	}
}

func TestField_TO07_ACallThatTimesOutInTheQueueNeverRuns(t *testing.T) {
	w := newWorld(t)
	shared := bulkhead.Name("shared")
	holder := build(w, "holder", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(time.Minute), shared)
	})
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(50*time.Millisecond).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(time.Minute), shared)
	})
	ran := 0
	_, _ = holder.Execute(t.Context(), func(context.Context) (int, error) {
		_, err := p.Execute(t.Context(), func(context.Context) (int, error) { ran++; return 0, nil })
		w.elapsed(50 * time.Millisecond)
		w.is(err, timeout.ErrExceeded)
		var te *timeout.Error
		if !errors.As(err, &te) || te.Started() {
			t.Errorf("started: %+v", te)
		}
		w.clk.Advance(150 * time.Millisecond)
		return 0, nil
	})
	if ran != 0 {
		t.Errorf("ran %d times", ran)
	}
	if s := w.reg.Snapshot().Bulkheads[0]; s.Available != 1 || s.Waiting != 0 || s.Rejected != 0 {
		t.Errorf("%+v", s)
	}
}

func TestField_TO02_ADoneContextTakesNothing(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		_, err := p.Execute(ctx, func(context.Context) (int, error) {
			t.Fatal("the function ran")
			return 0, nil
		})
		w.is(err, context.Canceled)
		if _, err := p.ExecuteAsync(ctx, returns(1, nil)).Get(t.Context()); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if c := w.calls("x"); c.Cancelled != 2000 {
		t.Errorf("%+v", c)
	}
}
