package docs_test

import (
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/registry"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// manual returns a registry on a manual clock, so that the examples take no time and always print the same.
func manual(opts ...registry.Option) (*registry.Registry, *clock.Manual) {
	clk := clock.NewManual(noon)
	return must(registry.New(append(opts, registry.WithClock(clk))...)), clk
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
