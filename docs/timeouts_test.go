package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

func Example_work() {
	ctx := context.Background()
	reg, clk := manual(registry.WithListener(func(_ context.Context, e policy.Event) {
		if late, ok := e.(pipeline.LateSuccess); ok {
			fmt.Println("event: late success, by", late.Late)
		}
	}))
	tasks := pipeline.Must(pipeline.New[string](reg, "tasks").Timeout(100 * time.Millisecond).Build())

	entered, gate := make(chan struct{}), make(chan struct{})
	future := tasks.ExecuteAsync(ctx, func(context.Context) (string, error) {
		close(entered)
		<-gate // does not look at its context
		return "late-success", nil
	})
	<-entered
	clk.Advance(100 * time.Millisecond)

	_, err := future.Get(ctx)
	_, done, _ := future.Work().Poll()
	fmt.Println("caller:", err)
	fmt.Println("work done:", done, "- running:", reg.Snapshot().Pipelines[0].Abandoned.Running)

	clk.Advance(50 * time.Millisecond)
	close(gate)
	<-future.Work().Done()
	v, _, err := future.Work().Poll()
	_, errStill := future.Get(ctx)
	fmt.Println("work:", v, err, "- the caller still has an error:", errStill != nil)
	abandoned := reg.Snapshot().Pipelines[0].Abandoned
	fmt.Println("running:", abandoned.Running, "- late successes:", abandoned.LateSuccess)
	// Output:
	// caller: timeout "tasks": exceeded 100ms
	// work done: false - running: 1
	// event: late success, by 50ms
	// work: late-success <nil> - the caller still has an error: true
	// running: 0 - late successes: 1
}

func Example_cooperative() {
	reg, clk := manual()
	tasks := pipeline.Must(pipeline.New[string](reg, "tasks").Timeout(100 * time.Millisecond).Build())

	for _, checkFirst := range []bool{true, false} {
		effects := 0
		_, err := tasks.Execute(context.Background(), func(ctx context.Context) (string, error) {
			clk.Advance(150 * time.Millisecond) // work that does not look at ctx
			if checkFirst && ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			effects++
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			return "done", nil
		})
		fmt.Println("timeout:", errors.Is(err, timeout.ErrExceeded), "- effects:", effects)
	}
	// Output:
	// timeout: true - effects: 0
	// timeout: true - effects: 1
}

// attempts runs one input of the table in docs/timeouts.md in a form of a call: a function that fails so often, with a
// temporary or a permanent error, and then succeeds.
func attempts(form string, failures int, permanent bool) string {
	ctx := context.Background()
	reg, _ := manual()
	p := pipeline.Must(pipeline.New[string](reg, "tasks").Retry(retry.MaxAttempts(3), retry.Constant(0)).Build())

	calls := 0
	fn := func(context.Context) (string, error) {
		calls++
		switch {
		case calls > failures:
			return "ok", nil
		case permanent:
			return "", retry.Permanent(errors.New("no such order"))
		}
		return "", errors.New("connection reset")
	}
	var err error
	switch form {
	case "Execute":
		_, err = p.Execute(ctx, fn)
	case "ExecuteAsync":
		_, err = p.ExecuteAsync(ctx, fn).Get(ctx)
	case "ExecuteFuture":
		_, err = p.ExecuteFuture(ctx, func(ctx context.Context) *pipeline.Future[string] {
			stage := pipeline.NewPromise[string]()
			stage.Complete(fn(ctx))
			return stage.Future()
		}).Get(ctx)
	}
	if err != nil {
		return fmt.Sprint(calls, " failed")
	}
	return fmt.Sprint(calls, " ok")
}

func Example_onDiscard() {
	reg, clk := manual()
	conns := pipeline.Must(pipeline.New[string](reg, "connections").
		Timeout(time.Second).
		OnDiscard(func(conn string) { fmt.Println("closed", conn) }).
		Build())

	_, err := conns.Execute(context.Background(), func(context.Context) (string, error) {
		clk.Advance(2 * time.Second) // opens a connection, slowly
		return "conn-1", nil
	})
	fmt.Println(err)
	// Output:
	// closed conn-1
	// timeout "connections": exceeded 1s
}

// docs/timeouts.md says it in words.
func Example_slotsOfAbandonedWork() {
	ctx := context.Background()
	reg, clk := manual()
	held := pipeline.Must(pipeline.New[int](reg, "held").
		Timeout(time.Second).
		Bulkhead(bulkhead.MaxConcurrent(2)).
		Build())
	freed := pipeline.Must(pipeline.New[int](reg, "freed").
		Timeout(time.Second).
		Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.FreeOnTimeout()).
		Build())

	gate := make(chan struct{})
	for _, p := range []*pipeline.Pipeline[int]{held, freed} {
		entered := make(chan struct{})
		stuck := p.ExecuteAsync(ctx, func(context.Context) (int, error) {
			close(entered)
			<-gate
			return 0, nil
		})
		<-entered
		clk.Advance(time.Second)
		<-stuck.Done()
		slots, _ := reg.Bulkhead(p.ID())
		fmt.Println(p.ID(), "slots in use:", slots.Snapshot().InUse)
		defer func() { <-stuck.Work().Done() }()
	}
	close(gate)
	// Output:
	// held slots in use: 1
	// freed slots in use: 0
}

func Example_nested() {
	ctx := context.Background()
	reg, clk := manual()
	request := pipeline.Must(pipeline.New[string](reg, "request").Timeout(time.Second).Build())
	query := pipeline.Must(pipeline.New[string](reg, "query").Timeout(3 * time.Second).Build())

	_, err := request.Execute(ctx, func(ctx context.Context) (string, error) {
		return query.Execute(ctx, func(ctx context.Context) (string, error) {
			deadline, _ := ctx.Deadline()
			fmt.Println("the query may take", deadline.Sub(clk.Now()))
			return "rows", clk.Sleep(ctx, 2*time.Second)
		})
	})
	fmt.Println(err)
	for _, t := range reg.Snapshot().Timeouts {
		fmt.Println(t.Instance, "timed out:", t.TimedOut)
	}
	// Output:
	// the query may take 1s
	// timeout "request": exceeded 1s: context deadline exceeded
	// query timed out: 0
	// request timed out: 1
}

// docs/timeouts.md says it in words.
func Example_twoWaits() {
	ctx := context.Background()
	reg, clk := manual()
	patient := pipeline.Must(pipeline.New[string](reg, "patient").Timeout(3 * time.Second).Build())
	hasty := pipeline.Must(pipeline.New[string](reg, "hasty").Timeout(time.Second).Build())

	work := pipeline.NewPromise[string]()
	one := hasty.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[string] { return work.Future().View() })
	other := patient.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[string] { return work.Future().View() })
	clk.Advance(2 * time.Second)
	fmt.Println(work.Complete("report", nil))

	_, err := one.Get(ctx)
	fmt.Println(err)
	fmt.Println(other.Get(ctx))
	// Output:
	// true
	// timeout "hasty": exceeded 1s
	// report <nil>
}
