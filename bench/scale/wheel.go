package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// record is an entry of a wheel that is looked at from inside.
type record struct {
	start, limit int64
	stamp        atomic.Int64
	slot         *atomic.Pointer[record]
}

func (r *record) WheelStart() int64         { return r.start }
func (r *record) WheelLimit() int64         { return r.limit }
func (r *record) WheelStamp() *atomic.Int64 { return &r.stamp }
func (r *record) WheelExpire(slot *atomic.Pointer[record]) (after func()) {
	slot.CompareAndSwap(r, nil)
	return nil
}

func (r *record) finish() { r.slot.CompareAndSwap(r, nil) }

// watched is a wheel that notes the processor time that each of its wake-ups takes.
type watched struct {
	*wheel.Wheel[record, *record]

	mu    sync.Mutex
	ticks durations // in the order of time
}

func newWatched() *watched {
	w := &watched{}
	w.Wheel = wheel.New[record](wheel.Config[record]{
		AfterFunc: func(d time.Duration, f func()) wheel.Timer {
			return time.AfterFunc(d, func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				began := threadTime()
				f()
				w.note(threadTime() - began)
			})
		},
	})
	return w
}

func (w *watched) note(d time.Duration) {
	w.mu.Lock()
	w.ticks = append(w.ticks, d)
	w.mu.Unlock()
}

// taken returns the durations since the last time, sorted.
func (w *watched) taken() durations {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.ticks
	w.ticks = nil
	slices.Sort(d)
	return d
}

func (w *watched) arm(r *record, limit time.Duration) {
	r.limit = int64(limit)
	start, bound := w.Start(r.limit)
	r.start = start
	r.slot = w.Level(r.limit).Arm(r, bound)
}

// trickle arms short entries that end at once, so many that the wheel ticks, each
// millisecond, and calls also. It returns after the time.
func (w *watched) trickle(d time.Duration, also func()) {
	const short = 16 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for range 64 {
			r := &record{}
			w.arm(r, short)
			r.finish()
		}
		also()
	}
}
