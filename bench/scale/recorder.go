package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// recorder takes samples from many goroutines, up to the number it was made for.
type recorder struct {
	list []int64
	n    atomic.Int64
}

func newRecorder(most int) *recorder { return &recorder{list: make([]int64, most)} }

func (r *recorder) add(d time.Duration) {
	if i := r.n.Add(1) - 1; i < int64(len(r.list)) {
		r.list[i] = int64(d)
	}
}

// sorted returns what was taken. Nobody may be adding.
func (r *recorder) sorted() durations {
	d := make(durations, min(int(r.n.Load()), len(r.list)))
	for i := range d {
		d[i] = time.Duration(r.list[i])
	}
	slices.Sort(d)
	return d
}

// durations are sorted.
type durations []time.Duration

func (d durations) quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[int(q*float64(len(d)-1)+.5)]
}

func (d durations) max() time.Duration { return d.quantile(1) }

func (d durations) mean() time.Duration {
	if len(d) == 0 {
		return 0
	}
	var sum time.Duration
	for _, v := range d {
		sum += v
	}
	return sum / time.Duration(len(d))
}

// early is how many are below zero.
func (d durations) early() int {
	n, _ := slices.BinarySearch(d, 0)
	return n
}

func (d durations) String() string {
	return fmt.Sprintf("%d samples, early %d, mean %v, median %v, 99 %% %v, max %v", len(d), d.early(),
		round(d.mean()), round(d.quantile(.5)), round(d.quantile(.99)), round(d.max()))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// histogram shows two lists beside each other: how many samples of each are
// below the bound on the left and not below the one before.
func histogram(names [2]string, lists [2]durations) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    %10s  %20s  %20s\n", "late by", names[0], names[1])
	from := [2]int{lists[0].early(), lists[1].early()}
	fmt.Fprintf(&b, "    %10s  %20d  %20d\n", "early", from[0], from[1])
	for bound := 250 * time.Microsecond; from[0] < len(lists[0]) || from[1] < len(lists[1]); bound *= 2 {
		var n [2]int
		for i, d := range lists {
			to, _ := slices.BinarySearch(d, bound)
			n[i], from[i] = to-from[i], to
		}
		if n[0]+n[1] > 0 {
			fmt.Fprintf(&b, "    %10s  %20d  %20d\n", "< "+bound.String(), n[0], n[1])
		}
	}
	return b.String()
}
