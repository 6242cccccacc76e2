package prices_test

import (
	"context"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	prices "resilience4cata.dev/go/examples/testing"
	"resilience4cata.dev/go/registry"
)

// Examples on a manual clock always print the same, at once.
func ExampleClient_Price() {
	clk := clock.NewManual(noon)
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		panic(err)
	}
	attempts := 0
	c, err := prices.NewClient(reg, shopFunc(func(ctx context.Context, _ string) (int, error) {
		if attempts++; attempts < 3 {
			return 0, clk.Sleep(ctx, time.Hour) // hangs
		}
		return 249, nil
	}))
	if err != nil {
		panic(err)
	}
	cents, err := c.Price(context.Background(), "tea")
	fmt.Println(cents, err, "after", clk.Now().Sub(noon))
	// Output: 249 <nil> after 7s
}
