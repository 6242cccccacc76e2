package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/pipeline"
)

// rest: what a registry costs that was busy and is not.
func rest(s *session) {
	runtime.GC()
	goroutines := runtime.NumGoroutine()
	m := begin()
	time.Sleep(s.span)
	before := m.end()

	reg := newRegistry()
	p := withTimeout(reg, "rest", 16*time.Millisecond)
	w := newWatched()
	w.trickle(100*time.Millisecond, func() { must(p.Execute(context.Background(), op)) })
	var held record
	w.arm(&held, time.Hour)
	for end := time.Now().Add(10 * time.Second); (w.Ticking() || reg.Snapshot().Wheel.Ticking) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // whatever it still has to put in order
	w.taken()

	m = begin()
	time.Sleep(s.span)
	after := m.end()
	ticks := len(w.taken())
	more := runtime.NumGoroutine() - goroutines
	s.printf("the process before there was a registry: %v\n", before)
	s.printf("the process with one at rest:            %v\n", after)
	s.printf("%d wake-ups of the wheel with one call of an hour pending, %d goroutines more than before\n", ticks, more)
	held.finish()
	runtime.KeepAlive(p)
	s.row("at rest: wake-ups", strconv.Itoa(ticks), "0", ticks == 0)
	s.row("at rest: goroutines", strconv.Itoa(more), "0", more <= 0)
}

// snapshot: each id is a full stack of four policies, so each reading has five
// rows an id.
func snapshot(s *session) {
	reg := newRegistry()
	ids := make([]*pipeline.Pipeline[int], s.ids)
	before := heap()
	for i := range ids {
		ids[i] = stack(reg, fmt.Sprintf("id-%05d", i))
	}
	s.printf("%d ids with four policies each: %d B of heap an id\n", s.ids, (heap()-before)/int64(s.ids))

	var reading durations
	reg.Snapshot()
	for range 20 * s.repeats { // the first ones pay for pages that the heap has not touched yet
		began := time.Now()
		reg.Snapshot()
		reading = append(reading, time.Since(began))
	}
	slices.Sort(reading)
	s.printf("a snapshot: %v\n", reading)

	// One writer, so that there is a processor for the reader where there are
	// two. In turn, with and without the reader.
	var slower []float64
	var readings int64
	m := begin()
	for range s.repeats {
		alone := write(ids, s.span/5)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for next := time.Now(); !stop.Load(); readings++ {
				reg.Snapshot()
				next = next.Add(10 * time.Millisecond)
				time.Sleep(time.Until(next))
			}
		})
		beside := write(ids, s.span/5)
		stop.Store(true)
		wg.Wait()
		slower = append(slower, 100*(1-beside/alone))
		s.printf("calls a second: %.0f alone, %.0f while the snapshot is read\n", alone, beside)
	}
	u := m.end()
	slices.Sort(slower)
	loss := slower[len(slower)/2]
	hertz := float64(readings) / (u.wall.Seconds() / 2)
	s.printf("%.0f readings a second; %v\n", hertz, u)
	s.row(fmt.Sprintf("snapshot of %d ids, four policies each", s.ids), round(reading.quantile(.5)).String(), "≤ 20 ms", reading.quantile(.5) <= 20*time.Millisecond)
	s.row("writers while it is read at 100 Hz", fmt.Sprintf("%.1f %% slower (%.0f readings a second)", loss, hertz), "≤ 10 %", loss <= 10)
}

// write calls one id after the other.
func write(ids []*pipeline.Pipeline[int], d time.Duration) (perSecond float64) {
	ctx := context.Background()
	began := time.Now()
	calls := 0
	for time.Since(began) < d {
		for range 100 {
			must(ids[calls%len(ids)].Execute(ctx, op))
			calls++
		}
	}
	return float64(calls) / time.Since(began).Seconds()
}
