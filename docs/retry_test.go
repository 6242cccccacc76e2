package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
)

var errUnknownOrder = errors.New("unknown order")

func Example_classify() {
	reg, _ := manual()
	orders := pipeline.Must(pipeline.New[string](reg, "orders").
		Retry(retry.MaxAttempts(3), retry.AbortOn(errUnknownOrder)).
		Build())

	calls := 0
	_, err := orders.Execute(context.Background(), func(context.Context) (string, error) {
		calls++
		return "", fmt.Errorf("get order 7: %w", errUnknownOrder)
	})
	fmt.Println(calls, "call:", err)
	// Output: 1 call: get order 7: unknown order
}

// slowDown is what an HTTP client makes of a 429 or a 503 with a Retry-After header.
type slowDown struct{ after time.Duration }

func (e *slowDown) Error() string             { return "slow down" }
func (e *slowDown) RetryAfter() time.Duration { return e.after }

func Example_hint() {
	reg, clk := manual()
	orders := pipeline.Must(pipeline.New[string](reg, "orders").
		Retry(retry.MaxAttempts(3), retry.Constant(100*time.Millisecond), retry.MaxDelay(10*time.Second)).
		Build())

	_, err := orders.Execute(context.Background(), func(ctx context.Context) (string, error) {
		fmt.Println("attempt", retry.Attempt(ctx), "after", clk.Now().Sub(noon))
		if retry.Attempt(ctx) == 1 {
			return "", &slowDown{after: 2 * time.Second} // has a method RetryAfter
		}
		return "order 7", nil
	})
	fmt.Println(err)
	// Output:
	// attempt 1 after 0s
	// attempt 2 after 2s
	// <nil>
}

// shop commits an order after 80 ms and answers after 120 ms. It knows a request again by its key, if it has one.
type shop struct {
	orders int
	seen   map[string]bool
	sleep  func(ctx context.Context, d time.Duration) error
}

func (s *shop) order(ctx context.Context, key string) (string, error) {
	if err := s.sleep(ctx, 80*time.Millisecond); err != nil {
		return "", err
	}
	if key == "" || !s.seen[key] {
		s.orders++
		s.seen[key] = true
	}
	return "ordered", s.sleep(ctx, 40*time.Millisecond*time.Duration(2-retry.Attempt(ctx))) // the second time it is quick
}

func Example_repeat() {
	reg, clk := manual()
	orders := pipeline.Must(pipeline.New[string](reg, "orders").
		Retry(retry.MaxAttempts(2), retry.Constant(5*time.Millisecond)).
		Timeout(100 * time.Millisecond).
		Build())

	for _, withKey := range []bool{false, true} {
		backend := &shop{seen: map[string]bool{}, sleep: clk.Sleep} // commits after 80 ms, answers after 120 ms
		v, err := orders.Execute(context.Background(), func(ctx context.Context) (string, error) {
			key := ""
			if withKey {
				key = retry.IdempotencyKey(ctx) // the same for all attempts of this call
			}
			return backend.order(ctx, key)
		})
		fmt.Println(v, err, "- with a key:", withKey, "- orders in the shop:", backend.orders)
	}
	// Output:
	// ordered <nil> - with a key: false - orders in the shop: 2
	// ordered <nil> - with a key: true - orders in the shop: 1
}

func Example_lookFirst() {
	reg, _ := manual()
	transfers := pipeline.Must(pipeline.New[string](reg, "transfers").
		Retry(retry.MaxAttempts(3), retry.Constant(100*time.Millisecond)).
		Build())

	ledger := map[string]string{}
	v, err := transfers.Execute(context.Background(), func(ctx context.Context) (string, error) {
		if retry.Attempt(ctx) > 1 {
			if receipt, ok := ledger["transfer-7"]; ok { // did the attempt before get through?
				return receipt, nil
			}
		}
		ledger["transfer-7"] = "receipt 1"
		return "", errors.New("connection reset") // the answer is lost
	})
	fmt.Println(v, err)
	// Output: receipt 1 <nil>
}

func Example_notStarted() {
	ctx := context.Background()
	reg, _ := manual()
	primary := pipeline.Must(pipeline.New[string](reg, "primary").Bulkhead(bulkhead.MaxConcurrent(1)).Build())
	replica := pipeline.Must(pipeline.New[string](reg, "replica").Timeout(time.Second).Build())
	write := func(context.Context) (string, error) { return "written", nil }

	slots, _ := reg.Bulkhead("primary")
	slots.TryAcquire() // the primary is busy
	v, err := primary.Execute(ctx, write)
	if policy.NotStarted(err) { // certainly had no effect: it may be done elsewhere
		v, err = replica.Execute(ctx, write)
	}
	fmt.Println(v, err)
	// Output: written <nil>
}

func Example_budget() {
	ctx := context.Background()
	reg, _ := manual()
	budget := retry.Budget(0.1, 1) // over 10 s: a retry for every tenth call, and one a second besides
	backend := func() []retry.Option { return []retry.Option{retry.Constant(0), budget, retry.Name("backend")} }
	read := pipeline.Must(pipeline.New[int](reg, "read").Retry(backend()...).Build())
	write := pipeline.Must(pipeline.New[int](reg, "write").Retry(backend()...).Build())

	calls := 0
	down := func(context.Context) (int, error) { calls++; return 0, errors.New("down") }
	for range 500 {
		_, _ = read.Execute(ctx, down)
		_, _ = write.Execute(ctx, down)
	}
	fmt.Println("1000 calls became", calls)
	// Output: 1000 calls became 1101
}

// docs/retry.md says it in words.
func Example_limiterHint() {
	reg, clk := manual()
	p := pipeline.Must(pipeline.New[int](reg, "reports").
		Retry(retry.MaxAttempts(2), retry.Constant(10*time.Millisecond)).
		RateLimit(ratelimit.Per(1, time.Second)).
		Build())

	ok := func(context.Context) (int, error) { return 1, nil }
	_, _ = p.Execute(context.Background(), ok) // takes the only permit
	_, err := p.Execute(context.Background(), ok)
	fmt.Println(err, "after", clk.Now().Sub(noon))
	// Output: <nil> after 1s
}
