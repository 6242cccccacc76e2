package clock_test

import (
	"context"
	"fmt"
	"time"

	bclock "github.com/benbjohnson/clock"

	"resilience4cata.dev/go/clock"
)

func newManual() *clock.Manual {
	return clock.NewManual(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
}

// A slow dependency is interrupted at the instant its context ends.
func ExampleManual_Sleep() {
	clk := newManual()
	ctx, cancel := context.WithCancel(context.Background())
	clk.AfterFunc(2*time.Second, cancel) // what a timeout of two seconds does

	err := clk.Sleep(ctx, 5*time.Second)
	fmt.Println(err, clk.Now().Format(time.TimeOnly), clk.Pending())
	// Output: context canceled 12:00:02 0
}

// Code that ignores its context: the timeout fires on the way and is not heard.
func ExampleManual_Advance() {
	clk := newManual()
	ctx, cancel := context.WithCancel(context.Background())
	clk.AfterFunc(2*time.Second, func() {
		fmt.Println("timeout at", clk.Now().Format(time.TimeOnly))
		cancel()
	})

	clk.Advance(5 * time.Second)
	fmt.Println(ctx.Err(), clk.Now().Format(time.TimeOnly))
	// Output:
	// timeout at 12:00:02
	// context canceled 12:00:05
}

func ExampleManual_AfterFunc() {
	clk := newManual()
	clk.AfterFunc(time.Second, func() { fmt.Println("fired") })
	timer := clk.AfterFunc(time.Second, func() { fmt.Println("never") })

	fmt.Println("prevented:", timer.Stop())
	clk.Advance(time.Minute)
	fmt.Println("prevented:", timer.Stop())
	// Output:
	// prevented: true
	// fired
	// prevented: false
}

func ExampleManual_Set() {
	clk := newManual()
	clk.AfterFunc(time.Hour, func() { fmt.Println("tick", clk.Now().Format(time.TimeOnly)) })
	clk.Set(time.Date(2030, 1, 1, 18, 0, 0, 0, time.UTC))
	clk.Set(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)) // never back
	fmt.Println(clk.Now().Format(time.TimeOnly))
	// Output:
	// tick 13:00:00
	// 18:00:00
}

// Runs a chain of backoffs to its end, however long it is.
func ExampleManual_Drive() {
	clk := newManual()
	attempts := 0
	var attempt func()
	attempt = func() {
		if attempts++; attempts < 4 {
			clk.AfterFunc(time.Duration(attempts)*time.Minute, attempt)
		}
	}
	attempt()

	err := clk.Drive(context.Background(), func() bool { return attempts == 4 })
	fmt.Println(err, attempts, clk.Now().Format(time.TimeOnly))
	// Output: <nil> 4 12:06:00
}

func ExampleManual_Wait() {
	clk := newManual()
	slot := make(chan struct{})
	clk.AfterFunc(3*time.Second, func() { close(slot) })

	err := clk.Wait(context.Background(), slot)
	fmt.Println(err, clk.Now().Format(time.TimeOnly))
	// Output: <nil> 12:00:03
}

// Where to look when a test waits for something: what comes next, and when.
func ExampleManual_Next() {
	clk := newManual()
	clk.AfterFunc(90*time.Second, func() {})
	next, ok := clk.Next()
	fmt.Println(next.Format(time.TimeOnly), ok, clk.Pending())
	fmt.Println(clk)
	// Output:
	// 12:01:30 true 1
	// manual clock at 2030-01-01T12:00:00Z, 1 pending
}

// One goroutine moves the time of all others.
func ExampleManual_Passive() {
	ctx := context.Background()
	clk := newManual().Passive()
	done := make(chan string)
	go func() {
		err := clk.Sleep(ctx, 2*time.Second)
		done <- fmt.Sprint("slept: ", err)
	}()

	_ = clk.AwaitSleepers(ctx, 1)
	clk.Advance(2 * time.Second)
	fmt.Println(<-done)
	// Output: slept: <nil>
}

func ExampleManual_AwaitSleepers() {
	ctx := context.Background()
	clk := newManual().Passive()
	done := make(chan error)
	go func() {
		for range 3 { // three backoffs in a row
			if err := clk.Sleep(ctx, time.Second); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()

	for range 3 {
		_ = clk.AwaitSleepers(ctx, 1) // the next one, never the one just woken
		clk.Advance(time.Second)
	}
	fmt.Println(<-done, clk.Now().Format(time.TimeOnly))
	// Output: <nil> 12:00:03
}

func ExampleManual_AwaitTimers() {
	clk := newManual()
	fired := make(chan struct{})
	go clk.AfterFunc(time.Second, func() { close(fired) })

	_ = clk.AwaitTimers(context.Background(), 1)
	clk.Advance(time.Second)
	<-fired
	fmt.Println(clk.Pending())
	// Output: 0
}

func ExampleSystem() {
	fmt.Println(clock.System() == clock.System())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(clock.System().Sleep(ctx, time.Hour))
	// Output:
	// true
	// context canceled
}

// A code base that passes benbjohnson's clock around keeps it.
func ExampleFrom() {
	mock := bclock.NewMock()
	clk := clock.From(mock)
	fired := make(chan struct{})
	clk.AfterFunc(time.Minute, func() { close(fired) })
	mock.Add(time.Minute)
	<-fired
	fmt.Println(clk.Now().UTC().Format(time.TimeOnly), clock.From(bclock.New()) == clock.System())
	// Output: 00:01:00 true
}
