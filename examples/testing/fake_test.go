package prices_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	prices "resilience4cata.dev/go/examples/testing"
	"resilience4cata.dev/go/registry"
)

var (
	noon    = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	errDown = errors.New("down")
)

// shopFunc is a Shop that is written where it is needed.
type shopFunc func(ctx context.Context, product string) (int, error)

func (f shopFunc) Price(ctx context.Context, product string) (int, error) { return f(ctx, product) }

// newClient returns a client of shop whose registry lives on clk.
func newClient(t *testing.T, clk clock.Clock, shop shopFunc, opts ...registry.Option) (*prices.Client, *registry.Registry) {
	t.Helper()
	reg, err := registry.New(append(opts, registry.WithClock(clk))...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := prices.NewClient(reg, shop)
	if err != nil {
		t.Fatal(err)
	}
	return c, reg
}
