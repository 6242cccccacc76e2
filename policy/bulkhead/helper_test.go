package bulkhead_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

const unbounded = bulkhead.Unbounded

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// newPolicy returns a bulkhead "b" on the system clock.
func newPolicy(tb testing.TB, c bulkhead.Config) *bulkhead.Policy {
	tb.Helper()
	p, err := bulkhead.New("b", c, clock.System())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// newManual returns a bulkhead "b" on a manual clock.
func newManual(tb testing.TB, c bulkhead.Config) (*bulkhead.Policy, *clock.Manual) {
	tb.Helper()
	m := clock.NewManual(start)
	p, err := bulkhead.New("b", c, m)
	if err != nil {
		tb.Fatal(err)
	}
	return p, m
}

// newPassive returns a bulkhead "b" on a manual clock that only the test moves.
func newPassive(tb testing.TB, c bulkhead.Config) (*bulkhead.Policy, *clock.Manual) {
	tb.Helper()
	m := clock.NewManual(start).Passive()
	p, err := bulkhead.New("b", c, m)
	if err != nil {
		tb.Fatal(err)
	}
	return p, m
}

// newIn returns a bulkhead "b" in a scope whose events are kept, on a passive
// manual clock.
func newIn(tb testing.TB, c bulkhead.Config) (*bulkhead.Policy, *scope.Scope, *clock.Manual, *testkit.Journal) {
	tb.Helper()
	l := &testkit.Journal{}
	m := clock.NewManual(start).Passive()
	s := scope.New(m, l.Listen)
	p, err := bulkhead.NewIn(s, "b", c)
	if err != nil {
		tb.Fatal(err)
	}
	return p, s, m, l
}

// mustAcquire takes a slot that must be free.
func mustAcquire(tb testing.TB, p *bulkhead.Policy) {
	tb.Helper()
	if !p.TryAcquire() {
		tb.Fatal("no slot is free")
	}
}

// setLimit sets a limit that must be legal.
func setLimit(tb testing.TB, p *bulkhead.Policy, n int) {
	tb.Helper()
	if err := p.SetLimit(n); err != nil {
		tb.Fatal(err)
	}
}

// queued is a waiter that came by EnterAsync.
type queued struct {
	*waitq.Waiter
	woken chan struct{} // closed by its wake; a second wake panics
}

// enqueue puts a waiter into the queue that must find no slot free.
func enqueue(tb testing.TB, p *bulkhead.Policy, maxWait time.Duration) queued {
	tb.Helper()
	q := queued{woken: make(chan struct{})}
	q.Waiter = waitq.New(func() { close(q.woken) })
	if entered, err := p.EnterAsync(tb.Context(), maxWait, q.Waiter); entered || err != nil {
		tb.Fatalf("EnterAsync = %v, %v; want a place in the queue", entered, err)
	}
	return q
}

// acquire calls Acquire on a goroutine of its own and returns where its result
// comes out.
func acquire(ctx context.Context, p *bulkhead.Policy) <-chan error {
	result := make(chan error, 1)
	go func() { result <- p.Acquire(ctx) }()
	return result
}

// pending reports whether nothing came out of acquire yet.
func pending(result <-chan error) bool {
	return len(result) == 0
}

// counts are the numbers of a snapshot that tests compare.
type counts struct {
	Limit, InUse, Available, Waiting int
	Admitted, Rejected               uint64
}

func countsOf(p *bulkhead.Policy) counts {
	s := p.Snapshot()
	return counts{s.Limit, s.InUse, s.Available, s.Waiting, s.Admitted, s.Rejected}
}

// configOf returns the defaults with the options applied.
func configOf(opts ...bulkhead.Option) bulkhead.Config {
	c := bulkhead.Default()
	c.Apply(opts...)
	return c
}

// awaitSleepers waits until n goroutines wait on a passive clock.
func awaitSleepers(tb testing.TB, m *clock.Manual, n int) {
	tb.Helper()
	if err := m.AwaitSleepers(tb.Context(), n); err != nil {
		tb.Fatal(err)
	}
}

// await spins until the condition holds: for states that no clock announces.
func await(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}
