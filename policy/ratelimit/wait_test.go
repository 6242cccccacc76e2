package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/ratelimit"
)

// K-5: a wait drives the manual clock to the instant of the permit.
func TestWaitDrivesTheClock(t *testing.T) {
	p, m := newManual(t, ratelimit.PerSecond(10), ratelimit.Burst(1), ratelimit.MaxWait(time.Second))
	fired := false
	m.AfterFunc(30*time.Millisecond, func() { fired = true })
	for i := range 5 {
		if err := p.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := m.Now().Sub(start), time.Duration(i)*100*time.Millisecond; got != want {
			t.Errorf("call %d at %s, want %s", i, got, want)
		}
	}
	if !fired || m.Pending() != 0 {
		t.Errorf("event on the way fired: %v, pending %d", fired, m.Pending())
	}
}

// K-5: a wait stops at the instant at which the context ends.
func TestWaitEndsWithTheContext(t *testing.T) {
	p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	m.AfterFunc(400*time.Millisecond, cancel)
	drain(p)
	if err := p.Acquire(ctx); err != context.Canceled { //nolint:errorlint // the plain one is promised
		t.Errorf("Acquire = %v", err)
	}
	if got := m.Now().Sub(start); got != 400*time.Millisecond || m.Pending() != 0 {
		t.Errorf("at %s, pending %d", got, m.Pending())
	}
	if got := nextWait(t, p); got != 600*time.Millisecond {
		t.Errorf("the next would wait %s: the place was not given back", got)
	}
}

// T-10: what Acquire says of a context that has ended matches its error and its
// cause; it is that error itself where there is no other cause. Enter leaves the
// cause to the pipeline.
func TestAcquire_T10_AContextThatEndedIsNamedWithItsCause(t *testing.T) {
	errWhy := errors.New("why")
	for _, why := range []error{errWhy, nil} {
		for _, waits := range []bool{true, false} {
			p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Minute))
			drain(p)
			ended := func(enter func(context.Context) error) error {
				ctx, cancel := context.WithCancelCause(t.Context())
				if waits {
					m.AfterFunc(100*time.Millisecond, func() { cancel(why) })
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
			err = ended(func(ctx context.Context) error { return p.Enter(ctx, time.Minute, 0) })
			if err != context.Canceled { //nolint:errorlint // that value
				t.Errorf("waits %v, Enter: got %v", waits, err)
			}
		}
	}
}

// tied is a clock on which the end of a wait's context always ties with what
// settles the wait: the context seems to have been first.
type tied struct {
	*clock.Manual
	settle func()
}

func (c *tied) Wait(ctx context.Context, _ <-chan struct{}) error {
	c.settle()
	return ctx.Err()
}

// Who was refused before the context ended hears of the refusal alone.
func TestAcquire_T10_ARefusalIsNoEndOfTheContext(t *testing.T) {
	for _, want := range []error{ratelimit.ErrLimited, scope.ErrClosed} {
		clk := &tied{Manual: clock.NewManual(start)}
		s := scope.New(clk, nil)
		p, err := ratelimit.NewIn(s, "b", config(ratelimit.PerSecond(1), ratelimit.MaxWait(time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		drain(p)
		ctx, cancel := context.WithCancel(t.Context())
		clk.settle = func() {
			if want == scope.ErrClosed { //nolint:errorlint // that value
				s.Close()
			} else {
				setRate(t, p, 1, time.Minute, 1)
			}
			cancel()
		}
		if err := p.Acquire(ctx); !errors.Is(err, want) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// L-3: exactly MaxWait fits, a nanosecond more does not, and is refused with no
// time gone.
func TestExactlyMaxWaitFits(t *testing.T) {
	for _, short := range []time.Duration{0, 1} {
		p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Second-short))
		drain(p)
		err := p.Acquire(t.Context())
		if fits := short == 0; fits != (err == nil) {
			t.Errorf("MaxWait %s: %v", time.Second-short, err)
		}
		if err != nil && (retryAfter(t, err) != time.Second || !m.Now().Equal(start)) {
			t.Errorf("refused with %v at %s", err, m.Now().Sub(start))
		}
	}
}

// L-3: exactly the caller's deadline, or the time left, does not fit; a
// nanosecond more does.
func TestExactlyTheDeadlineDoesNotFit(t *testing.T) {
	for _, more := range []time.Duration{0, 1} {
		p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Hour))
		drain(p)
		ctx := deadline{t.Context(), start.Add(time.Second + more)}
		err := p.Acquire(ctx)
		if fits := more > 0; fits != (err == nil) {
			t.Errorf("deadline after %s: %v", time.Second+more, err)
		}
		if err != nil && !m.Now().Equal(start) {
			t.Errorf("refused at %s", m.Now().Sub(start))
		}

		p, m = newManual(t, ratelimit.PerSecond(1))
		drain(p)
		until := 1 + int64(time.Second+more) // scope.Now is 1 at the start
		err = p.Enter(t.Context(), time.Hour, until)
		if fits := more > 0; fits != (err == nil) {
			t.Errorf("time left %s: %v", time.Second+more, err)
		}
		if err != nil && !m.Now().Equal(start) {
			t.Errorf("refused at %s", m.Now().Sub(start))
		}
	}
}

// deadline is a context that has a deadline and does not end by it.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// L-3: a deadline that has passed, or lies at the end of time, overflows nothing.
func TestExtremeDeadlines(t *testing.T) {
	p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Second))
	drain(p)
	if got := retryAfter(t, p.Acquire(deadline{t.Context(), start})); got != time.Second {
		t.Errorf("deadline now: RetryAfter %s", got)
	}
	for _, at := range []time.Time{start.AddDate(1000, 0, 0), start.Add(time.Hour)} {
		if err := p.Acquire(deadline{t.Context(), at}); err != nil {
			t.Errorf("deadline %s: %v", at, err)
		}
	}
	// Of another clock, as ctx lives.
	for _, at := range []time.Time{{}, m.Now().Add(-time.Hour)} {
		if err := p.Acquire(deadline{t.Context(), at}); err != nil {
			t.Errorf("deadline %s: %v", at, err)
		}
	}
	p = newOn(t, clock.System(), ratelimit.Per(1, time.Hour), ratelimit.MaxWait(2*time.Hour))
	drain(p)
	for _, at := range []time.Time{{}, time.Now().Add(-time.Hour)} {
		if got := retryAfter(t, p.Acquire(deadline{t.Context(), at})); got <= 0 {
			t.Errorf("deadline %s: RetryAfter %s", at, got)
		}
	}
}

// L-3, strict first in, first out: nobody passes those who wait, not even when
// the first is due and its timer is late.
func TestNobodyPassesTheQueue(t *testing.T) {
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(1))
	drain(p)
	w1, w2 := enqueue(t, p, clk, time.Minute), enqueue(t, p, clk, time.Minute)
	clk.step(time.Second) // no timer notices
	if p.TryAcquire() {
		t.Error("a newcomer passed the queue")
	}
	if got := dues(w1, w2); got[0] != time.Second || got[1] != -1 {
		t.Errorf("woken at %v, want only the first", got)
	}
	if got := nextWait(t, p); got != 2*time.Second {
		t.Errorf("the next would wait %s, want 2s", got)
	}
}

// L-4, all variants: a cancelled waiter gives its place to those behind.
func TestField_RL10_CancelledWaiterGivesItsPlaceBack(t *testing.T) {
	tests := []struct {
		name   string
		leave  []int
		want   []time.Duration // of W1, W2, W3; -1: never
		newDue time.Duration
	}{
		{"nobody", nil, []time.Duration{1, 2, 3}, 4},
		{"first", []int{0}, []time.Duration{-1, 1, 2}, 3},
		{"middle", []int{1}, []time.Duration{1, -1, 2}, 3},
		{"last", []int{2}, []time.Duration{1, 2, -1}, 3},
		{"first and last", []int{2, 0}, []time.Duration{-1, 1, -1}, 2},
		{"all", []int{1, 0, 2}, []time.Duration{-1, -1, -1}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.Burst(1))
			drain(p)
			var qs []*queued
			for range 3 {
				qs = append(qs, enqueue(t, p, m, time.Hour))
			}
			m.Advance(500 * time.Millisecond)
			for _, i := range tt.leave {
				if !p.Leave(qs[i].Waiter) || p.Leave(qs[i].Waiter) {
					t.Errorf("W%d: Leave is to be true once", i+1)
				}
			}
			if got := p.Snapshot().Waiting; got != 3-len(tt.leave) {
				t.Errorf("%d waiting", got)
			}
			if got, want := nextWait(t, p), tt.newDue*time.Second-500*time.Millisecond; got != want {
				t.Errorf("a newcomer would wait %s, want %s", got, want)
			}
			newcomer := enqueue(t, p, m, time.Hour)
			m.Advance(10 * time.Second)
			want := slices.Concat(tt.want, []time.Duration{tt.newDue})
			for i := range want {
				if want[i] > 0 {
					want[i] *= time.Second
				}
			}
			if diff := cmp.Diff(want, dues(append(qs, newcomer)...)); diff != "" {
				t.Errorf("served at (-want +got)\n%s", diff)
			}
			if m.Pending() != 0 || p.Snapshot().Waiting != 0 {
				t.Errorf("%d timers, %d waiting are left", m.Pending(), p.Snapshot().Waiting)
			}
		})
	}
}

// L-4: a thousand cancelled waiters cost nobody a place.
func TestField_RL10_ThousandCancelledWaiters(t *testing.T) {
	p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.Burst(1))
	drain(p)
	for range 1000 {
		w := enqueue(t, p, m, time.Hour)
		m.Advance(time.Microsecond)
		if !p.Leave(w.Waiter) {
			t.Fatal("it did not leave")
		}
	}
	if got := nextWait(t, p); got > time.Second {
		t.Errorf("the next would wait %s", got)
	}
	if m.Pending() != 0 || p.Sealed() {
		t.Errorf("%d timers are left, sealed %v", m.Pending(), p.Sealed())
	}
}

// L-8, L-4: exact counts under a rush; one waiter is cancelled at the very
// instant of a grant, which may be its own.
func TestField_RL12_ExactUnderARush(t *testing.T) {
	// At 1/s exactly five places fit into five seconds.
	p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.Burst(3), ratelimit.MaxWait(5*time.Second))
	var admitted, rejected, cancelled atomic.Int64
	settled := make(chan int, 1000)
	waits := map[int]context.CancelFunc{} // those who are not settled yet
	for i := range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waits[i] = cancel
		go func() {
			err := p.Acquire(ctx)
			switch {
			case err == nil:
				admitted.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				rejected.Add(1)
				if got := retryAfter(t, err); got <= 0 || got > 6*time.Second {
					t.Errorf("RetryAfter %s", got)
				}
			}
			settled <- i
		}()
	}
	for range 995 {
		delete(waits, <-settled)
	}
	if err := m.AwaitSleepers(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(counts{0, 5, 3, 992}, countsOf(p)); diff != "" {
		t.Fatalf("at once (-want +got)\n%s", diff)
	}
	victim := -1
	for step := uint64(1); step <= 5; step++ {
		if step == 3 {
			var cancel context.CancelFunc
			for victim, cancel = range waits {
				break
			}
			m.AfterFunc(time.Second, cancel)
		}
		m.Advance(time.Second)
		// Granted within Advance, and exactly one, as long as somebody waits.
		if got, want := p.Snapshot().Admitted, min(3+step, 8-uint64(cancelled.Load())); got != want {
			t.Errorf("step %d: %d admitted, want %d", step, got, want)
		}
		for len(waits) > 5-int(step) {
			delete(waits, <-settled)
		}
		for step == 3 && waits[victim] != nil {
			delete(waits, <-settled)
		}
	}
	if a, c, r := admitted.Load(), cancelled.Load(), rejected.Load(); a+c != 8 || c > 1 || r != 992 {
		t.Errorf("%d admitted, %d cancelled, %d rejected", a, c, r)
	}
	if m.Pending() != 0 || p.Sealed() {
		t.Errorf("%d timers are left, sealed %v", m.Pending(), p.Sealed())
	}
}

// L-4, RL-12: a waiter that leaves at the instant at which it is due has left
// or was granted, whichever event comes first, and the second is served in time.
func TestField_RL12_LeavesAtItsDueInstant(t *testing.T) {
	for _, leaveFirst := range []bool{true, false} {
		p, m := newPassive(t, ratelimit.PerSecond(1))
		drain(p)
		var w1 *queued
		left := false
		leave := func() { left = p.Leave(w1.Waiter) }
		if leaveFirst {
			m.AfterFunc(time.Second, leave) // armed before the limiter's timer
		}
		w1 = enqueue(t, p, m, time.Hour)
		w2 := enqueue(t, p, m, time.Hour)
		if !leaveFirst {
			m.AfterFunc(time.Second, leave)
		}
		m.Advance(time.Second)
		if granted := w1.State() == waitq.Granted; granted == left || left != leaveFirst {
			t.Errorf("leave first %v: granted %v, left %v", leaveFirst, granted, left)
		}
		m.Advance(time.Second)
		want := []time.Duration{-1, time.Second}
		if !leaveFirst {
			want = []time.Duration{time.Second, 2 * time.Second}
		}
		if diff := cmp.Diff(want, dues(w1, w2)); diff != "" {
			t.Errorf("leave first %v (-want +got)\n%s", leaveFirst, diff)
		}
	}
}

// A race of grants and leaves on the real clock: granted or left, never both and
// never neither, and no permit too many.
func TestGrantAgainstLeave(t *testing.T) {
	p := newOn(t, clock.System(), ratelimit.Per(1, 20*time.Microsecond), ratelimit.Burst(1))
	const rounds = 1000
	var granted, left, refused atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range rounds {
				w, ready := waitq.NewChan()
				entered, err := p.EnterAsync(context.Background(), time.Second, 0, w)
				switch {
				case err != nil:
					refused.Add(1)
				case entered:
					granted.Add(1)
				default:
					if (i+g)%3 != 0 {
						<-ready
					}
					if p.Leave(w) {
						left.Add(1)
						continue
					}
					<-ready
					if w.State() == waitq.Granted {
						granted.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	s := p.Snapshot()
	if got := granted.Load() + left.Load(); got != 4*rounds || refused.Load() != 0 {
		t.Errorf("%d granted + %d left, %d refused", granted.Load(), left.Load(), refused.Load())
	}
	if s.Admitted != uint64(granted.Load()) || s.Waiting != 0 || p.Sealed() {
		t.Errorf("%+v, granted %d", s, granted.Load())
	}
}

// No wait is negative or absurd, and the rate holds, on the real clock.
func TestField_RL08_WaitsAreSaneOnTheRealClock(t *testing.T) {
	const limit, callers, calls = 1_000_000, 8, 2_000
	p := newOn(t, clock.System(), ratelimit.PerSecond(limit), ratelimit.Burst(1), ratelimit.MaxWait(time.Second))
	clk := clock.System()
	began := clk.Now()
	var wg sync.WaitGroup
	var ok atomic.Int64
	for range callers {
		wg.Go(func() {
			for range calls {
				before := clk.Now()
				switch err := p.Acquire(context.Background()); {
				case err == nil:
					ok.Add(1)
				case retryAfter(t, err) <= 0:
					t.Errorf("%v", err)
				}
				if took := clk.Now().Sub(before); took > time.Minute {
					t.Errorf("a call took %s", took)
				}
			}
		})
	}
	wg.Wait()
	elapsed := clk.Now().Sub(began)
	if got := ok.Load(); got != callers*calls || float64(got) > 1+elapsed.Seconds()*limit {
		t.Errorf("%d admitted in %s", got, elapsed)
	}
}
