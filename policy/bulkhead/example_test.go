package bulkhead_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// Two calls run at once, and a third is refused before it has done anything.
func Example() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 2}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for range 3 {
		if err := exports.Acquire(ctx); err != nil {
			fmt.Println(err)
			fmt.Println("full:", errors.Is(err, bulkhead.ErrFull), "no effect:", policy.NotStarted(err))
			continue
		}
		defer exports.Release()
		fmt.Println("running")
	}
	// Output:
	// running
	// running
	// bulkhead "exports": full (limit 2)
	// full: true no effect: true
}

// All mistakes come out at once.
func ExampleNew() {
	_, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 0, Queue: -2}, clock.System())
	for _, e := range policy.ConfigErrors(err) {
		fmt.Println(e)
	}
	// Output:
	// bulkhead "exports": maxConcurrent: 0 lets no call in (give the number of calls that may run at once, at least 1) [R4C-ATR-003]
	// bulkhead "exports": queue: -2 is negative (give how many calls may wait: 0 for none, -1 for any number) [R4C-ATR-003]
}

// Queue alone lets calls wait as long as their contexts allow.
func ExampleConfig_Apply() {
	c := bulkhead.Default()
	keys := c.Apply(bulkhead.MaxConcurrent(10), bulkhead.Queue(20))
	fmt.Println(keys)
	fmt.Printf("%+v\n", c)
	// Output:
	// [maxConcurrent queue]
	// {MaxConcurrent:10 Queue:20 MaxWait:-1ns FreeOnTimeout:false}
}

func ExampleConfig_Validate() {
	fmt.Println(bulkhead.Config{MaxConcurrent: 10, MaxWait: -time.Second}.Validate())
	// Output:
	// bulkhead: maxWait: -1s is negative (give how long a call may wait: 0s for not at all, -1ns for as long as its context allows) [R4C-ATR-003]
}

func ExampleNameOf() {
	id, ok := bulkhead.NameOf(bulkhead.MaxConcurrent(10), bulkhead.Name("backend"))
	fmt.Println(id, ok)
	// Output: backend true
}

// The wait takes part in a manual clock's time: no test sleeps.
func ExamplePolicy_Acquire() {
	clk := clock.NewManual(noon)
	exports, err := bulkhead.New("exports", bulkhead.Config{
		MaxConcurrent: 1,
		Queue:         20,
		MaxWait:       100 * time.Millisecond,
	}, clk)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	fmt.Println(exports.Acquire(ctx), clk.Now().Sub(noon))

	clk.AfterFunc(30*time.Millisecond, exports.Release) // the first call ends
	fmt.Println(exports.Acquire(ctx), clk.Now().Sub(noon))

	fmt.Println(exports.Acquire(ctx)) // the second never does
	fmt.Println(clk.Now().Sub(noon))
	// Output:
	// <nil> 0s
	// <nil> 30ms
	// bulkhead "exports": full after waiting 100ms (limit 1, queue 20)
	// 130ms
}

func ExamplePolicy_TryAcquire() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 1}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	fmt.Println(exports.TryAcquire(), exports.TryAcquire())
	exports.Release()
	fmt.Println(exports.TryAcquire())
	// Output:
	// true false
	// true
}

// A slot given back once too often is a mistake that shows at once.
func ExamplePolicy_Release() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 1}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	defer func() { fmt.Println(recover()) }()
	exports.Release()
	// Output:
	// bulkhead "exports": Release without a slot in use: it was called more often than slots were taken
}

// Lowering the limit waits for nobody; those inside go on.
func ExamplePolicy_SetLimit() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 2}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	exports.TryAcquire()
	exports.TryAcquire()
	show := func() {
		s := exports.Snapshot()
		fmt.Println("limit", s.Limit, "in use", s.InUse, "available", s.Available)
	}
	fmt.Println(exports.SetLimit(1))
	show()
	exports.Release()
	fmt.Println(exports.TryAcquire())
	show()
	// Output:
	// <nil>
	// limit 1 in use 2 available 0
	// false
	// limit 1 in use 1 available 0
}

// A new configuration is put in force, or refused as a whole.
func ExamplePolicy_Reconfigure() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 2}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	fmt.Println(exports.Reconfigure(bulkhead.Config{MaxConcurrent: 0}) != nil, exports.Config().MaxConcurrent)
	fmt.Println(exports.Reconfigure(bulkhead.Config{MaxConcurrent: 5}) != nil, exports.Config().MaxConcurrent)
	// Output:
	// true 2
	// false 5
}

func ExamplePolicy_Snapshot() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 10, Queue: 20, MaxWait: time.Second}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	exports.TryAcquire()
	text, err := json.MarshalIndent(exports.Snapshot(), "", "  ")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	// Output:
	// {
	//   "id": "exports",
	//   "config": {
	//     "maxConcurrent": 10,
	//     "queue": 20,
	//     "maxWait": "1s"
	//   },
	//   "limit": 10,
	//   "inUse": 1,
	//   "available": 9,
	//   "waiting": 0,
	//   "admitted": 1,
	//   "rejected": 0
	// }
}

// What a pipeline does: its layer brings its own wait.
func ExamplePolicy_Enter() {
	clk := clock.NewManual(noon)
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 1, Queue: 20}, clk)
	if err != nil {
		panic(err)
	}
	exports.TryAcquire()
	fmt.Println(exports.Enter(context.Background(), 50*time.Millisecond))
	// Output:
	// bulkhead "exports": full after waiting 50ms (limit 1, queue 20)
}

// What a pipeline does for a call that must not block its caller.
func ExamplePolicy_EnterAsync() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 1, Queue: 20}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	exports.TryAcquire()
	woken := make(chan struct{})
	w := waitq.New(func() { close(woken) })
	fmt.Println(exports.EnterAsync(context.Background(), time.Second, w))
	exports.Release()
	<-woken
	fmt.Println(w.State() == waitq.Granted)
	// Output:
	// false <nil>
	// true
}

// A caller that gives up takes its waiter out of the line.
func ExamplePolicy_Leave() {
	exports, err := bulkhead.New("exports", bulkhead.Config{MaxConcurrent: 1, Queue: 20}, clock.NewManual(noon))
	if err != nil {
		panic(err)
	}
	exports.TryAcquire()
	w := waitq.New(func() { fmt.Println("never woken") })
	if _, err := exports.EnterAsync(context.Background(), time.Second, w); err != nil {
		panic(err)
	}
	fmt.Println(exports.Leave(w), exports.Snapshot().Waiting)
	// Output: true 0
}
