package wheel_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"resilience4cata.dev/go/internal/testkit"
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
	checkCollected(t, slices.Concat(captured[0], captured[1]))
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
	checkCollected(t, payloads)
	runtime.KeepAlive(w)
}

// checkCollected reports what is reachable and stays so: a tick that has looked at
// an entry holds it until it goes on.
func checkCollected(t *testing.T, payloads []weak.Pointer[[64]byte]) {
	t.Helper()
	kept := len(payloads)
	for began := time.Now(); kept > 0 && time.Since(began) < 10*time.Second; {
		runtime.GC()
		kept = 0
		for _, p := range payloads {
			if p.Value() != nil {
				kept++
			}
		}
	}
	if kept > 0 {
		t.Errorf("%d of %d are still reachable", kept, len(payloads))
	}
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
	var before, after runtime.MemStats
	wheels := make([]*testWheel, n)
	// What is allocated in all, and not what is in use: wheels of tests that have
	// ended may be freed meanwhile.
	runtime.ReadMemStats(&before)
	for i := range wheels {
		wheels[i] = newReal()
		wheels[i].Use(time.Second)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 4096 {
		t.Errorf("%d bytes", each)
	}
	runtime.KeepAlive(wheels)
}

// Ticks are callbacks of timers, so nothing is parked between them.
func TestNoGoroutineWhileTicking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := testkit.Goroutines(t)
		w := newReal()
		for range 100 {
			arm(w, new(call), 30*time.Second).finish()
		}
		for range 40 {
			synctest.Wait()
			if n := testkit.Goroutines(t) - before; n != 0 || !w.Ticking() {
				t.Fatalf("%d goroutines, ticking %v", n, w.Ticking())
			}
			arm(w, new(call), 30*time.Second).finish()
			time.Sleep(time.Duration(w.TickLen()) / 2)
		}
		if w.Ticks() < 15 {
			t.Errorf("%d ticks", w.Ticks())
		}
	})
}
