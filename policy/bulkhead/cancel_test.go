package bulkhead_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// BH-11, B-3: a release and a cancellation that meet, 100,000 times, with a
// second waiter behind: the first runs or is cancelled, never both, never
// neither; the second runs in every round; the slot is never lost.
func TestField_BH11_B3_GrantAgainstCancel(t *testing.T) {
	rounds := rounds()
	p := newPolicy(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
	waiter := func() (contexts chan<- context.Context, results <-chan outcome) {
		in, out := make(chan context.Context), make(chan outcome)
		go func() {
			defer close(out)
			for ctx := range in {
				o := outcome{err: p.Acquire(ctx)}
				if o.err == nil {
					o.ran = true
					p.Release()
				}
				out <- o
			}
		}()
		return in, out
	}
	firstIn, first := waiter()
	secondIn, second := waiter()
	cancels := make(chan func())
	go func() {
		for cancel := range cancels {
			cancel()
		}
	}()

	var cancelled int
	for round := range rounds {
		mustAcquire(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		firstIn <- ctx
		await(func() bool { return p.Snapshot().Waiting == 1 })
		secondIn <- t.Context()
		await(func() bool { return p.Snapshot().Waiting == 2 })

		switch round % 3 {
		case 0:
			cancels <- cancel
			p.Release()
		case 1:
			cancels <- cancel
			runtime.Gosched()
			p.Release()
		case 2:
			cancels <- p.Release
			cancel()
		}
		a, b := <-first, <-second
		if a.ran == errors.Is(a.err, context.Canceled) {
			t.Fatalf("round %d: the first ran: %v, err: %v", round, a.ran, a.err)
		}
		if !b.ran {
			t.Fatalf("round %d: the second did not run: %v", round, b.err)
		}
		if s := p.Snapshot(); s.Available != 1 || s.Waiting != 0 {
			t.Fatalf("round %d: %+v", round, s)
		}
		if !a.ran {
			cancelled++
		}
		cancel()
	}
	close(firstIn)
	close(secondIn)
	close(cancels)
	<-first
	<-second
	t.Logf("%d of %d were cancelled", cancelled, rounds)
	if got, want := p.Snapshot().Admitted, uint64(3*rounds-cancelled); got != want {
		t.Errorf("admitted %d, want %d", got, want)
	}
}

// rounds is 100,000, and fewer under the race detector, which takes six times as
// long for each.
func rounds() int {
	if raceEnabled {
		return 20_000
	}
	return 100_000
}

type outcome struct {
	ran bool
	err error
}

// hookClock forces an order: it calls hook where a wait would block, and answers
// that the context has ended, as a select may that finds both ready.
type hookClock struct {
	*clock.Manual
	hook func()
}

func (c *hookClock) Wait(ctx context.Context, _ <-chan struct{}) error {
	c.hook()
	return ctx.Err()
}

// BH-11, B-3, both orders forced: whoever comes first decides, and the second
// waiter runs either way.
func TestField_BH11_B3_BothOrdersForced(t *testing.T) {
	for _, grantFirst := range []bool{true, false} {
		c := &hookClock{Manual: clock.NewManual(start)}
		p, err := bulkhead.New("b", bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded}, c)
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		var second queued
		c.hook = func() { // the first stands in the queue
			second = enqueue(t, p, unbounded)
			if grantFirst {
				p.Release()
			}
			cancel()
		}
		err = p.Acquire(ctx)
		if grantFirst {
			if err != nil {
				t.Fatalf("granted first, but got %v", err)
			}
			if second.State() != waitq.Waiting {
				t.Fatalf("granted first: the second is %v", second.State())
			}
		} else if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled first, but got %v", err)
		}
		p.Release() // the first's slot, or the holder's
		<-second.woken
		if second.State() != waitq.Granted {
			t.Errorf("grant first %v: the second is %v", grantFirst, second.State())
		}
		p.Release()
		if s := p.Snapshot(); s.Available != 1 || s.Waiting != 0 {
			t.Errorf("grant first %v: %+v", grantFirst, s)
		}
	}
}

// The async form of the same: Leave against Release.
func TestField_BH11_B3_LeaveAgainstRelease(t *testing.T) {
	rounds := rounds()
	p := newPolicy(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
	releases, released := make(chan struct{}), make(chan struct{})
	go func() {
		for range releases {
			p.Release()
			released <- struct{}{}
		}
	}()
	var left int
	for round := range rounds {
		mustAcquire(t, p)
		first, second := enqueue(t, p, unbounded), enqueue(t, p, unbounded)
		releases <- struct{}{}
		if round%2 == 0 {
			runtime.Gosched()
		}
		gone := p.Leave(first.Waiter)
		<-released
		if granted := first.State() == waitq.Granted; granted == gone {
			t.Fatalf("round %d: granted %v, left %v", round, granted, gone)
		}
		if gone {
			left++
		} else {
			<-first.woken
			p.Release()
		}
		<-second.woken
		p.Release()
		if s := p.Snapshot(); s.Available != 1 || s.Waiting != 0 {
			t.Fatalf("round %d: %+v", round, s)
		}
	}
	close(releases)
	t.Logf("%d of %d left", left, rounds)
}
