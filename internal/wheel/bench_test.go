package wheel_test

import (
	"fmt"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// armFinish reuses its record, against the rule. A tick that looks at it in just
// that moment reads a start that is being written: it does not matter here.
func armFinish(b *testing.B, w *testWheel, l *testLevel, c *call) {
	b.Helper()
	start, bound := w.Start(c.limit)
	c.start = start
	if !l.Arm(c, bound).CompareAndSwap(c, nil) {
		b.Fatal("expired")
	}
}

func BenchmarkArmFinish(b *testing.B) {
	for _, pending := range []int{0, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			w := newReal()
			for range pending {
				arm(w, new(call), time.Hour)
			}
			limit := int64(time.Hour)
			l := w.Level(limit)
			b.ReportAllocs()
			b.ResetTimer() // filling took longer than all that follows
			b.RunParallel(func(pb *testing.PB) {
				c := &call{limit: limit}
				for pb.Next() {
					armFinish(b, w, l, c)
				}
			})
		})
	}
}

// Each reading of the clock is 2 ms later than it was, so that 32 arms are never
// a burst.
func BenchmarkArmFinishQuiet(b *testing.B) {
	o := &world{now: 1}
	cfg := o.config()
	clk := newReal()
	var skip int64
	cfg.Now = func() int64 {
		skip += int64(2 * time.Millisecond)
		return clk.Now() + skip
	}
	w := wheel.New[call](cfg)
	c := &call{limit: 1000 * int64(time.Hour)}
	l := w.Level(c.limit)
	arm(w, new(call), time.Duration(c.limit))
	b.ReportAllocs()
	for b.Loop() {
		armFinish(b, w, l, c)
	}
	if w.Ticking() {
		b.Fatal("ticking")
	}
}

func BenchmarkAfterFuncStop(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			time.AfterFunc(time.Hour, func() {}).Stop()
		}
	})
}

// BenchmarkTick is one tick with entries in flight. idle: nothing in the level is
// due; scan: a short entry makes it compare the bounds of all blocks.
func BenchmarkTick(b *testing.B) {
	for _, pending := range []int{10, 1000, 100_000, 1_000_000} {
		for _, kind := range []string{"idle", "scan", "long"} {
			b.Run(fmt.Sprintf("%s/pending=%d", kind, pending), func(b *testing.B) {
				o, w := newWorld()
				limit := time.Hour
				if kind == "long" { // the sweep must know every deadline
					w.Use(16 * time.Millisecond)
				}
				startTicking(b, o, w)
				l := w.Level(int64(limit))
				for range pending {
					arm(w, new(call), limit)
				}
				b.ReportAllocs()
				for b.Loop() {
					o.now += w.TickLen() // on and on, less than the limit in all
					if o.now > int64(limit)/2 {
						o.now = int64(limit) / 2
					}
					arm(w, new(call), limit).finish()
					if kind == "scan" {
						l.ForceScan()
					}
					w.TickNow()
				}
			})
		}
	}
}
