package circuitbreaker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// Code that can't be wrapped in a function asks before the call and tells the
// outcome after it.
func Example() {
	clk := clock.NewManual(start) // clock.System() in production
	c := circuitbreaker.Default()
	c.Apply(circuitbreaker.CountWindow(4), circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(.75))
	breaker, err := circuitbreaker.New("backend", c, clk)
	if err != nil {
		panic(err)
	}
	call := func(outcome error) error {
		permit, err := breaker.Allow()
		if err != nil {
			return err // nothing was sent
		}
		defer func() { permit.Record(outcome) }()
		return outcome
	}

	down := errors.New("connection refused")
	for range 5 {
		fmt.Println(call(down))
	}
	clk.Advance(5 * time.Second)
	fmt.Println(breaker.State())
	fmt.Println(call(nil), breaker.State())
	// Output:
	// connection refused
	// connection refused
	// connection refused
	// connection refused
	// circuitbreaker "backend": open, next probe in 5s
	// half-open
	// <nil> closed
}

// A refusal says when the next try is worth it.
func ExampleError_RetryAfter() {
	clk := clock.NewManual(start)
	c := circuitbreaker.Default()
	c.Apply(circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(30*time.Second))
	breaker, _ := circuitbreaker.New("backend", c, clk)
	permit, _ := breaker.Allow()
	permit.Failure()

	clk.Advance(12 * time.Second)
	_, err := breaker.Allow()
	var refusal *circuitbreaker.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.RetryAfter())
	}
	// Output: 18s
}

// Slow calls can open the breaker although every one of them succeeds.
func ExampleSlowCall() {
	clk := clock.NewManual(start)
	c := circuitbreaker.Default()
	c.Apply(circuitbreaker.MinCalls(2), circuitbreaker.SlowCall(2*time.Second, .5))
	breaker, _ := circuitbreaker.New("backend", c, clk)
	for _, took := range []time.Duration{time.Second, 3 * time.Second} {
		permit, _ := breaker.Allow()
		clk.Advance(took)
		permit.Record(nil)
		fmt.Println(took, breaker.State())
	}
	// Output:
	// 1s closed
	// 3s open
}

// Not every error says that the service is ill.
func ExampleIgnore() {
	notFound, badRequest := errors.New("not found"), errors.New("bad request")
	c := circuitbreaker.Default()
	c.Apply(
		circuitbreaker.MinCalls(2),
		circuitbreaker.Ignore(badRequest), // no sample at all
		circuitbreaker.FailIf(func(err error) bool { return !errors.Is(err, notFound) }), // a good answer
	)
	breaker, _ := circuitbreaker.New("backend", c, clock.NewManual(start))
	for _, err := range []error{badRequest, notFound, badRequest, notFound, errors.New("down")} {
		permit, _ := breaker.Allow()
		permit.Record(err)
	}
	fmt.Printf("%.2f\n", breaker.Snapshot().FailureRatio)
	// Output: 0.33
}

// An operator takes a service out of use, and back.
func ExamplePolicy_ForceOpen() {
	breaker, _ := circuitbreaker.New("backend", circuitbreaker.Default(), clock.NewManual(start))
	breaker.ForceOpen()
	_, err := breaker.Allow()
	fmt.Println(err)
	breaker.Reset()
	_, err = breaker.Allow()
	fmt.Println(err)
	// Output:
	// circuitbreaker "backend": open
	// <nil>
}

// During a migration nothing may open it.
func ExamplePolicy_ForceClosed() {
	c := circuitbreaker.Default()
	c.Apply(circuitbreaker.MinCalls(1))
	breaker, _ := circuitbreaker.New("backend", c, clock.NewManual(start))
	breaker.ForceClosed()
	permit, _ := breaker.Allow()
	permit.Failure()
	fmt.Println(breaker.State(), breaker.Snapshot().FailureRatio)
	// Output: closed 1
}

// New settings reach a living breaker; a mistake changes nothing.
func ExamplePolicy_Reconfigure() {
	breaker, _ := circuitbreaker.New("backend", circuitbreaker.Default(), clock.NewManual(start))
	c := breaker.Config()
	c.MinCalls = 200
	fmt.Println(breaker.Reconfigure(c))
	c.MinCalls = 50
	fmt.Println(breaker.Reconfigure(c), breaker.Config().MinCalls)
	// Output:
	// circuitbreaker "backend": minCalls: 200 is above the window of 100: the breaker could never open (lower minCalls or give a larger window) [R4C-ATR-007]
	// <nil> 50
}

// The snapshot is plain data.
func ExamplePolicy_Snapshot() {
	breaker, _ := circuitbreaker.New("backend", circuitbreaker.Default(), clock.NewManual(start))
	permit, _ := breaker.Allow()
	permit.Failure()
	text, _ := json.MarshalIndent(breaker.Snapshot(), "", "  ")
	fmt.Println(string(text))
	// Output:
	// {
	//   "id": "backend",
	//   "config": {
	//     "failureRatio": 0.5,
	//     "minCalls": 20,
	//     "window": 100,
	//     "timeWindow": "0s",
	//     "openFor": "5s",
	//     "halfOpenCalls": 1,
	//     "slowCall": "0s",
	//     "slowRatio": 0,
	//     "countRejections": false
	//   },
	//   "state": "closed",
	//   "failureRatio": 1,
	//   "retryAfterMs": 0,
	//   "rejected": 0
	// }
}

func ExampleNew() {
	breaker, err := circuitbreaker.New("backend", circuitbreaker.Default(), clock.NewManual(start))
	fmt.Println(breaker.ID(), breaker.State(), err)

	_, err = circuitbreaker.New("backend", circuitbreaker.Config{}, clock.NewManual(start))
	fmt.Println(err != nil) // the zero Config is not valid
	// Output:
	// backend closed <nil>
	// true
}

// The outcome belongs to the permit, in a deferred function, so that a panic is recorded as well.
func ExamplePolicy_Allow() {
	breaker, err := circuitbreaker.New("backend", circuitbreaker.Default(), clock.NewManual(start))
	if err != nil {
		panic(err)
	}
	call := func(work func() error) (err error) {
		permit, err := breaker.Allow()
		if err != nil {
			return err
		}
		err = errors.New("the work panicked") // unless it returns
		defer func() { permit.Record(err) }()
		err = work()
		return err
	}
	fmt.Println(call(func() error { return nil }), breaker.Snapshot().FailureRatio)
	fmt.Println(call(func() error { return errors.New("down") }), breaker.Snapshot().FailureRatio)
	// Output:
	// <nil> 0
	// down 0.5
}

func ExamplePolicy_Reset() {
	breaker, err := circuitbreaker.New("backend", circuitbreaker.Default(), clock.NewManual(start))
	if err != nil {
		panic(err)
	}
	breaker.ForceOpen() // stays so until it is taken back
	breaker.Reset()
	fmt.Println(breaker.State())
	// Output: closed
}
