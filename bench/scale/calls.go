package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/bench"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func median(d durations) time.Duration {
	slices.Sort(d)
	return d.quantile(.5)
}

// rate: with a lazily cleaned wheel, ten seconds of this would leave ten million
// entries behind.
func rate(s *session) {
	const perSecond, limit = 1_000_000, 30 * time.Second
	p := withTimeout(newRegistry(), "rate", limit)
	ctx := context.Background()
	for range 1000 {
		must(p.Execute(ctx, op))
	}
	before := heap()
	workers := runtime.GOMAXPROCS(0)
	m := begin()
	began := time.Now()
	var calls atomic.Int64
	var highest uint64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			mine := 0
			for time.Since(began) < s.rate {
				due := int(time.Since(began).Seconds() * perSecond / float64(workers))
				for ; mine < due; mine++ {
					must(p.Execute(ctx, op))
				}
				time.Sleep(200 * time.Microsecond)
			}
			calls.Add(int64(mine))
		})
	}
	for time.Since(began) < s.rate {
		highest = max(highest, live())
		time.Sleep(50 * time.Millisecond)
	}
	wg.Wait()
	u := m.end()
	left := heap() - before
	done := float64(calls.Load()) / u.wall.Seconds()
	s.printf("%.0f calls a second; heap before %s, after %s more; live heap during it up to %s; %v\n",
		done, megabytes(before), megabytes(left), megabytes(int64(highest)), u)
	s.row("1,000,000 calls/s with a 30 s timeout, heap left", megabytes(left), "≤ 8 MiB", left <= 8<<20)
	s.row("the same, calls a second", fmt.Sprintf("%.0f", done), "≥ 950000", done >= 950_000)
}

// arm: does it matter to a call how many others wait for the same timeout?
func arm(s *session) {
	const limit = time.Hour
	ctx := context.Background()
	own, std := curve{name: "a call with a timeout"}, curve{name: "context.WithTimeout and cancel"}
	var first, last time.Duration
	counts := []int{0, s.calls / 1000, s.calls / 100, s.calls / 10, s.calls}
	for _, n := range counts {
		p := withTimeout(newRegistry(), "arm", limit)
		l := newPending(n)
		l.start(p, n)
		each := func() time.Duration {
			const calls = 100_000
			began := time.Now()
			for range calls {
				must(p.Execute(ctx, op))
			}
			return time.Since(began) / calls
		}
		each()
		var ours durations
		for range s.repeats {
			ours = append(ours, each())
		}
		l.complete()
		runtime.GC()

		cancels := make([]context.CancelFunc, n)
		for i := range cancels {
			_, cancels[i] = context.WithTimeout(ctx, limit)
		}
		theirs := durations{}
		for range s.repeats {
			const calls = 20_000
			began := time.Now()
			for range calls {
				c, cancel := context.WithTimeout(ctx, limit)
				if _, err := op(c); err != nil {
					panic(err)
				}
				cancel()
			}
			theirs = append(theirs, time.Since(began)/calls)
		}
		for _, cancel := range cancels {
			cancel()
		}
		a, b := median(ours), median(theirs)
		s.printf("%9d pending: %v a call, %v with context.WithTimeout\n", n, a, b)
		own.add(float64(max(n, 1)), float64(a))
		std.add(float64(max(n, 1)), float64(b))
		if n == 0 {
			first = a
		}
		last = a
	}
	s.draw("pending.svg", axes{title: "A call while others are pending", x: "pending with the same timeout (1: none)", y: "ns", logX: true}, own, std)
	s.row(fmt.Sprintf("arm and cancel, from 0 to %d pending", s.calls), fmt.Sprintf("%.1fx", ratio(last, first)), "≤ 3x", ratio(last, first) <= 3)
}

// stack is the full stack of the cost table.
func stack(reg *registry.Registry, id string) *pipeline.Pipeline[int] {
	return must(pipeline.New[int](reg, id).
		Retry(retry.MaxAttempts(bench.Attempts)).
		RateLimit(ratelimit.PerSecond(bench.Rate)).
		Timeout(bench.Limit).
		Bulkhead(bulkhead.MaxConcurrent(bench.Concurrency)).
		Build())
}

// count calls the pipelines, each from a goroutine of its own, for the time.
func count(pipelines []*pipeline.Pipeline[int], d time.Duration) (perSecond float64) {
	ctx := context.Background()
	var stop atomic.Bool
	var calls atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for _, p := range pipelines {
		wg.Go(func() {
			mine := int64(0)
			for ; !stop.Load(); mine++ {
				must(p.Execute(ctx, op))
			}
			calls.Add(mine)
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	return float64(calls.Load()) / time.Since(began).Seconds()
}

// cores: how much more two processors do than one.
func cores(s *session) {
	if runtime.NumCPU() < 2 {
		s.printf("this machine has one core only\n")
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var distinct, shared []float64
	for range s.repeats {
		var rates [3]float64
		for i, run := range []struct{ procs, ids int }{{1, 1}, {2, 2}, {2, 1}} {
			runtime.GOMAXPROCS(run.procs) // before the registry is made: it looks
			reg := newRegistry()
			pipelines := make([]*pipeline.Pipeline[int], run.procs)
			for k := range pipelines {
				if k < run.ids {
					pipelines[k] = stack(reg, fmt.Sprintf("id-%d", k))
				} else {
					pipelines[k] = pipelines[0]
				}
			}
			rates[i] = count(pipelines, s.span/5)
		}
		distinct, shared = append(distinct, rates[1]/rates[0]), append(shared, rates[2]/rates[0])
		s.printf("calls a second: one core %.0f, two cores with an id each %.0f, two cores with one id %.0f\n", rates[0], rates[1], rates[2])
	}
	slices.Sort(distinct)
	slices.Sort(shared)
	d, sh := distinct[len(distinct)/2], shared[len(shared)/2]
	s.printf("with one shared id (%.2fx), the limiter's word and the bulkhead's word are one cache line each that both cores write\n", sh)
	s.row("from 1 core to 2, full stack, distinct ids", fmt.Sprintf("%.2fx", d), "≥ 1.7x", d >= 1.7)
}
