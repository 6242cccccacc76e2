package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
)

// Ten permits a second, three of them at once.
func ExampleNew() {
	c := ratelimit.Default()
	c.Apply(ratelimit.PerSecond(10), ratelimit.Burst(3))
	clk := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	backend, err := ratelimit.New("backend", c, clk)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		fmt.Println(backend.TryAcquire())
	}
	// Output:
	// true
	// true
	// true
	// false
}

// Without MaxWait a call is refused at once, with the time after which it is
// worth to come again.
func ExamplePolicy_Acquire() {
	backend := newBackend(ratelimit.PerSecond(10), ratelimit.Burst(1))
	ctx := context.Background()
	fmt.Println(backend.Acquire(ctx))

	err := backend.Acquire(ctx)
	var limited *ratelimit.Error
	if errors.As(err, &limited) {
		fmt.Println(err)
		fmt.Println(errors.Is(err, ratelimit.ErrLimited), limited.RetryAfter())
	}
	// Output:
	// <nil>
	// ratelimit "backend": limited (retry after 100ms)
	// true 100ms
}

// With MaxWait calls wait for their turn. A manual clock is moved by the wait.
func ExampleMaxWait() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := clock.NewManual(start)
	c := ratelimit.Default()
	c.Apply(ratelimit.Per(3, time.Second), ratelimit.Burst(1), ratelimit.MaxWait(time.Second))
	backend, err := ratelimit.New("backend", c, clk)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		err := backend.Acquire(context.Background())
		fmt.Println(clk.Now().Sub(start), err)
	}
	// Output:
	// 0s <nil>
	// 333.333334ms <nil>
	// 666.666667ms <nil>
	// 1s <nil>
}

// A burst lowered drops what is stored above it.
func ExamplePolicy_SetRate() {
	backend := newBackend(ratelimit.PerSecond(10))
	fmt.Println(backend.Snapshot().Available)
	fmt.Println(backend.SetRate(5, time.Second, 2))
	fmt.Println(backend.Snapshot().Available)
	fmt.Println(backend.SetRate(0, time.Second, 2))
	// Output:
	// 10
	// <nil>
	// 2
	// ratelimit "backend": limit: 0 is not a positive number (give how many permits a period brings, at least 1) [R4C-ATR-003]
}

func ExamplePolicy_Snapshot() {
	backend := newBackend(ratelimit.PerSecond(50))
	backend.TryAcquire()
	text, err := json.Marshal(backend.Snapshot())
	fmt.Println(string(text), err)
	// Output:
	// {"id":"backend","config":{"limit":50,"period":"1s","burst":50,"maxWait":"0s"},"available":49,"waiting":0,"admitted":1,"rejected":0} <nil>
}

func ExampleConfig_Validate() {
	c := ratelimit.Config{Limit: 50, Period: time.Second}
	fmt.Println(c.Validate())
	// Output:
	// ratelimit: burst: 0 is not a positive number (give how many permits may be in store, at least 1) [R4C-ATR-003]
}

// newBackend returns a limiter on a manual clock.
func newBackend(opts ...ratelimit.Option) *ratelimit.Policy {
	c := ratelimit.Default()
	c.Apply(opts...)
	p, err := ratelimit.New("backend", c, clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	if err != nil {
		panic(err)
	}
	return p
}
