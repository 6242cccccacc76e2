package prices

import (
	"context"
	"errors"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// ErrUnknown is a Shop's answer for a product that it does not have. It is an
// answer and no failure: it is not retried, and does not count for the breaker.
var ErrUnknown = errors.New("prices: unknown product")

// Shop is the dependency: anything that knows prices.
type Shop interface {
	Price(ctx context.Context, product string) (cents int, err error)
}

// Client asks a Shop, and bears with it: an attempt may take two seconds, there
// are three of them with one and two seconds in between, and after four failures
// in a row nobody asks for a minute. It is safe for concurrent use.
type Client struct {
	shop   Shop
	prices *pipeline.Pipeline[int]
}

// NewClient returns a client of shop. All its time is the registry's.
func NewClient(reg *registry.Registry, shop Shop) (*Client, error) {
	p, err := pipeline.New[int](reg, "prices").
		Retry(retry.MaxAttempts(3), retry.Exponential(time.Second, 2), retry.AbortOn(ErrUnknown)).
		CircuitBreaker(
			circuitbreaker.CountWindow(4), circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(1),
			circuitbreaker.OpenFor(time.Minute), circuitbreaker.Ignore(ErrUnknown)).
		Timeout(2 * time.Second).
		Build()
	return &Client{shop, p}, err
}

// Price returns what product costs.
func (c *Client) Price(ctx context.Context, product string) (cents int, err error) {
	return c.prices.Execute(ctx, c.ask(product))
}

// PriceAsync is Price without waiting for it.
func (c *Client) PriceAsync(ctx context.Context, product string) *pipeline.Future[int] {
	return c.prices.ExecuteAsync(ctx, c.ask(product))
}

func (c *Client) ask(product string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return c.shop.Price(ctx, product) }
}
