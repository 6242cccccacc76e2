package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// inflight looks at a wheel that ticks each millisecond while calls of ten
// seconds are in flight. Every second a twentieth of a million of them ends and
// as many begin.
func inflight(s *session) {
	const limit, churn = 10 * time.Second, 50 // a millisecond
	counts := []int{0, s.calls / 1000, s.calls / 100, s.calls / 10, s.calls / 4, s.calls / 2, s.calls}
	cost := curve{name: "mean tick"}
	means := make([]time.Duration, len(counts))
	var share float64
	var memory float64
	for i, n := range counts {
		records := make([]*record, n)
		for k := range records {
			records[k] = &record{}
		}
		w := newWatched()
		before := heap()
		for _, r := range records {
			w.arm(r, limit)
		}
		if n > 0 {
			memory = float64(heap()-before) / float64(n)
		}
		replace := func() {
			for range min(churn, n/10) {
				k := rand.IntN(n)
				records[k].finish()
				records[k] = &record{}
				w.arm(records[k], limit)
			}
		}
		w.trickle(min(s.span/5, s.settle), replace) // until it ticks, and knows the first deadlines
		w.taken()
		m := begin()
		w.trickle(s.span, replace)
		u := m.end()
		ticks := w.taken()
		means[i] = ticks.mean()
		busy := ticks.mean() * time.Duration(len(ticks))
		share = 100 * busy.Seconds() / u.wall.Seconds()
		if n > 0 {
			cost.add(float64(n), float64(means[i].Nanoseconds())/1e3)
		}
		s.printf("%9d in flight: %d ticks, CPU mean %v, median %v, max %v, %.2f %% of a core; %.1f B of wheel a call; process %v\n",
			n, len(ticks), means[i], ticks.quantile(.5), round(ticks.max()), share, memory, u)
		for _, r := range records {
			r.finish()
		}
		runtime.KeepAlive(w)
	}
	s.draw("tick.svg", axes{title: "Cost of a tick", x: "calls in flight", y: "µs of CPU", logX: true, logY: true}, cost)
	s.row(fmt.Sprintf("%d calls in flight, 1 ms ticks", s.calls), fmt.Sprintf("%.2f %% of a core", share), "≤ 3 %", share <= 3)
	s.row("wheel memory a call", fmt.Sprintf("%.1f B", memory), "≤ 40 B", memory <= 40)

	last := len(counts) - 1
	worst := max(ratio(means[last], means[last-1]), ratio(means[last-1], means[last-2]))
	s.row("twice the calls in flight, cost of a tick", fmt.Sprintf("%.2fx", worst), "≤ 2x", worst <= 2)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// mixed: do the ticks for short timeouts look at long ones?
func mixed(s *session) {
	const long = 30 * time.Second
	var means [2]time.Duration
	var share [2]float64
	for i, n := range []int{0, s.calls} {
		w := newWatched()
		records := make([]*record, n)
		for k := range records {
			records[k] = &record{}
			w.arm(records[k], long)
		}
		// The deadlines of what was armed are fixed once, by a sweep that takes
		// its time: some four seconds of ticks. That is the cost of arriving, which
		// part inflight has.
		w.trickle(s.settle, func() {})
		w.taken()
		m := begin()
		w.trickle(s.span, func() {})
		u := m.end()
		ticks := w.taken()
		means[i] = ticks.mean()
		share[i] = 100 * (ticks.mean() * time.Duration(len(ticks))).Seconds() / u.wall.Seconds()
		s.printf("%9d long ones pending: %d ticks, CPU mean %v, median %v, max %v, %.3f %% of a core; process %v\n",
			n, len(ticks), means[i], ticks.quantile(.5), round(ticks.max()), share[i], u)
		for _, r := range records {
			r.finish()
		}
	}
	more := max(share[1]-share[0], 0)
	s.row(fmt.Sprintf("16 ms timeouts beside %d pending of 30 s", s.calls), fmt.Sprintf("%.3f %% of a core more", more), "≤ 0.1 %", more <= .1)
}
