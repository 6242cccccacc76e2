package circuitbreaker

import (
	"sync/atomic"
	"time"
)

// buckets is the number of parts that a time window is divided into: it moves
// by a tenth of its length, which is as fine as anybody can tell a ratio.
const buckets = 10

// timeWindow counts the samples of the last span in buckets of a tenth of it:
// the one that is being filled and the nine before it.
//
// A bucket belongs to one interval for ever and is never emptied: the first
// sample of a new interval puts a fresh bucket into the slot (32 bytes, ten in
// a window's length). A writer that was held up for that long adds to a bucket
// that nobody looks at any more, which is right: its sample has expired.
type timeWindow struct {
	width  int64        // of a bucket, in nanoseconds
	latest atomic.Int64 // the newest interval with a bucket; never decreases
	slots  [buckets]atomic.Pointer[bucket]
}

type bucket struct {
	interval              int64
	samples, failed, slow atomic.Int64
}

func newTimeWindow(span time.Duration) *timeWindow {
	width := int64(span) / buckets
	if int64(span)%buckets > 0 {
		width++
	}
	return &timeWindow{width: width}
}

// interval is the number of the interval that is being filled. A clock that
// went back does not bring old intervals back: samples go on counting in the
// newest one.
func (w *timeWindow) interval(now int64) int64 {
	return max(now/w.width, w.latest.Load())
}

func (w *timeWindow) add(failed, slow bool, now int64) tally {
	b := w.bucket(now)
	// samples first: see count.
	b.samples.Add(1)
	if failed {
		b.failed.Add(1)
	}
	if slow {
		b.slow.Add(1)
	}
	return w.sum(b.interval)
}

// bucket returns the bucket that is being filled.
func (w *timeWindow) bucket(now int64) *bucket {
	for {
		interval := w.interval(now)
		slot := &w.slots[interval%buckets]
		b := slot.Load()
		switch {
		case b != nil && b.interval == interval:
			return b
		case b == nil || b.interval < interval:
			fresh := &bucket{interval: interval}
			if slot.CompareAndSwap(b, fresh) {
				w.advance(interval)
				return fresh
			}
		default:
			// Another writer's clock is a whole window ahead and it has not yet
			// said so: help it, then look again.
			w.advance(b.interval)
		}
	}
}

func (w *timeWindow) advance(interval int64) {
	for {
		latest := w.latest.Load()
		if latest >= interval || w.latest.CompareAndSwap(latest, interval) {
			return
		}
	}
}

func (w *timeWindow) count(now int64) tally { return w.sum(w.interval(now)) }

// recount is count: buckets only grow, so that it is never above anything.
func (w *timeWindow) recount(now int64) tally { return w.count(now) }

// sum adds up the buckets from interval back. Within a bucket it reads the
// failures before the samples and a writer moves them in the other order, so
// that a failure that is seen has its sample seen too.
func (w *timeWindow) sum(interval int64) tally {
	var t tally
	for i := range w.slots {
		b := w.slots[i].Load()
		if b == nil || b.interval > interval || b.interval <= interval-buckets {
			continue
		}
		t.failed += b.failed.Load()
		t.slow += b.slow.Load()
		t.samples += b.samples.Load()
	}
	return t
}
