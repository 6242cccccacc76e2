package wheel_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The real clock, at rest and with more busy goroutines than processors. That
// nothing is early is certain; how late things are depends on the machine, so
// the bound here is only against losing them.
func TestNeverEarlyOnRealClock(t *testing.T) { // T-5
	for _, load := range []int{0, 4 * min(runtime.GOMAXPROCS(0), runtime.NumCPU())} {
		var stop atomic.Bool
		var burners sync.WaitGroup
		for range load {
			burners.Go(func() {
				for x := uint64(1); !stop.Load(); {
					for range 1000 {
						x = x*6364136223846793005 + 1442695040888963407
					}
				}
			})
		}
		w := newReal()
		w.Use(16 * time.Millisecond)
		var early, late, n atomic.Int64
		var worst, beside atomic.Int64 // beside: the same with runtime timers
		var wg sync.WaitGroup
		end := time.Now().Add(900 * time.Millisecond)
		for range 4 {
			wg.Go(func() {
				fire := make(chan int64, 1)
				for round := 0; round == 0 || time.Now().Before(end); round++ {
					for range rand.IntN(60) {
						arm(w, new(call), time.Second).finish()
					}
					began := time.Now()
					c := arm(w, &call{onExpire: func(c *call) func() {
						fire <- int64(time.Since(began)) - c.limit
						return nil
					}}, time.Duration(1+rand.IntN(20))*time.Millisecond)
					d := <-fire
					std := time.Now()
					time.AfterFunc(time.Duration(c.limit), func() { fire <- int64(time.Since(std)) - c.limit })
					beside.Add(<-fire)
					if d < 0 || w.Deadline(c) < c.began+c.limit {
						early.Add(1)
					}
					n.Add(1)
					late.Add(d)
					for m := worst.Load(); d > m; m = worst.Load() {
						if worst.CompareAndSwap(m, d) {
							break
						}
					}
				}
			})
		}
		wg.Wait()
		stop.Store(true)
		burners.Wait()
		t.Logf("load %d: %d expired, mean %v late (time.AfterFunc %v), worst %v, %d ticks", load, n.Load(),
			time.Duration(late.Load()/n.Load()), time.Duration(beside.Load()/n.Load()), time.Duration(worst.Load()), w.Ticks())
		if early.Load() != 0 {
			t.Errorf("load %d: %d of %d early", load, early.Load(), n.Load())
		}
		if time.Duration(worst.Load()) > time.Minute {
			t.Errorf("load %d: up to %v late", load, time.Duration(worst.Load()))
		}
	}
}
