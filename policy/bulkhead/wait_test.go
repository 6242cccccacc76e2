package bulkhead_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

const ms = time.Millisecond

// B-2: a zero of either means no waiting; the refusal takes no time.
func TestWait_B2_ZeroOfEitherMeansNoWaiting(t *testing.T) {
	for _, c := range []bulkhead.Config{
		{MaxConcurrent: 1},
		{MaxConcurrent: 1, Queue: 5},
		{MaxConcurrent: 1, MaxWait: time.Second},
		{MaxConcurrent: 1, Queue: unbounded},
		{MaxConcurrent: 1, MaxWait: unbounded},
	} {
		p, m := newManual(t, c)
		mustAcquire(t, p)
		err := p.Acquire(t.Context())
		want := &bulkhead.Error{Instance: "b", Limit: 1, Queue: c.Queue}
		var got *bulkhead.Error
		if !errors.As(err, &got) {
			t.Fatalf("%+v: %v", c, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", c, diff)
		}
		if !m.Now().Equal(start) || m.Pending() != 0 {
			t.Errorf("%+v: %v", c, m)
		}
	}
}

// B-2: Queue(2) alone: two wait as long as their contexts allow.
func TestWait_B2_QueueAloneBoundsTheNumber(t *testing.T) {
	p, m := newPassive(t, configOf(bulkhead.MaxConcurrent(1), bulkhead.Queue(2)))
	mustAcquire(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	a, b := acquire(ctx, p), acquire(ctx, p)
	awaitSleepers(t, m, 2)
	if err := p.Acquire(ctx); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("the third got %v", err)
	}
	m.Advance(1000 * time.Hour)
	if !pending(a) || !pending(b) {
		t.Fatal("a wait without a bound has ended")
	}
	cancel()
	if err := errors.Join(<-a, <-b); !errors.Is(err, context.Canceled) || errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("cancelled waiters got %v", err)
	}
}

// B-2: MaxWait(d) alone: any number, each at most d, counted from its own start.
func TestWait_B2_MaxWaitAloneBoundsEachWait(t *testing.T) {
	p, m := newPassive(t, configOf(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(50*ms)))
	mustAcquire(t, p)
	const n = 100
	var results []<-chan error
	for range n {
		results = append(results, acquire(t.Context(), p))
	}
	awaitSleepers(t, m, n)
	m.Advance(20 * ms)
	late := acquire(t.Context(), p)
	awaitSleepers(t, m, n+1)
	m.Advance(30*ms - 1)
	if got := p.Snapshot().Waiting; got != n+1 {
		t.Fatalf("one nanosecond before the end %d wait, want %d", got, n+1)
	}
	m.Advance(1)
	for _, r := range results {
		var e *bulkhead.Error
		if err := <-r; !errors.As(err, &e) || e.Waited != 50*ms || e.Queue != unbounded {
			t.Fatalf("got %v, want a refusal after 50ms", err)
		}
	}
	if !pending(late) {
		t.Error("the one who came later was refused with the others")
	}
	p.Release()
	if err := <-late; err != nil {
		t.Errorf("the one who came later got %v", err)
	}
	if m.Pending() != 0 {
		t.Error(m)
	}
}

// B-2: strict first in, first out; no newcomer passes, by any way in.
func TestWait_B2_NoNewcomerPassesAWaiter(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 2, Queue: unbounded, MaxWait: unbounded})
	mustAcquire(t, p)
	mustAcquire(t, p)
	var line []queued
	for range 5 {
		line = append(line, enqueue(t, p, unbounded))
	}
	for i := range line {
		p.Release()
		for j, w := range line {
			if granted := w.State() == waitq.Granted; granted != (j <= i) {
				t.Fatalf("after %d releases waiter %d: granted = %v", i+1, j, granted)
			}
		}
		if p.TryAcquire() {
			t.Fatalf("a newcomer got in after release %d", i+1)
		}
		if err := p.Enter(t.Context(), 0); !errors.Is(err, bulkhead.ErrFull) {
			t.Fatalf("a newcomer got %v after release %d", err, i+1)
		}
		<-line[i].woken
	}
	p.Release()
	mustAcquire(t, p) // nobody waits any more
}

// O-3, B-4: a wait is bounded by the context: at its end the waiter leaves the
// queue at once, with the context's own error, and is no refusal.
func TestWait_O3_B4_EndsWithItsContext(t *testing.T) {
	p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: time.Second})
	mustAcquire(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	m.AfterFunc(30*ms, cancel) // what a timeout does to the context that it gave
	before := countsOf(p)
	if err := p.Acquire(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := m.Now().Sub(start); got != 30*ms {
		t.Errorf("returned at %v, want 30ms", got)
	}
	if diff := cmp.Diff(before, countsOf(p)); diff != "" {
		t.Errorf("it left something behind (-want +got)\n%s", diff)
	}
	if m.Pending() != 0 {
		t.Error(m)
	}
}

// O-5: a context that is done before the call takes nothing and counts nothing.
func TestAcquire_O5_DoneContextTakesNothing(t *testing.T) {
	p, _ := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := counts{Limit: 1, Available: 1}
	for range 1000 {
		if err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The pipeline has looked at the context: Enter takes a free slot at once, and
	// looks before it would wait.
	if err := p.Enter(ctx, time.Second); err != nil {
		t.Errorf("Enter with a free slot: %v", err)
	}
	if err := p.Enter(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("Enter without: %v", err)
	}
	w := waitq.New(func() { t.Error("woken") })
	if entered, err := p.EnterAsync(ctx, time.Second, w); entered || !errors.Is(err, context.Canceled) {
		t.Errorf("EnterAsync without: %v, %v", entered, err)
	}
	if diff := cmp.Diff(counts{Limit: 1, InUse: 1, Admitted: 1}, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// T-10: what Acquire says of a context that has ended matches its error and its
// cause; it is that error itself where there is no other cause. Enter leaves the
// cause to the pipeline.
func TestAcquire_T10_AContextThatEndedIsNamedWithItsCause(t *testing.T) {
	errWhy := errors.New("why")
	for _, why := range []error{errWhy, nil} {
		for _, waits := range []bool{true, false} {
			p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: time.Second})
			mustAcquire(t, p)
			ended := func(enter func(context.Context) error) error {
				ctx, cancel := context.WithCancelCause(t.Context())
				if waits {
					m.AfterFunc(30*ms, func() { cancel(why) })
				} else {
					cancel(why)
				}
				return enter(ctx)
			}
			err := ended(p.Acquire)
			if why == nil && err != context.Canceled { //nolint:errorlint // that value
				t.Errorf("waits %v, no cause: got %v", waits, err)
			}
			if why != nil && (!errors.Is(err, why) || !errors.Is(err, context.Canceled)) {
				t.Errorf("waits %v: got %v", waits, err)
			}
			err = ended(func(ctx context.Context) error { return p.Enter(ctx, time.Second) })
			if err != context.Canceled { //nolint:errorlint // that value
				t.Errorf("waits %v, Enter: got %v", waits, err)
			}
		}
	}
}

// Who was refused before the context ended hears of the refusal alone.
func TestAcquire_T10_ARefusalIsNoEndOfTheContext(t *testing.T) {
	for _, want := range []error{bulkhead.ErrFull, scope.ErrClosed} {
		clk := &hookClock{Manual: clock.NewManual(start)}
		s := scope.New(clk, nil)
		p, err := bulkhead.NewIn(s, "b", bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: 50 * ms})
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		clk.hook = func() {
			if want == scope.ErrClosed { //nolint:errorlint // that value
				s.Close()
			}
			clk.Advance(50 * ms)
			cancel()
		}
		if err := p.Acquire(ctx); !errors.Is(err, want) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// the slot stands for running work: it is held until Release, whatever
// becomes of the context that it was acquired with.
func TestAcquire_A5_SlotIsHeldUntilRelease(t *testing.T) {
	p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, FreeOnTimeout: true})
	ctx, cancel := context.WithCancel(t.Context())
	if err := p.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	m.Advance(time.Hour)
	if got := p.Snapshot().InUse; got != 1 {
		t.Errorf("in use %d after the context's end, want 1", got)
	}
	if !p.Config().FreeOnTimeout {
		t.Error("the setting for the pipeline got lost")
	}
	p.Release()
	if got := p.Snapshot().Available; got != 1 {
		t.Errorf("available %d after Release, want 1", got)
	}
}

// K-5: a wait drives the manual clock, and its own bound is an event like others.
func TestWait_K5_DrivesTheManualClock(t *testing.T) {
	p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: 100 * ms})
	mustAcquire(t, p)
	m.AfterFunc(30*ms, p.Release)
	if err := p.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := m.Now().Sub(start); got != 30*ms {
		t.Errorf("granted at %v, want 30ms", got)
	}
	err := p.Acquire(t.Context())
	var e *bulkhead.Error
	if !errors.As(err, &e) || e.Waited != 100*ms {
		t.Errorf("got %v, want a refusal after 100ms", err)
	}
	if got := m.Now().Sub(start); got != 130*ms || m.Pending() != 0 {
		t.Errorf("refused at %v, want 130ms; %v", got, m)
	}
}

// K-5: with no event pending it parks, and never jumps to the end of a wait
// without a bound.
func TestWait_K5_ParksWithoutEvents(t *testing.T) {
	p, m := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
	mustAcquire(t, p)
	result := acquire(t.Context(), p)
	awaitSleepers(t, m, 1)
	if !m.Now().Equal(start) {
		t.Errorf("the wait moved the clock: %v", m)
	}
	p.Release()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// A release and the end of a wait at one instant: the first in line decides.
func TestWait_GrantAndMaxWaitAtOneInstant(t *testing.T) {
	for _, grantFirst := range []bool{true, false} {
		p, m := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: unbounded})
		mustAcquire(t, p)
		if grantFirst {
			m.AfterFunc(50*ms, p.Release)
		}
		w := enqueue(t, p, 50*ms)
		if !grantFirst {
			m.AfterFunc(50*ms, p.Release)
		}
		m.Advance(50 * ms)
		want, inUse := waitq.Refused, 0
		if grantFirst {
			want, inUse = waitq.Granted, 1
		}
		if got := p.Snapshot(); w.State() != want || got.InUse != inUse || got.Waiting != 0 || m.Pending() != 0 {
			t.Errorf("grant first %v: state %v, %+v, %v", grantFirst, w.State(), got, m)
		}
		<-w.woken
	}
}

// EnterAsync: every outcome, and its wake exactly once.
func TestEnterAsyncOutcomes(t *testing.T) {
	p, m := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: 3, MaxWait: unbounded})
	none := waitq.New(func() { t.Error("woken without having waited") })
	if entered, err := p.EnterAsync(t.Context(), 0, none); !entered || err != nil {
		t.Fatalf("free slot: %v, %v", entered, err)
	}
	if entered, err := p.EnterAsync(t.Context(), 0, none); entered || !errors.Is(err, bulkhead.ErrFull) {
		t.Fatalf("no waiting: %v, %v", entered, err)
	}
	granted, expires, leaves := enqueue(t, p, time.Second), enqueue(t, p, 10*ms), enqueue(t, p, time.Second)
	if entered, err := p.EnterAsync(t.Context(), time.Second, none); entered || !errors.Is(err, bulkhead.ErrFull) {
		t.Fatalf("queue full: %v, %v", entered, err)
	}
	if m.Pending() != 3 {
		t.Errorf("%v, want the bounds of three waits", m)
	}
	if !p.Leave(leaves.Waiter) || p.Leave(leaves.Waiter) {
		t.Error("Leave must report true once")
	}
	m.Advance(10 * ms)
	<-expires.woken
	var e *bulkhead.Error
	if !errors.As(expires.Err(), &e) || e.Waited != 10*ms || p.Leave(expires.Waiter) {
		t.Errorf("expired with %v", expires.Err())
	}
	p.Release()
	<-granted.woken
	if p.Leave(granted.Waiter) || granted.State() != waitq.Granted {
		t.Errorf("state %v after the grant", granted.State())
	}
	want := counts{Limit: 1, InUse: 1, Admitted: 2, Rejected: 3}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" || m.Pending() != 0 {
		t.Errorf("%v (-want +got)\n%s", m, diff)
	}
	select {
	case <-leaves.woken:
		t.Error("a waiter that left was woken")
	default:
	}
}

// The wake of an async waiter that was granted may call back into the bulkhead and
// take its time: it has a goroutine of its own (K-6).
func TestEnterAsync_K6_WakeRunsOnItsOwnGoroutine(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: unbounded})
	mustAcquire(t, p)
	goOn, done := make(chan struct{}), make(chan struct{})
	w := waitq.New(func() {
		<-goOn
		p.Release()
		close(done)
	})
	if _, err := p.EnterAsync(t.Context(), unbounded, w); err != nil {
		t.Fatal(err)
	}
	p.Release() // would never return if it called the wake itself
	close(goOn)
	<-done
	if got := p.Snapshot().Available; got != 1 {
		t.Errorf("available %d, want 1", got)
	}
}
