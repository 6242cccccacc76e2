package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

func ExampleNew() {
	c := retry.Default()
	c.Apply(retry.MaxAttempts(5), retry.Linear(time.Second))
	p, err := retry.New("reports", c, clock.NewManual(start))
	fmt.Println(p.ID(), err)

	c.Apply(retry.MaxAttempts(0))
	_, err = retry.New("reports", c, clock.NewManual(start))
	fmt.Println(err)
	// Output:
	// reports <nil>
	// retry "reports": maxAttempts: 0 is no number of attempts (the first call counts: give at least 1, or -1 for unlimited) [R4C-ATR-003]
}

// On a manual clock a test takes no time, however long the delays.
func ExamplePolicy_Do() {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	c := retry.Default()
	c.Apply(retry.MaxAttempts(3), retry.Exponential(time.Second, 2))
	p, _ := retry.New("reports", c, clk)

	err := p.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("attempt", retry.Attempt(ctx), "at", clk.Now().Format(time.TimeOnly))
		return errors.New("connection reset")
	})
	fmt.Println(err)
	// Output:
	// attempt 1 at 12:00:00
	// attempt 2 at 12:00:01
	// attempt 3 at 12:00:03
	// retry "reports": attempts exhausted after 3 attempts: connection reset
}

// 500 ms never pay for three attempts of 300 ms.
func ExampleMaxDuration() {
	clk := clock.NewManual(start)
	c := retry.Default()
	c.Apply(retry.Constant(0), retry.MaxDuration(500*time.Millisecond))
	p, _ := retry.New("reports", c, clk)

	err := p.Do(context.Background(), func(ctx context.Context) error {
		if err := clk.Sleep(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		return errors.New("connection reset")
	})
	var e *retry.Error
	fmt.Println(errors.Is(err, retry.ErrOutOfTime), errors.As(err, &e))
	fmt.Println(e.Attempts, "attempts in", e.Elapsed)
	// Output:
	// true true
	// 2 attempts in 500ms
}

func ExamplePermanent() {
	errUnknown := errors.New("unknown report")
	p, _ := retry.New("reports", retry.Default(), clock.NewManual(start))

	calls := 0
	err := p.Do(context.Background(), func(context.Context) error {
		calls++
		return retry.Permanent(errUnknown)
	})
	fmt.Println(calls, err, errors.Is(err, errUnknown))
	// Output: 1 unknown report true
}

// The other side recognizes an attempt as a repetition by its key.
func ExampleIdempotencyKey() {
	p, _ := retry.New("orders", retry.Default(), clock.NewManual(start))
	paid := map[string]bool{}

	err := p.Do(context.Background(), func(ctx context.Context) error {
		paid[retry.IdempotencyKey(ctx)] = true // done, but the answer is lost
		if retry.Attempt(ctx) < 3 {
			return errors.New("connection reset")
		}
		return nil
	})
	fmt.Println(err, "payments:", len(paid))
	// Output: <nil> payments: 1
}

func ExampleWithIdempotencyKey() {
	p, _ := retry.New("orders", retry.Default(), clock.NewManual(start))
	ctx := retry.WithIdempotencyKey(context.Background(), "order-7")
	_ = p.Do(ctx, func(ctx context.Context) error {
		fmt.Println(retry.IdempotencyKey(ctx))
		return nil
	})
	// Output: order-7
}

// A budget bounds what all callers add to the load of something that is down.
func ExampleBudget() {
	c := retry.Default()
	c.Apply(retry.Budget(0.1, 1), retry.MaxAttempts(2), retry.Constant(0))
	p, _ := retry.New("reports", c, clock.NewManual(start))

	calls := 0
	for range 100 {
		_ = p.Do(context.Background(), func(context.Context) error { calls++; return errors.New("down") })
	}
	s := p.Snapshot()
	fmt.Println(calls, "calls,", s.Retries, "retries,", s.BudgetDenied, "denied")
	// Output: 111 calls, 11 retries, 89 denied
}

func ExampleConfig_Bound() {
	d, ok := retry.Default().Bound(2 * time.Second) // three attempts of 2 s, delays of 100 ms and 200 ms
	fmt.Println(d, ok)
	// Output: 6.3s true
}

func ExamplePolicy_Snapshot() {
	p, _ := retry.New("reports", retry.Default(), clock.NewManual(start))
	_ = p.Do(context.Background(), func(context.Context) error { return errors.New("down") })
	s := p.Snapshot()
	fmt.Println(s.ID, s.Retries, s.Exhausted)
	// Output: reports 2 1
}
