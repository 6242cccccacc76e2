package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/timeout"
)

func ExampleNew() {
	_, err := timeout.New("reports", timeout.Config{Value: -time.Second}, clock.System())
	fmt.Println(err)
	// Output: timeout "reports": value: -1s is not a positive duration (give a duration above 0, such as 2s, or leave the timeout out) [R4C-ATR-002]
}

// A timeout of its own, without a pipeline.
func ExamplePolicy_Do() {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	p, err := timeout.New("reports", timeout.Config{Value: 2 * time.Second}, clk)
	if err != nil {
		log.Fatal(err)
	}
	err = p.Do(context.Background(), func(ctx context.Context) error {
		return clk.Sleep(ctx, 5*time.Second) // a slow dependency
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, timeout.ErrExceeded), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// timeout "reports": exceeded 2s: context deadline exceeded
	// true true
}

// A limit for each call, such as one that came with the request.
func ExampleFunc() {
	type limitKey struct{}
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	c := timeout.Config{Value: 2 * time.Second}
	c.Apply(timeout.Func(func(ctx context.Context) time.Duration {
		if d, ok := ctx.Value(limitKey{}).(time.Duration); ok {
			return d
		}
		return c.Value
	}))
	p, err := timeout.New("reports", c, clk)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.WithValue(context.Background(), limitKey{}, 300*time.Millisecond)
	fmt.Println(p.Do(ctx, func(ctx context.Context) error { return clk.Sleep(ctx, time.Minute) }))
	// Output: timeout "reports": exceeded 300ms: context deadline exceeded
}

func ExamplePolicy_Snapshot() {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	p, err := timeout.New("reports", timeout.Config{Value: time.Second}, clk)
	if err != nil {
		log.Fatal(err)
	}
	_ = p.Do(context.Background(), func(context.Context) error { clk.Advance(time.Minute); return nil })
	fmt.Println(p.Snapshot().TimedOut)
	// Output: 1
}
