package wheel_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// All from one goroutine, so from one hint.
func TestManyEntriesFromOneGoroutine(t *testing.T) {
	for _, n := range []int{64, 200_000} {
		_, w := newWorld()
		l := w.Level(int64(30 * time.Second))
		arm(w, new(call), 30*time.Second).finish()
		least := l.Slots() // a block a processor
		calls := make([]*call, n)
		for i := range calls {
			calls[i] = arm(w, new(call), 30*time.Second)
		}
		if got := l.Slots(); got > max(22*n, least) {
			t.Errorf("%d entries take %d slots, none take %d", n, got, least)
		}
		if n == 64 && l.Segments() != 1 {
			t.Errorf("64 entries take %d segments", l.Segments())
		}
		if w.Pending() != n {
			t.Errorf("pending %d, want %d", w.Pending(), n)
		}
		for _, c := range calls {
			if !c.finish() {
				t.Fatal("not found in its slot")
			}
		}
		if w.Pending() != 0 {
			t.Errorf("pending %d", w.Pending())
		}
	}
}

func TestShrinksAfterPeak(t *testing.T) {
	for _, kind := range []string{"ticking", "quiet", "held"} {
		o, w := newWorld()
		limit := time.Minute
		put := func() *call { return arm(w, new(call), limit) }
		l := w.Level(int64(limit))
		if kind == "held" {
			put = func() *call { return hold(w, new(call)) }
			l = w.Level(wheel.Never)
		}
		put().finish()
		least := l.Slots()
		calls := make([]*call, 50_000)
		for i := range calls {
			calls[i] = put()
		}
		peak := l.Slots()
		for _, c := range calls {
			c.finish()
		}
		if kind == "ticking" {
			startTicking(t, o, w)
			for range 40 * wheel.RingLen {
				keepBusy(o, w, time.Duration(w.TickLen()))
			}
		} else {
			o.advance(10 * time.Minute)
		}
		if l.Slots() != least || l.Segments() != 1 || peak < 50_000 {
			t.Errorf("%s: %d slots in %d segments, peak %d, least %d", kind, l.Slots(), l.Segments(), peak, least)
		}
		o.advance(2 * time.Hour) // the bounds that short calls have left
		n := w.Ticks()
		o.advance(time.Hour)
		if w.Ticks() != n {
			t.Errorf("%s: %d ticks at rest", kind, w.Ticks()-n)
		}
	}
}

// A long entry holds a large segment. Neither does it get lost, nor does the
// number of segments grow with every further peak.
func TestLongEntryHoldsItsSegment(t *testing.T) {
	o, w := newWorld()
	l := w.Level(int64(time.Minute))
	const long = 65 * time.Second // the same level
	var held []*call
	for range 10 {
		calls := make([]*call, 5000)
		for i := range calls {
			calls[i] = arm(w, new(call), time.Minute)
		}
		held = append(held, arm(w, new(call), long))
		for _, c := range calls {
			c.finish()
		}
		o.advance(6 * time.Second)
		if l.Segments() > 6 {
			t.Fatalf("%d segments", l.Segments())
		}
	}
	o.advance(long)
	for i, c := range held {
		if c.fired.Load() != 1 {
			t.Errorf("entry %d fired %d times", i, c.fired.Load())
		}
	}
	o.advance(10 * time.Minute)
	if l.Segments() != 1 {
		t.Errorf("%d segments at rest", l.Segments())
	}
}

// Goroutines arm and finish while the table is replaced and dropped as fast as
// ticks come. Every entry must be found where its arm said, by Each, and by the
// clock.
func TestNoEntryIsLostWhileSegmentsAreDropped(t *testing.T) {
	o := &world{now: 1}
	w := wheel.New[call](o.config())
	l := w.Level(int64(time.Hour))
	var wg sync.WaitGroup
	var stop atomic.Bool
	var arms, lost, unseen atomic.Int64
	for g := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			var open []*call
			for !stop.Load() {
				arms.Add(1)
				open = append(open, arm(w, new(call), time.Hour))
				if rng.IntN(50) == 0 {
					c := open[rng.IntN(len(open))]
					found := false
					w.Each(func(e *call, slot *atomic.Pointer[call]) {
						found = found || e == c && slot == c.slot
					})
					if !found {
						unseen.Add(1)
					}
				}
				for len(open) > 20 {
					i := rng.IntN(len(open))
					if !open[i].finish() {
						lost.Add(1)
					}
					open[i] = open[len(open)-1]
					open = open[:len(open)-1]
				}
			}
			for _, c := range open {
				if !c.finish() {
					lost.Add(1)
				}
			}
		})
	}
	drops, most := 0, 0
	for began := time.Now(); time.Since(began) < time.Second || drops == 0 && time.Since(began) < time.Minute; {
		for _, blocks := range []int{16, 4, 64, 4} {
			l.Replace(blocks)
			before := l.Segments()
			w.Count()
			if l.Segments() < before {
				drops++
			}
			most = max(most, before)
		}
		runtime.Gosched()
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d arms, %d drops", arms.Load(), drops)
	if lost.Load() != 0 || unseen.Load() != 0 || w.Pending() != 0 || drops == 0 || most > 5 {
		t.Errorf("%d lost, %d not seen by Each, %d pending, %d drops, up to %d segments", lost.Load(), unseen.Load(), w.Pending(), drops, most)
	}
}

// The same step by step: an arm that was interrupted while its segment became an
// old one, and publishes at each stage of the segment's end.
func TestStaleArmKeepsItsSegmentOrLeaves(t *testing.T) {
	for stage := range 4 {
		o, w := newWorld()
		l := w.Level(int64(time.Hour))
		arm(w, new(call), time.Hour).finish()
		startTicking(t, o, w)
		publish, kept := l.Stale()
		c := &call{start: -int64(2 * time.Hour), limit: int64(time.Hour)}
		if stage == 0 { // while the segment is current
			c.slot = publish(c)
		}
		l.Replace(l.Blocks() * 4)
		if stage == 1 { // before a census
			c.slot = publish(c)
		}
		if stage < 2 {
			w.Count()
		}
		if stage == 2 { // in the middle of a census, behind its back
			w.CountNow()
			w.TickNow()
			c.slot = publish(c)
			if l.Segments() != 2 {
				t.Fatal("dropped too early for this test")
			}
		}
		if stage == 3 { // too late
			w.Count()
			if l.Segments() != 1 {
				t.Fatal("an empty old segment was not dropped")
			}
			c.slot = publish(c)
		}
		stays := kept()
		for range 4 {
			w.TickNow() // goes through with what has begun
		}
		w.Count()
		found := false
		w.Each(func(e *call, _ *atomic.Pointer[call]) { found = found || e == c })
		if want := stage < 3; stays != want || found != want {
			t.Errorf("stage %d: may stay %v, found %v, want %v", stage, stays, found, want)
		}
		if c.finish(); stage < 3 {
			w.Count()
			w.Count()
			if l.Segments() != 1 {
				t.Errorf("stage %d: %d segments in the end", stage, l.Segments())
			}
		}
	}
}

// Many goroutines grow one level at once.
func TestGrowthFromManyGoroutines(t *testing.T) {
	w := newReal()
	n := 20_000
	if raceEnabled {
		n = 4000
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			calls := make([]*call, n)
			for i := range calls {
				calls[i] = arm(w, new(call), time.Hour)
			}
			seen := make(map[*atomic.Pointer[call]]bool, n)
			for _, c := range calls {
				if c.slot.Load() != c || seen[c.slot] {
					t.Error("not in a slot of its own")
				}
				seen[c.slot] = true
				c.finish()
			}
		})
	}
	wg.Wait()
	if w.Pending() != 0 {
		t.Errorf("pending %d", w.Pending())
	}
}
