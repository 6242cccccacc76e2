package retry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

func TestErrorText(t *testing.T) {
	for _, tc := range []struct {
		e    retry.Error
		want string
	}{
		{retry.Error{Instance: "reports", Attempts: 3, Elapsed: 2 * time.Second, Reason: retry.ErrExhausted, Last: errBoom}, `retry "reports": attempts exhausted after 3 attempts in 2s: boom`},
		{retry.Error{Instance: "reports", Attempts: 1, Reason: retry.ErrOutOfTime}, `retry "reports": out of time after 1 attempt`},
		{retry.Error{Instance: "a\"b", Attempts: 2, Reason: context.Canceled, Last: errBoom}, `retry "a\"b": context canceled after 2 attempts: boom`},
		{retry.Error{}, `retry "": gave up after 0 attempts`},
	} {
		if got := tc.e.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
	p := on(t, clock.NewManual(start), retry.MaxAttempts(2))
	_, err := drive(t.Context(), p, returned(errBoom), refused(full()))
	if got, want := err.Error(), `retry "reports": attempts exhausted (full) after 2 attempts: boom`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// without MaxDuration nobody has seen the first attempt start, so the text
// has no time that a reader would take for the whole call's.
func TestErrorText_R13_HasTheElapsedTimeOnlyIfItIsTheWholeCalls(t *testing.T) {
	for _, tc := range []struct {
		opts    []retry.Option
		elapsed time.Duration
		want    string
	}{
		{nil, time.Minute + time.Second, `retry "reports": attempts exhausted after 2 attempts: boom`},
		{[]retry.Option{retry.MaxDuration(time.Hour)}, 2*time.Minute + time.Second, `retry "reports": attempts exhausted after 2 attempts in 2m1s: boom`},
	} {
		clk := clock.NewManual(start)
		f := &script{clk: clk, ends: []error{errBoom}, takes: time.Minute}
		err := on(t, clk, append(tc.opts, retry.MaxAttempts(2), retry.Constant(time.Second))...).Do(t.Context(), f.call)
		if e := asError(t, err); e.Elapsed != tc.elapsed || e.Error() != tc.want {
			t.Errorf("elapsed %v, want %v\ngot  %s\nwant %s", e.Elapsed, tc.elapsed, e, tc.want)
		}
	}
}

func TestErrorMatchesReasonAndLast(t *testing.T) {
	var err error = &retry.Error{Instance: "reports", Attempts: 3, Reason: retry.ErrExhausted, Last: &notFound{"x"}}
	var last *notFound
	if !errors.Is(err, retry.ErrExhausted) || !errors.As(err, &last) || errors.Is(err, retry.ErrBudget) || errors.Is(err, context.DeadlineExceeded) {
		t.Error("wrong matches")
	}
	var e policy.Error
	if !errors.As(err, &e) || e.Policy() != "retry" || e.ID() != "reports" || !e.Started() {
		t.Error("wrong policy error: an Error that says nothing else has started")
	}
	if errs := (&retry.Error{}).Unwrap(); len(errs) != 0 {
		t.Errorf("an empty error unwraps to %v", errs)
	}
}

func TestErrOutOfTimeIsDeadlineExceeded(t *testing.T) {
	var timeout interface{ Timeout() bool }
	if !errors.Is(retry.ErrOutOfTime, context.DeadlineExceeded) || !errors.As(retry.ErrOutOfTime, &timeout) || !timeout.Timeout() {
		t.Error("ErrOutOfTime must match context.DeadlineExceeded")
	}
	if errors.Is(retry.ErrOutOfTime, context.Canceled) || errors.Is(context.DeadlineExceeded, retry.ErrOutOfTime) {
		t.Error("and nothing else")
	}
}

func TestElapsedCountsFromTheFirstEndOrWithMaxDurationFromTheStart(t *testing.T) {
	for _, tc := range []struct {
		opts []retry.Option
		want time.Duration
	}{
		{nil, 2*time.Second + 2*time.Minute},
		{[]retry.Option{retry.MaxDuration(time.Hour)}, 2*time.Second + 3*time.Minute},
		{[]retry.Option{retry.MaxAttempts(1)}, 0},
		{[]retry.Option{retry.MaxAttempts(1), retry.MaxDuration(time.Hour)}, time.Minute},
	} {
		clk := clock.NewManual(start)
		f := &script{clk: clk, ends: []error{errBoom}, takes: time.Minute}
		err := on(t, clk, append([]retry.Option{retry.Constant(time.Second)}, tc.opts...)...).Do(t.Context(), f.call)
		if e := asError(t, err); e.Elapsed != tc.want {
			t.Errorf("%v: elapsed %v, want %v", tc.opts, e.Elapsed, tc.want)
		}
	}
}

func TestEventsOfACall(t *testing.T) {
	clk := clock.NewManual(start)
	p, _, j := heard(t, clk, retry.Constant(time.Second), retry.MaxAttempts(2))
	f := &script{clk: clk, ends: []error{errBoom}}
	err := p.Do(t.Context(), f.call)
	events := j.Take()
	if len(events) != 2 {
		t.Fatalf("%d events, want 2: %v", len(events), events)
	}
	if r, ok := events[0].(retry.Retrying); !ok || r.Attempt != 1 || r.Delay != time.Second || r.Err != errBoom || !r.At().Equal(start) || r.Policy() != "retry" || r.ID() != "reports" { //nolint:errorlint // identity
		t.Errorf("got %#v", events[0])
	}
	if g, ok := events[1].(retry.GaveUp); !ok || g.Attempts != 2 || g.Reason != retry.ErrExhausted || g.Err != errBoom || !g.At().Equal(start.Add(time.Second)) { //nolint:errorlint // identity
		t.Errorf("got %#v", events[1])
	}

	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "e", events[0], "g", events[1], "err", err, "s", p.Snapshot())
	for _, want := range []string{
		"e.id=reports e.attempt=1 e.delay=1s e.err=boom", "g.attempts=2", "err.policy=retry", "err.elapsed=1s", "err.started=true",
		`err.reason="retry: attempts exhausted"`, "err.last=boom", "s.retries=1", "s.exhausted=1", "s.maxAttempts=2",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}

	p, _, j = heard(t, clk)
	_ = p.Do(t.Context(), func(context.Context) error { return nil })
	_ = p.Do(t.Context(), func(context.Context) error { return retry.Permanent(errBoom) })
	if events := j.Take(); len(events) != 0 {
		t.Errorf("a success and an error that is not retried give no event: %v", events)
	}
}
