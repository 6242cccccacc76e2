package wheel_test

import (
	"fmt"
	"time"
)

// Two calls are armed with a second each. One finishes in time, the other does
// not.
func Example() {
	world, w := newWorld() // a fake clock; wheel.New(wheel.Config[call]{…}) otherwise
	level := w.Level(int64(time.Second))
	start := func(name string) *call {
		c := &call{limit: int64(time.Second)}
		c.onExpire = func(*call) func() {
			fmt.Println(name, "timed out")
			return nil
		}
		var bound int64
		c.start, bound = w.Start(c.limit)
		c.slot = level.Arm(c, bound)
		return c
	}
	quick, _ := start("quick"), start("slow")
	world.advance(500 * time.Millisecond)
	fmt.Println("quick in time:", quick.slot.CompareAndSwap(quick, nil))
	world.advance(600 * time.Millisecond)
	fmt.Println("pending:", w.Pending())
	// Output:
	// quick in time: true
	// slow timed out
	// pending: 0
}
