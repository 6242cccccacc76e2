package ratelimit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/ratelimit"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// config is the settings that the options make.
func config(opts ...ratelimit.Option) ratelimit.Config {
	c := ratelimit.Default()
	c.Apply(opts...)
	return c
}

// newOn returns a limiter "b" on the given clock.
func newOn(tb testing.TB, clk clock.Clock, opts ...ratelimit.Option) *ratelimit.Policy {
	tb.Helper()
	p, err := ratelimit.New("b", config(opts...), clk)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// newManual returns a limiter "b" on a manual clock that waits drive.
func newManual(tb testing.TB, opts ...ratelimit.Option) (*ratelimit.Policy, *clock.Manual) {
	tb.Helper()
	m := clock.NewManual(start)
	return newOn(tb, m, opts...), m
}

// newPassive returns a limiter "b" on a manual clock that only the test moves.
func newPassive(tb testing.TB, opts ...ratelimit.Option) (*ratelimit.Policy, *clock.Manual) {
	tb.Helper()
	m := clock.NewManual(start).Passive()
	return newOn(tb, m, opts...), m
}

// newIn returns a limiter "b" in a scope whose events are kept, on a passive
// manual clock.
func newIn(tb testing.TB, opts ...ratelimit.Option) (*ratelimit.Policy, *scope.Scope, *clock.Manual, *testkit.Journal) {
	tb.Helper()
	l := &testkit.Journal{}
	m := clock.NewManual(start).Passive()
	s := scope.New(m, l.Listen)
	p, err := ratelimit.NewIn(s, "b", config(opts...))
	if err != nil {
		tb.Fatal(err)
	}
	return p, s, m, l
}

// stepping is a manual clock whose time can be stepped, back as well, as that of
// a machine without a monotonic clock. Its timers do not notice.
type stepping struct {
	*clock.Manual
	offset atomic.Int64
}

func newStepping() *stepping { return &stepping{Manual: clock.NewManual(start).Passive()} }

func (s *stepping) Now() time.Time       { return s.Manual.Now().Add(time.Duration(s.offset.Load())) }
func (s *stepping) step(d time.Duration) { s.offset.Add(int64(d)) }

// drain takes what is in store and returns how much that was.
func drain(p *ratelimit.Policy) (n int) {
	for p.TryAcquire() {
		n++
	}
	return n
}

// retryAfter is the wait of a refusal; it fails the test for another outcome.
func retryAfter(tb testing.TB, err error) time.Duration {
	tb.Helper()
	var limited *ratelimit.Error
	if !errors.As(err, &limited) {
		tb.Fatalf("got %v, want a refusal", err)
	}
	return limited.RetryAfter()
}

// nextWait is how long the next caller would have to wait, which is asked
// without a wish to wait, and changes nothing but the count of refusals. It must
// not be used while a permit is free.
func nextWait(tb testing.TB, p *ratelimit.Policy) time.Duration {
	tb.Helper()
	return retryAfter(tb, p.Enter(tb.Context(), 0, 0))
}

// queued is a waiter that came by EnterAsync.
type queued struct {
	*waitq.Waiter
	at    func() time.Time
	woken chan struct{} // closed by its wake; a second wake panics
	when  time.Time     // when that was
}

func (q *queued) wake() {
	q.when = q.at()
	close(q.woken)
}

func newQueued(clk clock.Clock) *queued {
	q := &queued{woken: make(chan struct{}), at: clk.Now}
	q.Waiter = waitq.New(q.wake)
	return q
}

// enqueue puts a waiter into the queue, which must not get a permit at once.
func enqueue(tb testing.TB, p *ratelimit.Policy, clk clock.Clock, maxWait time.Duration) *queued {
	tb.Helper()
	q := newQueued(clk)
	if entered, err := p.EnterAsync(tb.Context(), maxWait, 0, q.Waiter); entered || err != nil {
		tb.Fatalf("EnterAsync = %v, %v; want a place in the queue", entered, err)
	}
	return q
}

// due is when q was woken, after the test's start; -1 if it was not.
func (q *queued) due() time.Duration {
	select {
	case <-q.woken:
		return q.when.Sub(start)
	default:
		return -1
	}
}

// dues is due of all of them.
func dues(qs ...*queued) (ds []time.Duration) {
	for _, q := range qs {
		ds = append(ds, q.due())
	}
	return ds
}

// acquire calls Acquire on a goroutine of its own and returns where its result
// comes out.
func acquire(ctx context.Context, p *ratelimit.Policy) <-chan error {
	result := make(chan error, 1)
	go func() { result <- p.Acquire(ctx) }()
	return result
}

// counts are the numbers of a snapshot that tests compare.
type counts struct {
	Available, Waiting int
	Admitted, Rejected uint64
}

func countsOf(p *ratelimit.Policy) counts {
	s := p.Snapshot()
	return counts{s.Available, s.Waiting, s.Admitted, s.Rejected}
}
