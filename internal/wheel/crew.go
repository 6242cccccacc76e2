package wheel

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// chunk is how many tasks are worth a goroutine, which costs some 500 ns to
	// start.
	chunk = 256

	// slice is how long the scheduler lets a goroutine run
	// (runtime.forcePreemptNS). Who began no task for less than this may just
	// have been preempted.
	slice = int64(10 * time.Millisecond)

	// maxHelpers bounds how many goroutines are started at once for a crew that
	// is stuck.
	maxHelpers = 1024
)

// crew is goroutines that work on tasks, as many as there are processors unless
// some get stuck in a task: a user's function that blocks. Then there are more,
// twice as many with each tick that passes without a task being begun, so that
// blocked tasks delay the others by a few ticks, however many they are.
type crew struct {
	spawn     func(func())
	afterFunc func(time.Duration, func()) Timer
	tick      func() int64

	one   func() bool // does one task; false: there is none
	empty func() bool // no task waits for somebody to take it
	stuck func()      // hears that one is stuck; may be nil

	workers  atomic.Int32
	starting atomic.Int32 // workers that still wait for a processor
	begun    atomic.Int64 // tasks
	watching atomic.Bool
}

func (c *crew) init(spawn func(func()), afterFunc func(time.Duration, func()) Timer, tick func() int64, one, empty func() bool, stuck func()) {
	c.spawn, c.afterFunc, c.tick, c.one, c.empty, c.stuck = spawn, afterFunc, tick, one, empty, stuck
}

// begin starts the crew for n tasks; the caller is its first worker, by what is
// returned.
func (c *crew) begin(n int) (first func()) {
	c.workers.Add(1)
	for more := min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk) - 1; more > 0; more-- {
		c.workers.Add(1)
		c.start()
	}
	c.watch()
	c.starting.Add(1)
	return c.work
}

// start starts a worker, which the caller has counted.
func (c *crew) start() {
	c.starting.Add(1)
	c.spawn(c.work)
}

// call sees to it that somebody works, or one more if there is a processor.
func (c *crew) call() {
	for n := c.workers.Load(); n < int32(runtime.GOMAXPROCS(0)); n = c.workers.Load() {
		if c.workers.CompareAndSwap(n, n+1) {
			c.start()
			c.watch()
			return
		}
	}
}

// work does tasks until there is none. A task that ends the goroutine
// (runtime.Goexit) is followed by another worker.
func (c *crew) work() {
	c.starting.Add(-1)
	defer func() {
		// Who adds a task looks at the workers afterwards; we leave, then look at
		// the tasks. One of us sees to it.
		c.workers.Add(-1)
		if !c.empty() {
			c.call()
		}
	}()
	for {
		c.begun.Add(1)
		if !c.one() {
			return
		}
	}
}

// watch looks after the crew until it has gone home.
func (c *crew) watch() {
	if c.watching.CompareAndSwap(false, true) {
		c.look(-1, 1)
	}
}

// look looks again after a tick. If no task was begun meanwhile although every
// worker has had a processor, all who work are stuck, or were preempted: a few
// goroutines too many then, never one a task.
func (c *crew) look(before int64, helpers int32) {
	c.afterFunc(time.Duration(max(c.tick(), slice)), func() {
		begun := c.begun.Load()
		switch {
		case c.workers.Load() == 0:
			c.watching.Store(false)
			if c.workers.Load() != 0 { // called meanwhile by somebody who saw us watching
				c.watch()
			}
			return
		case begun != before:
			helpers = 1
		default:
			if c.stuck != nil {
				c.stuck()
			}
			if c.starting.Load() == 0 && !c.empty() {
				for range helpers {
					c.workers.Add(1)
					c.start()
				}
				helpers = min(2*helpers, maxHelpers)
			}
		}
		c.look(begun, helpers)
	})
}
