package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/timeout"
)

// until is a pipeline whose calls are all due at one instant. Those that come too
// late for it are due at once: zero would mean that they have no timeout.
func until(at time.Time) *pipeline.Pipeline[int] {
	return must(pipeline.New[int](newRegistry(), "stages").
		Timeout(time.Minute, timeout.Func(func(context.Context) time.Duration { return max(time.Until(at), 1) })).
		Build())
}

// notice is the time that n calls get to start before they are due.
func notice(n int) time.Duration { return 2*time.Second + time.Duration(n)*6*time.Microsecond }

// stages: what a pending stage holds, promise and future included, and how soon
// all of them fail that are due at one instant.
func stages(s *session) {
	l := newPending(s.calls)
	p := withTimeout(newRegistry(), "stages", time.Hour)
	before := heap()
	began := time.Now()
	l.start(p, s.calls)
	started := time.Since(began)
	size := heap() - before
	began = time.Now()
	runtime.GC()
	gc := time.Since(began)
	s.printf("%d stages started in %v (%v each), heap %s (%.1f B each), a garbage collection takes %v\n", s.calls,
		started.Round(time.Millisecond), started/time.Duration(s.calls), megabytes(size), float64(size)/float64(s.calls), gc.Round(time.Millisecond))
	l.complete()
	limit := int64(250e6) * int64(s.calls) / 1_000_000
	s.row(fmt.Sprintf("%d pending stages, heap", s.calls), megabytes(size), "≤ "+megabytes(limit), size <= limit)

	at := time.Now().Add(notice(s.calls))
	l.start(until(at), s.calls)
	spare := time.Until(at)
	m := begin()
	failed := l.failed()
	late := time.Since(at)
	s.printf("%d failed, the last %v after the common deadline; waiting for it: %v\n", failed, late.Round(time.Millisecond), m.end())
	if spare <= 0 {
		s.printf("the machine was too slow: some were due before all had started\n")
	}
	s.row(fmt.Sprintf("%d pending stages, all failed", s.calls), late.Round(time.Millisecond).String(), "≤ 2 s after the deadline",
		late <= 2*time.Second && failed == s.calls && spare > 0)
}

// expiry: everything is due at once, and each is asked when it heard of it.
func expiry(s *session) {
	n := s.calls / 5
	own := newRecorder(n)
	l := newPending(n)
	at := time.Now().Add(notice(n))
	l.start(until(at), n)
	for _, p := range l.promises {
		p.OnCancel(func() { own.add(time.Since(at)) })
	}
	early := l.endedBefore(at)
	m := begin()
	l.failed()
	last := time.Since(at)
	// The futures fail before their stages are told.
	for own.n.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	u := m.end()
	ours := own.sorted()
	s.printf("%d stages: the last future failed after %v; stages were told: %v; %v\n", n, round(last), ours, u)

	theirs := newRecorder(n)
	at = time.Now().Add(notice(n))
	contexts := make([]context.Context, n)
	for i := range contexts {
		ctx, cancel := context.WithDeadline(context.Background(), at)
		defer cancel() // all of them are needed until the end
		contexts[i] = ctx
		context.AfterFunc(ctx, func() { theirs.add(time.Since(at)) })
	}
	time.Sleep(time.Until(at))
	m = begin()
	for _, ctx := range contexts {
		<-ctx.Done()
	}
	last = time.Since(at)
	for theirs.n.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	u = m.end()
	std := theirs.sorted()
	s.printf("%d contexts: the last ended after %v; listeners were told: %v; %v\n", n, round(last), std, u)
	s.printf("%s", histogram([2]string{"stages", "context.WithDeadline"}, [2]durations{ours, std}))
	s.draw("expiry.svg", axes{title: fmt.Sprintf("%d deadlines at one instant", n), x: "ms late, at most", y: "% of them", logX: true},
		lateness("stages", ours), lateness("context.WithDeadline", std))
	early += ours.early()
	s.row(fmt.Sprintf("%d deadlines at one instant, early", n), strconv.Itoa(early), "0", early == 0)
}

// endedBefore waits until just before at and counts the calls that have ended.
func (l *pending) endedBefore(at time.Time) (n int) {
	time.Sleep(time.Until(at) - 100*time.Millisecond)
	for _, f := range l.futures {
		_, complete, _ := f.Poll()
		if time.Now().After(at) {
			break // what was found may have come in between
		}
		if complete {
			n++
		}
	}
	return n
}

// burst: one goroutine starts so many futures that they all have the same place
// to begin looking for a free slot.
func burst(s *session) {
	reg := newRegistry()
	p := withTimeout(reg, "burst", 30*time.Second)
	few := newPending(64)
	many := newPending(s.many)
	few.start(p, 64)
	few.complete()
	before := heap()

	var each [2]durations
	for range s.repeats {
		rounds := 1000
		began := time.Now()
		for range rounds {
			few.start(p, 64)
			few.complete()
		}
		each[0] = append(each[0], time.Since(began)/time.Duration(64*rounds))
		began = time.Now()
		many.start(p, s.many)
		many.complete()
		each[1] = append(each[1], time.Since(began)/time.Duration(s.many))
	}
	left := heap() - before
	a, b := median(each[0]), median(each[1])
	s.printf("start and complete: %v each in groups of 64, %v each in groups of %d; heap left over: %s\n", a, b, s.many, megabytes(left))
	s.row(fmt.Sprintf("%d futures from one goroutine, each beside one of 64", s.many), fmt.Sprintf("%.1fx", ratio(b, a)), "≤ 3x", ratio(b, a) <= 3)
	s.row("what they leave behind", megabytes(left), "≤ 8 MiB", left <= 8<<20)
	runtime.KeepAlive(reg)
}
