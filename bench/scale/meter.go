package main

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"time"
)

// meter measures what the process spends between two moments.
type meter struct {
	at      time.Time
	cpu     time.Duration
	wakeups int64
	pauses  []uint64
}

// usage is what was spent.
type usage struct {
	wall, cpu time.Duration
	wakeups   int64         // times that a thread had given its processor away and got one again
	pause     time.Duration // the longest pause of the garbage collector, at most
	pauses    uint64
}

func begin() meter {
	cpu, wakeups := processUsage()
	return meter{at: time.Now(), cpu: cpu, wakeups: wakeups, pauses: gcPauses().Counts}
}

func (m meter) end() usage {
	cpu, wakeups := processUsage()
	u := usage{wall: time.Since(m.at), cpu: cpu - m.cpu, wakeups: wakeups - m.wakeups}
	h := gcPauses()
	for i, n := range h.Counts {
		if n -= m.pauses[i]; n > 0 {
			u.pauses += n
			if upper := h.Buckets[i+1]; !math.IsInf(upper, 0) {
				u.pause = time.Duration(upper * 1e9)
			}
		}
	}
	return u
}

// core is the share of one processor, in percent.
func (u usage) core() float64 { return 100 * u.cpu.Seconds() / u.wall.Seconds() }

func (u usage) String() string {
	return fmt.Sprintf("%v, CPU %v (%.1f %% of a core), %d wake-ups, %d GC pauses up to %v",
		u.wall.Round(time.Millisecond), u.cpu.Round(time.Millisecond), u.core(), u.wakeups, u.pauses, u.pause.Round(time.Microsecond))
}

func gcPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// live is the heap that the last garbage collection found in use.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// heap collects garbage and returns what is left.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// megabytes are millions of bytes.
func megabytes(b int64) string { return fmt.Sprintf("%.1f MB", float64(b)/1e6) }
