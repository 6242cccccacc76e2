package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

type sayFunc func(format string, args ...any)

// service has a pipeline for each way in which it uses its dependency.
type service struct {
	url    string
	client *http.Client
	reg    *registry.Registry

	reports *pipeline.Pipeline[string] // a timeout alone
	flaky   *pipeline.Pipeline[string] // a retry as well
	limited *pipeline.Pipeline[string] // a rate
	burst   *pipeline.Pipeline[string] // few at once
	whole   *pipeline.Pipeline[string] // one budget for everything
	guarded *pipeline.Pipeline[string] // a breaker, and a fallback around it
}

func newService(url string, transport *http.Transport) (*service, error) {
	reg, err := registry.New()
	if err != nil {
		return nil, err
	}
	s := &service{url: url, client: &http.Client{Transport: transport}, reg: reg}
	var errs []error
	build := func(b *pipeline.Builder[string]) *pipeline.Pipeline[string] {
		p, err := b.Build()
		errs = append(errs, err)
		return p
	}
	s.reports = build(pipeline.New[string](reg, "reports").
		Timeout(300 * time.Millisecond))
	s.flaky = build(pipeline.New[string](reg, "flaky").
		Retry(retry.MaxAttempts(3), retry.Exponential(20*time.Millisecond, 2)).
		Timeout(300 * time.Millisecond))
	s.limited = build(pipeline.New[string](reg, "limited").
		RateLimit(ratelimit.Per(3, time.Second)))
	s.burst = build(pipeline.New[string](reg, "burst").
		Timeout(time.Second).
		Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.Queue(4)))
	s.whole = build(pipeline.New[string](reg, "whole").
		Retry(retry.MaxAttempts(3), retry.Constant(50*time.Millisecond), retry.MaxDuration(500*time.Millisecond)).
		Timeout(300 * time.Millisecond))
	s.guarded = build(pipeline.New[string](reg, "guarded").
		Fallback(func(context.Context, error) (string, error) { return "yesterday's report", nil }).
		CircuitBreaker(circuitbreaker.CountWindow(10), circuitbreaker.MinCalls(4), circuitbreaker.OpenFor(time.Minute)))
	return s, errors.Join(errs...)
}

// get is an ordinary HTTP call: it uses the context that it is given.
func (s *service) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	return string(body), err
}

func (s *service) getter(path string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return s.get(ctx, path) }
}

// timed calls f and says what came of it.
func timed(say sayFunc, name string, f func() (string, error)) {
	start := time.Now()
	v, err := f()
	took := time.Since(start).Round(10 * time.Millisecond)
	switch {
	case err == nil:
		say("   %-28s %q after %v", name, v, took)
	default:
		say("   %-28s error after %v: %v", name, took, err)
	}
}

func (s *service) timeouts(ctx context.Context, say sayFunc) {
	say("1. Execute: a timeout of 300 ms on the caller's own goroutine")
	timed(say, "fast endpoint", func() (string, error) { return s.reports.Execute(ctx, s.getter("/fast")) })
	timed(say, "slow endpoint", func() (string, error) { return s.reports.Execute(ctx, s.getter("/slow")) })
	_, err := s.reports.Execute(ctx, s.getter("/slow"))
	say("   it is a timeout: %v; a context.DeadlineExceeded: %v; the function had started: %v",
		errors.Is(err, timeout.ErrExceeded), errors.Is(err, context.DeadlineExceeded), policy.Started(err))
}

func (s *service) futures(ctx context.Context, say sayFunc) {
	say("2. ExecuteAsync: the future fails at the deadline even if the work ignores its context")
	f := s.reports.ExecuteAsync(ctx, func(context.Context) (string, error) {
		return s.get(context.WithoutCancel(ctx), "/stuck")
	})
	timed(say, "stuck endpoint", func() (string, error) { return f.Get(ctx) })
	_, done, _ := f.Work().Poll()
	say("   the work is done: %v; asked to stop: %v; abandoned now: %d", done, f.Work().CancelRequested(), s.abandoned())
}

func (s *service) stages(ctx context.Context, say sayFunc) {
	say("3. ExecuteFuture: a stage that somebody else completes, without a goroutine per call")
	acks := make(chan *pipeline.Promise[string], 2)
	told := make(chan struct{}, 2)
	send := func(context.Context) *pipeline.Future[string] {
		p := pipeline.NewPromise[string]()
		p.OnCancel(func() { told <- struct{}{} })
		acks <- p
		return p.Future()
	}
	first, second := s.reports.ExecuteFuture(ctx, send), s.reports.ExecuteFuture(ctx, send)
	(<-acks).Complete("acknowledged", nil)
	timed(say, "acknowledged stage", func() (string, error) { return first.Get(ctx) })
	timed(say, "stage nobody completes", func() (string, error) { return second.Get(ctx) })
	<-told // the producer hears that nobody waits any more, and goes on all the same
	late := (<-acks).Complete("too late", nil)
	v, _, _ := second.Work().Poll()
	say("   a late Complete returns %v, and Work still tells: %q", late, v)
}

func (s *service) retries(ctx context.Context, say sayFunc) {
	say("4. Retry: three attempts, 20 ms and 40 ms apart")
	attempts := 0
	timed(say, "flaky endpoint", func() (string, error) {
		return s.flaky.Execute(ctx, func(ctx context.Context) (string, error) {
			attempts = retry.Attempt(ctx)
			return s.get(ctx, "/flaky")
		})
	})
	say("   attempts made: %d", attempts)
}

func (s *service) limits(ctx context.Context, say sayFunc) {
	say("5. Rate limiter and bulkhead")
	var served, limited int
	var wait time.Duration
	for range 5 {
		var refusal *ratelimit.Error
		switch _, err := s.limited.Execute(ctx, s.getter("/fast")); {
		case err == nil:
			served++
		case errors.As(err, &refusal):
			limited++
			wait = refusal.RetryAfter()
		}
	}
	say("   3 per second, 5 calls:       %d served, %d refused before they started; the next permit in %v", served, limited, wait.Round(100*time.Millisecond))
	var ok, full atomic.Int32
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			switch _, err := s.burst.Execute(ctx, s.getter("/busy")); {
			case err == nil:
				ok.Add(1)
			case errors.Is(err, bulkhead.ErrFull):
				full.Add(1)
			}
		})
	}
	wg.Wait()
	say("   2 at once, 4 may wait, burst of 10: %d served, %d refused", ok.Load(), full.Load())
}

func (s *service) budget(ctx context.Context, say sayFunc) {
	say("6. One budget: MaxDuration 500 ms never pays for three attempts of 300 ms")
	attempts := 0
	timed(say, "slow endpoint", func() (string, error) {
		return s.whole.Execute(ctx, func(ctx context.Context) (string, error) {
			attempts++
			return s.get(ctx, "/slow")
		})
	})
	bound, _ := s.whole.Bound()
	say("   attempts made: %d; the longest that %v can take: %v", attempts, s.whole, bound)
}

func (s *service) breaker(ctx context.Context, say sayFunc) {
	say("7. Circuit breaker and fallback: the endpoint is down")
	reached := 0
	var last string
	for range 8 {
		last, _ = s.guarded.Execute(ctx, func(ctx context.Context) (string, error) {
			reached++
			return s.get(ctx, "/down")
		})
	}
	b, _ := s.reg.CircuitBreaker("guarded")
	say("   8 calls, %d reached the endpoint; the breaker is %s; every caller got %q", reached, b.State(), last)
}

func (s *service) abandoned() (n int64) {
	for _, p := range s.reg.Snapshot().Pipelines {
		n += p.Abandoned.Running
	}
	return n
}

// snapshot waits until nothing is in flight or abandoned, and prints the
// registry's snapshot, as a health endpoint would show it.
func (s *service) snapshot(ctx context.Context, out io.Writer, say sayFunc) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // not so long, unless something is wrong
	defer cancel()
	if err := s.reg.Drain(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	s.client.CloseIdleConnections()
	say("8. What became of it all: the snapshot")
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(s.reg.Snapshot())
}
