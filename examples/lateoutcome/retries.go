package main

import (
	"context"
	"errors"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

var (
	errTransient = errors.New("transient")
	errPermanent = errors.New("permanent")
)

// retries fills the table. Only transient failures are retried. That a failure
// may be retried says nothing on whether the operation may be repeated: see
// retry.IdempotencyKey for that.
func retries(ctx context.Context, r *report) error {
	const limit = 3
	reg, err := registry.New()
	if err != nil {
		return err
	}
	p, err := pipeline.New[string](reg, "retries").
		Retry(retry.MaxAttempts(limit), retry.Constant(time.Millisecond), retry.On(errTransient)).
		Build()
	if err != nil {
		return err
	}
	for _, row := range []struct {
		input string
		fails []error // one for each attempt; nil: it succeeds
	}{
		{"two transient failures, then success", []error{errTransient, errTransient, nil}},
		{"transient failures without end", []error{errTransient, errTransient, errTransient, errTransient}},
		{"a permanent failure at once", []error{errPermanent, nil}},
	} {
		attempts := 0
		_, err := p.Execute(ctx, func(context.Context) (string, error) { // called anew for each attempt
			err := row.fails[attempts]
			attempts++
			return "ok", err
		})
		end := "ok"
		if err != nil {
			end = "failed"
		}
		r.Retry = append(r.Retry, retryRow{row.input, limit, attempts, end})
	}
	return nil
}
