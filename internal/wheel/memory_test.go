package wheel_test

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"go.uber.org/goleak"
)

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestField_WH06_FinishedCallsLeaveNothing(t *testing.T) {
	n := 500_000
	if raceEnabled {
		n = 50_000
	}
	w := newReal()
	arm(w, new(call), time.Hour).finish()
	before := heapInUse()
	var wg sync.WaitGroup
	var captured [2][]weak.Pointer[[64]byte]
	for g := range 2 {
		wg.Go(func() {
			for i := range n {
				c := new(call)
				if i%(n/50) == 0 {
					c.payload = new([64]byte)
					captured[g] = append(captured[g], weak.Make(c.payload))
				}
				if !arm(w, c, time.Hour).finish() {
					t.Error("expired")
				}
			}
		})
	}
	wg.Wait()
	if p := w.Pending(); p != 0 {
		t.Errorf("pending %d", p)
	}
	if after := heapInUse(); after > before+8<<20 {
		t.Errorf("heap %d before, %d after", before, after)
	}
	for _, half := range captured {
		for i, p := range half {
			if p.Value() != nil {
				t.Errorf("what call %d captured is still reachable", i)
			}
		}
	}
	runtime.KeepAlive(w)
}

// An expired entry is not kept by its round, nor by the others in it.
func TestExpiredEntriesAreCollectable(t *testing.T) {
	o, w := newWorld()
	var payloads []weak.Pointer[[64]byte]
	for range 300 {
		c := &call{payload: new([64]byte)}
		payloads = append(payloads, weak.Make(c.payload))
		arm(w, c, 100*time.Millisecond)
	}
	o.advance(200 * time.Millisecond)
	runtime.GC()
	kept := 0
	for _, p := range payloads {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > 0 {
		t.Errorf("%d of %d are still reachable", kept, len(payloads))
	}
	runtime.KeepAlive(w)
}

func TestArmAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, ticking := range []bool{false, true} {
		o, w := newWorld()
		arm(w, new(call), time.Second).finish()
		if ticking {
			startTicking(t, o, w)
		}
		calls := make([]call, 202)
		i := 0
		step := func() {
			if !ticking {
				o.now += int64(time.Second) / 300 // no burst
			}
			arm(w, &calls[i], 100*time.Second).finish()
			i++
		}
		step()
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("ticking %v: %v allocations", ticking, n)
		}
	}
}

func TestAWheelThatNeverArmsCostsLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("sizes differ under the race detector")
	}
	const n = 1000
	before := heapInUse()
	wheels := make([]*testWheel, n)
	for i := range wheels {
		wheels[i] = newReal()
		wheels[i].Use(time.Second)
	}
	if each := (heapInUse() - before) / n; each > 4096 {
		t.Errorf("%d bytes", each)
	}
	runtime.KeepAlive(wheels)
}

// Ticks are callbacks of timers, so nothing is parked between them.
func TestNoGoroutineWhileTicking(t *testing.T) {
	w := newReal()
	for range 100 {
		arm(w, new(call), 30*time.Second).finish()
	}
	goleak.VerifyNone(t)
}
