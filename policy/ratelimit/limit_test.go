package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/ratelimit"
)

// L-1: starts full, and refills evenly, up to the burst.
func TestStartsFullAndRefillsEvenly(t *testing.T) {
	p, m := newManual(t, ratelimit.PerSecond(10), ratelimit.Burst(3))
	if got := drain(p); got != 3 {
		t.Errorf("%d at the start, want 3", got)
	}
	m.Advance(100*time.Millisecond - 1)
	if got := drain(p); got != 0 {
		t.Errorf("%d a nanosecond early", got)
	}
	m.Advance(1)
	if got := drain(p); got != 1 {
		t.Errorf("%d after 100 ms, want 1", got)
	}
	m.Advance(250 * time.Millisecond)
	if got := drain(p); got != 2 {
		t.Errorf("%d after 250 ms, want 2", got)
	}
	m.Advance(50 * time.Millisecond)
	if got := drain(p); got != 1 {
		t.Errorf("%d after what was left of it, want 1", got)
	}
	m.Advance(time.Hour)
	if got := drain(p); got != 3 {
		t.Errorf("%d after an hour, want 3", got)
	}
}

// L-2: without a wait configured, a refusal comes at once, says when to come
// again, and changes nothing.
func TestRefusesAtOnceAndChangesNothing(t *testing.T) {
	p, m := newManual(t, ratelimit.PerSecond(10), ratelimit.Burst(1))
	if err := p.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Advance(30 * time.Millisecond)
	for range 1000 {
		if got := retryAfter(t, p.Acquire(t.Context())); got != 70*time.Millisecond {
			t.Fatalf("RetryAfter = %s, want 70ms", got)
		}
	}
	if got := m.Now().Sub(start); got != 30*time.Millisecond || m.Pending() != 0 {
		t.Errorf("the clock is at %s with %d pending", got, m.Pending())
	}
	m.Advance(70 * time.Millisecond)
	if err := p.Acquire(t.Context()); err != nil {
		t.Errorf("after RetryAfter: %v", err)
	}
	if diff := cmp.Diff(counts{0, 0, 2, 1000}, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// L-8: exact under a rush, without a lock.
func TestRushAdmitsExactlyTheBurst(t *testing.T) {
	for range 20 {
		p, _ := newManual(t, ratelimit.PerSecond(1), ratelimit.Burst(3))
		var wg sync.WaitGroup
		gate := make(chan struct{})
		for range 1000 {
			wg.Go(func() {
				<-gate
				p.TryAcquire()
			})
		}
		close(gate)
		wg.Wait()
		if diff := cmp.Diff(counts{0, 0, 3, 997}, countsOf(p)); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

// L-1: an idle spell does not store more than the burst, nor does a second one.
func TestField_RL06_LimitsAfterAnIdleSpell(t *testing.T) {
	for _, burst := range []int{1, 3} {
		p, m := newManual(t, ratelimit.PerSecond(1), ratelimit.Burst(burst), ratelimit.MaxWait(time.Hour))
		for spell := range 2 {
			if err := p.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.Advance(30 * time.Second)
			last := m.Now()
			for i := range 100 {
				if err := p.Acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := time.Second
				if i < burst {
					want = 0
				}
				if got := m.Now().Sub(last); got != want {
					t.Fatalf("burst %d, spell %d: call %d waited %s, want %s", burst, spell, i, got, want)
				}
				last = m.Now()
			}
		}
		if m.Pending() != 0 {
			t.Errorf("%d timers are left", m.Pending())
		}
	}
}

// O-5: a context that is done already takes nothing, 0 of 1,000, also where a
// wait would be needed.
func TestDoneContextTakesNothing(t *testing.T) {
	p, _ := newManual(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if err := p.Acquire(ctx); err != context.Canceled { //nolint:errorlint // the plain one is promised
			t.Fatalf("Acquire = %v", err)
		}
	}
	if diff := cmp.Diff(counts{Available: 1}, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNilContextPanics(t *testing.T) {
	p, _ := newManual(t, ratelimit.PerSecond(1))
	defer func() {
		if got, want := recover(), "ratelimit: nil ctx in Acquire"; got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
		if p.Snapshot().Admitted != 0 {
			t.Error("a permit was taken")
		}
	}()
	p.Acquire(nil) //nolint:errcheck,staticcheck // it panics
}

func TestError(t *testing.T) {
	p, m := newManual(t, ratelimit.Per(1, 123*time.Second))
	if !p.TryAcquire() {
		t.Fatal("not full")
	}
	err := p.Acquire(t.Context())
	if want := `ratelimit "b": limited (retry after 2m3s)`; err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
	if !errors.Is(err, ratelimit.ErrLimited) || errors.Is(err, context.DeadlineExceeded) || !policy.NotStarted(err) {
		t.Errorf("%v matches wrong", err)
	}
	var pe policy.Error
	if !errors.As(err, &pe) || pe.Policy() != "ratelimit" || pe.ID() != "b" || pe.Started() {
		t.Errorf("%#v", pe)
	}
	m.Advance(time.Second)
	if got := retryAfter(t, p.Acquire(t.Context())); got != 122*time.Second {
		t.Errorf("RetryAfter = %s", got)
	}
}

// A refusal carries RetryAfter and is told once, with the call's context.
func TestConform_61_RefusalCarriesRetryAfterAndIsToldOnce(t *testing.T) {
	p, _, _, l := newIn(t, ratelimit.Per(1, 123*time.Second))
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "call")
	if err := p.Acquire(ctx); err != nil || l.Len() != 0 {
		t.Fatal(err, l.Events())
	}
	if got := retryAfter(t, p.Acquire(ctx)); got != 123*time.Second {
		t.Errorf("RetryAfter = %s", got)
	}
	if p.TryAcquire() {
		t.Error("admitted")
	}
	if l.Len() != 1 {
		t.Fatalf("%d events, want 1", l.Len())
	}
	e, ok := l.Events()[0].(ratelimit.Limited)
	if !ok || e.Policy() != "ratelimit" || e.ID() != "b" || !e.At().Equal(start) || l.Contexts()[0].Value(key{}) != "call" {
		t.Errorf("event %#v", l.Events()[0])
	}
}

// after a close everything is refused, and snapshots still work.
func TestCloseRefusesEverything(t *testing.T) {
	p, s, m, l := newIn(t, ratelimit.PerSecond(1), ratelimit.Burst(2), ratelimit.MaxWait(time.Hour))
	if n := drain(p); n != 2 {
		t.Fatal(n)
	}
	sync := acquire(t.Context(), p)
	if err := m.AwaitSleepers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	async := enqueue(t, p, m, time.Hour)
	s.Close()
	s.Close()
	if err := <-sync; !errors.Is(err, scope.ErrClosed) {
		t.Errorf("waiting call got %v", err)
	}
	<-async.woken
	if !errors.Is(async.Err(), scope.ErrClosed) {
		t.Errorf("queued call got %v", async.Err())
	}
	m.Advance(time.Minute)
	if err := p.Acquire(t.Context()); !errors.Is(err, scope.ErrClosed) {
		t.Errorf("later call got %v", err)
	}
	if entered, err := p.EnterAsync(t.Context(), 0, 0, async.Waiter); entered || !errors.Is(err, scope.ErrClosed) {
		t.Errorf("later call got %v, %v", entered, err)
	}
	if p.TryAcquire() {
		t.Error("admitted after the close")
	}
	if err := p.SetRate(5, time.Second, 5); err != nil {
		t.Error(err)
	}
	if p.TryAcquire() || m.Pending() != 0 || l.Len() != 0 {
		t.Errorf("after the close: %d timers, events %v", m.Pending(), l.Events())
	}
	if s := p.Snapshot(); s.Admitted != 2 || s.Rejected != 1 || s.Waiting != 0 { // the TryAcquire that drained
		t.Errorf("%+v", s)
	}
}

func TestScopeThatIsClosedAlready(t *testing.T) {
	s := scope.New(clock.NewManual(start), nil)
	s.Close()
	p, err := ratelimit.NewIn(s, "b", config(ratelimit.PerSecond(1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Acquire(t.Context()); !errors.Is(err, scope.ErrClosed) {
		t.Errorf("Acquire = %v", err)
	}
}
