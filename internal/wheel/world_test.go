package wheel_test

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/wheel"
)

// call is the record of these tests.
type call struct {
	start, limit int64
	stamp        atomic.Int64
	slot         *atomic.Pointer[call]
	began        int64                // the clock just before Start
	fired        atomic.Int64         // how often it expired
	onExpire     func(c *call) func() // after the decision
	onCall       func(c *call)        // before it
	payload      *[64]byte
}

var firing = new(call)

func (c *call) WheelStart() int64         { return c.start }
func (c *call) WheelLimit() int64         { return c.limit }
func (c *call) WheelStamp() *atomic.Int64 { return &c.stamp }

func (c *call) WheelExpire(slot *atomic.Pointer[call]) (after func()) {
	if c.onCall != nil {
		c.onCall(c)
	}
	if !slot.CompareAndSwap(c, firing) {
		return nil
	}
	c.fired.Add(1)
	if c.onExpire != nil {
		after = c.onExpire(c)
	}
	slot.Store(nil)
	return after
}

// finish reports whether c ended before its deadline won.
func (c *call) finish() bool {
	for !c.slot.CompareAndSwap(c, nil) {
		if c.slot.Load() != firing {
			return false
		}
		runtime.Gosched()
	}
	return true
}

type (
	testWheel = wheel.Wheel[call, *call]
	testLevel = wheel.Level[call, *call]
)

// arm starts and arms c.
func arm(w *testWheel, c *call, limit time.Duration) *call {
	c.limit = int64(limit)
	var bound int64
	c.began = w.Now()
	c.start, bound = w.Start(c.limit)
	c.slot = w.Level(c.limit).Arm(c, bound)
	return c
}

// hold arms c without a deadline.
func hold(w *testWheel, c *call) *call {
	c.start = -wheel.Never
	c.slot = w.Level(wheel.Never).Arm(c, wheel.Never)
	return c
}

func newReal() *testWheel { return wheel.New[call](wheel.Config[call]{Firing: firing}) }

// world is a fake clock with timers, moved by hand.
type world struct {
	mu     sync.Mutex
	now    int64
	timers []*fakeTimer
}

type fakeTimer struct {
	w    *world
	at   int64
	f    func()
	live bool
}

// newWorld returns a world and a wheel in it whose expiries run at once, on the
// goroutine that moves the clock.
func newWorld() (*world, *testWheel) {
	o := &world{now: 1}
	w := wheel.New[call](o.config())
	w.Spawn(func(f func()) { f() })
	return o, w
}

func (o *world) config() wheel.Config[call] {
	return wheel.Config[call]{Now: o.clock, AfterFunc: o.afterFunc, Firing: firing}
}

func (o *world) clock() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

func (o *world) afterFunc(d time.Duration, f func()) wheel.Timer {
	t := &fakeTimer{w: o, f: f}
	t.Reset(d)
	return t
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	o := t.w
	o.mu.Lock()
	defer o.mu.Unlock()
	was := t.live
	if !was {
		o.timers = append(o.timers, t)
	}
	t.live = true
	t.at = o.now + int64(d)
	if t.at < o.now {
		t.at = math.MaxInt64
	}
	return was
}

// advance moves the clock through all timers that are due within d.
func (o *world) advance(d time.Duration) {
	o.mu.Lock()
	end := o.now + int64(d)
	o.mu.Unlock()
	o.run(end)
	o.mu.Lock()
	o.now = max(o.now, end)
	o.mu.Unlock()
}

// stall moves the clock by d while nothing runs; then what is due runs late.
func (o *world) stall(d time.Duration) {
	o.mu.Lock()
	o.now += int64(d)
	end := o.now
	o.mu.Unlock()
	o.run(end)
}

func (o *world) run(end int64) {
	for {
		o.mu.Lock()
		i := -1
		for k, t := range o.timers {
			if t.at <= end && (i < 0 || t.at < o.timers[i].at) {
				i = k
			}
		}
		if i < 0 {
			o.mu.Unlock()
			return
		}
		t := o.timers[i]
		o.timers = slices.Delete(o.timers, i, i+1)
		t.live = false
		o.now = max(o.now, t.at)
		o.mu.Unlock()
		t.f()
	}
}

// pendingTimers is how many timers are set.
func (o *world) pendingTimers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.timers)
}

// drop forgets all timers, as the end of a bubble does.
func (o *world) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timers = nil
}

// burst arms and finishes many calls at one instant.
func burst(o *world, w *testWheel) {
	for range 64 {
		arm(w, new(call), time.Hour).finish()
	}
	o.advance(0)
}

// even is how the wheel rounds a deadline that nobody was told.
func even(d int64) int64 { return (d + 1) &^ 1 }

// startTicking makes w tick by calls that end at once.
func startTicking(tb testing.TB, o *world, w *testWheel) {
	tb.Helper()
	burst(o, w)
	if !w.Ticking() {
		tb.Fatal("64 arms at one instant did not make it tick")
	}
}

// keepBusy moves the clock by d in steps with a short call in each, so that the
// wheel goes on ticking.
func keepBusy(o *world, w *testWheel, d time.Duration) {
	step := time.Duration(w.TickLen())
	for ; d > 0; d -= step {
		arm(w, new(call), time.Hour).finish()
		o.advance(min(step, d))
	}
}
