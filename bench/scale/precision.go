package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// condition is what goes on while deadlines are measured.
type condition struct {
	name    string
	burners int  // goroutines that use a processor
	ticking bool // so many other calls that the registry's wheel ticks
}

// precision measures how long after its deadline a function learns of it. Both
// sides run at the same time, under the same load.
func precision(s *session) {
	conditions := []condition{
		{name: "idle"},
		{name: "busy registry", ticking: true},
		{name: "8 burners", burners: 8},
	}
	early := 0
	var idle []string
	reached := true
	for _, c := range conditions {
		var curves []curve
		for _, limit := range []time.Duration{16 * time.Millisecond, 200 * time.Millisecond} {
			ours, std := s.measure(c, limit)
			s.printf("%s, timeout %v\n    ours: %v\n    std:  %v\n%s", c.name, limit, ours, std,
				histogram([2]string{"ours", "context.WithTimeout"}, [2]durations{ours, std}))
			early += ours.early()
			curves = append(curves, lateness(fmt.Sprintf("ours, %v", limit), ours), lateness(fmt.Sprintf("context.WithTimeout, %v", limit), std))
			if c.burners == 0 {
				// Two ticks, and what the machine itself is late by: the standard
				// library's figure at the same time.
				tick := min(max(limit/16, time.Millisecond), 50*time.Millisecond)
				late := ours.max() - max(std.max(), 0)
				reached = reached && late <= 2*tick
				idle = append(idle, fmt.Sprintf("%.1f", max(ratio(late, tick), 0)))
			}
		}
		s.draw(fmt.Sprintf("lateness-%c.svg", c.name[0]), axes{title: "Lateness, " + c.name, x: "ms late, at most", y: "% of calls", logX: true}, curves...)
	}
	s.row("precision: early, idle and with 8 burners", strconv.Itoa(early), "0", early == 0)
	s.row("precision without load: ticks late beyond context.WithTimeout, at most", fmt.Sprint(idle), "≤ 2", reached)
}

func (s *session) measure(c condition, limit time.Duration) (ours, std durations) {
	p := withTimeout(newRegistry(), "precision", limit)
	stop, done := c.load(p.Execute)
	defer done()
	defer stop()

	const workers = 20
	own, theirs := newRecorder(s.samples), newRecorder(s.samples)
	var wg sync.WaitGroup
	worker := func(call func(began time.Time)) {
		for range s.samples / workers {
			// Not in step with each other, nor with the ticks.
			time.Sleep(time.Duration(rand.Int64N(int64(limit / 4))))
			began := time.Now()
			call(began)
		}
	}
	for range workers {
		wg.Go(func() {
			worker(func(began time.Time) {
				p.Execute(context.Background(), func(ctx context.Context) (int, error) { //nolint:errcheck // it times out
					<-ctx.Done()
					own.add(time.Since(began) - limit)
					return 0, ctx.Err()
				})
			})
		})
		wg.Go(func() {
			worker(func(began time.Time) {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				<-ctx.Done()
				theirs.add(time.Since(began) - limit)
			})
		})
	}
	wg.Wait()
	return own.sorted(), theirs.sorted()
}

// load makes the condition hold until stop is called; done waits for its end.
func (c condition) load(call func(context.Context, func(context.Context) (int, error)) (int, error)) (stop, done func()) {
	var ended atomic.Bool
	var wg sync.WaitGroup
	for range c.burners {
		wg.Go(func() {
			for n := uint64(1); !ended.Load(); {
				for range 10_000 {
					n = n*6364136223846793005 + 1442695040888963407
				}
				runtime.KeepAlive(n)
			}
		})
	}
	if c.ticking {
		wg.Go(func() {
			for !ended.Load() {
				for range 64 {
					must(call(context.Background(), op))
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() { ended.Store(true) }, wg.Wait
}
