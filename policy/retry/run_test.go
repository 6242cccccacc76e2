package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

// step is how one attempt ends, as a pipeline would tell.
type step struct {
	kind     retry.Kind
	err      error
	decision retry.Decision
}

func returned(err error) step { return step{retry.Returned, err, retry.ByRules} }
func refused(err error) step  { return step{retry.Refused, err, retry.ByRules} }

// drive runs a call whose attempts end as told, and returns the state at the
// end, and what its caller gets.
func drive(ctx context.Context, p *retry.Policy, steps ...step) (retry.Run, error) {
	r := p.Begin()
	for _, s := range steps {
		if s.kind == retry.Returned || s.kind == retry.OutOfTime {
			r.Entered = true
		}
		delay, stop := p.Next(ctx, &r, s.kind, s.err, s.decision)
		if stop == nil {
			stop = p.Pause(ctx, &r, delay)
		}
		if stop != nil {
			return r, p.Fail(ctx, &r, stop)
		}
	}
	return r, errors.New("the script is over, the call is not")
}

func TestRefusals(t *testing.T) {
	delayed, atOnce := retry.Constant(time.Second), retry.Constant(0)
	for _, tc := range []struct {
		name     string
		opts     []retry.Option
		steps    []step
		attempts int
		is       []error // what the error matches
		same     error   // the error is that value
		started  bool
	}{
		{name: "open breaker", opts: []retry.Option{delayed}, steps: []step{refused(open(0))}, attempts: 1, is: []error{errOpen}},
		{name: "open breaker, predicate", opts: []retry.Option{delayed, retry.If(func(error) bool { return true })}, steps: []step{refused(open(0))}, attempts: 1, is: []error{errOpen}},
		{name: "open breaker, decided by value", opts: []retry.Option{delayed}, steps: []step{{retry.Refused, open(0), retry.Yes}}, attempts: 1, is: []error{errOpen}},
		{name: "open breaker, asked for", opts: []retry.Option{delayed, retry.On(errOpen)}, steps: []step{refused(open(0)), refused(open(0)), refused(open(0))}, attempts: 3, is: []error{errOpen}},
		{name: "open breaker, asked for and aborted", opts: []retry.Option{delayed, retry.On(errOpen), retry.AbortOn(errOpen)}, steps: []step{refused(open(0))}, attempts: 1, is: []error{errOpen}},
		{name: "inner pipeline's open breaker", opts: []retry.Option{delayed}, steps: []step{returned(open(0)), returned(open(0)), returned(open(0))}, attempts: 3, is: []error{errOpen, retry.ErrExhausted}, started: true},
		{name: "full, delay", opts: []retry.Option{delayed}, steps: []step{refused(full()), refused(full()), refused(full())}, attempts: 3, is: []error{errFull}},
		{name: "full, no delay", opts: []retry.Option{atOnce}, steps: []step{refused(full())}, attempts: 1, is: []error{errFull}},
		{name: "full, no delay this time", opts: []retry.Option{delayed, retry.DelayFunc(func(n int, _ error) (time.Duration, bool) {
			return time.Duration(2-n) * time.Second, true
		})}, steps: []step{refused(full()), refused(full())}, attempts: 2, is: []error{errFull}},
		{name: "full, a jitter of nothing is a delay", opts: []retry.Option{delayed, retry.FullJitter(), retry.Rand(func() float64 { return 0 })}, steps: []step{refused(full()), refused(full()), refused(full())}, attempts: 3, is: []error{errFull}},
		{name: "full, no delay, asked for", opts: []retry.Option{atOnce, retry.On(errFull)}, steps: []step{refused(full()), refused(full()), refused(full())}, attempts: 3, is: []error{errFull}},
		{name: "limited", opts: []retry.Option{atOnce}, steps: []step{refused(limited(0)), refused(limited(0)), refused(limited(0))}, attempts: 3, is: []error{errLimited}},
		{name: "limited for too long", opts: []retry.Option{atOnce, retry.MaxDuration(time.Second)}, steps: []step{refused(limited(time.Second))}, attempts: 1, is: []error{errLimited}},
		{name: "entered, then open", opts: []retry.Option{delayed}, steps: []step{returned(errBoom), refused(open(0))}, attempts: 2, is: []error{errBoom, errOpen}, started: true},
		{name: "entered, then full", opts: []retry.Option{delayed, retry.AbortOn(errFull)}, steps: []step{returned(errBoom), refused(full())}, attempts: 2, is: []error{errBoom, errFull}, started: true},
		{name: "entered, exhausted by a refusal", opts: []retry.Option{delayed, retry.MaxAttempts(2)}, steps: []step{returned(errBoom), refused(full())}, attempts: 2, is: []error{errBoom, errFull, retry.ErrExhausted}, started: true},
		{name: "entered, exhausted by a refusal that is not retried", opts: []retry.Option{delayed, retry.MaxAttempts(2), retry.AbortOn(errFull)}, steps: []step{returned(errBoom), refused(full())}, attempts: 2, is: []error{errBoom, errFull, retry.ErrExhausted}, started: true},
		{name: "entered, limited for too long", opts: []retry.Option{delayed, retry.MaxDuration(time.Minute)}, steps: []step{returned(errBoom), refused(limited(time.Hour)), refused(limited(time.Hour))}, attempts: 3, is: []error{errBoom, errLimited, retry.ErrExhausted}, started: true},
		{name: "closed", opts: []retry.Option{delayed}, steps: []step{refused(scope.ErrClosed)}, attempts: 1, is: []error{scope.ErrClosed}, same: scope.ErrClosed},
		{name: "entered, then closed", opts: []retry.Option{delayed}, steps: []step{returned(errBoom), refused(scope.ErrClosed)}, attempts: 2, is: []error{errBoom, scope.ErrClosed}, started: true},
		{name: "an inner registry is closed", opts: []retry.Option{delayed}, steps: []step{returned(scope.ErrClosed)}, attempts: 1, is: []error{scope.ErrClosed}, same: scope.ErrClosed},
		{name: "an inner budget is empty", opts: []retry.Option{delayed}, steps: []step{returned(retry.ErrBudget)}, attempts: 1, is: []error{retry.ErrBudget}, same: retry.ErrBudget},
		{name: "timed out in the queue", opts: []retry.Option{delayed, retry.MaxAttempts(1)}, steps: []step{{retry.TimedOut, full(), retry.ByRules}}, attempts: 1, is: []error{errFull}},
		{name: "entered, timed out in the queue", opts: []retry.Option{delayed, retry.MaxAttempts(2)}, steps: []step{returned(errBoom), {retry.TimedOut, full(), retry.ByRules}}, attempts: 2, is: []error{errBoom, errFull, retry.ErrExhausted}, started: true},
		{name: "cut by MaxDuration", opts: []retry.Option{delayed, retry.MaxDuration(time.Second)}, steps: []step{{retry.OutOfTime, nil, retry.ByRules}}, attempts: 1, is: []error{retry.ErrOutOfTime}, started: true},
	} {
		p := on(t, clock.NewManual(start), tc.opts...)
		r, err := drive(t.Context(), p, tc.steps...)
		if r.Attempt != tc.attempts {
			t.Errorf("%s: %d attempts, want %d", tc.name, r.Attempt, tc.attempts)
		}
		for _, target := range tc.is {
			if !errors.Is(err, target) {
				t.Errorf("%s: %q does not match %q", tc.name, err, target)
			}
		}
		if tc.same != nil && err != tc.same { //nolint:errorlint // unchanged
			t.Errorf("%s: got %#v, want it unchanged", tc.name, err)
		}
		last := tc.steps[len(tc.steps)-1].err
		if !tc.started && err != last { //nolint:errorlint // unchanged
			if tc.same == nil {
				t.Errorf("%s: got %#v, want the last refusal unchanged", tc.name, err)
			}
		}
		if tc.started {
			if e := asError(t, err); !e.Started() || e.Attempts != tc.attempts {
				t.Errorf("%s: %+v", tc.name, e)
			}
		}
	}
}

func TestOutOfTimeBeforeTheFunctionWasEntered(t *testing.T) {
	p := on(t, clock.NewManual(start), retry.MaxDuration(time.Second))
	r := p.Begin()
	_, stop := p.Next(t.Context(), &r, retry.OutOfTime, nil, retry.ByRules)
	err := p.Fail(t.Context(), &r, stop)
	wantIs(t, err, retry.ErrOutOfTime, context.DeadlineExceeded)
	if e := asError(t, err); e.Started() || !policy.NotStarted(err) || e.Last != nil {
		t.Errorf("got %+v, want not started and no last error", e)
	}
	r = p.Begin()
	if _, stop := p.Next(t.Context(), &r, retry.Refused, limited(0), retry.ByRules); stop != nil {
		t.Fatal(stop)
	}
	_, stop = p.Next(t.Context(), &r, retry.OutOfTime, nil, retry.ByRules)
	if err := p.Fail(t.Context(), &r, stop); !errors.Is(err, errLimited) || !policy.NotStarted(err) {
		t.Errorf("got %v, want the last refusal", err)
	}
}

func TestInterruptedBeforeTheFunctionWasEntered(t *testing.T) {
	for name, reason := range map[string]error{"the caller": context.Canceled, "a close": scope.ErrClosed} {
		p := on(t, clock.NewManual(start))
		r := p.Begin()
		if err := p.Fail(t.Context(), &r, reason); err != reason { //nolint:errorlint // nothing to add
			t.Errorf("%s, in the first wait: got %v", name, err)
		}
		r = p.Begin()
		if _, stop := p.Next(t.Context(), &r, retry.Refused, limited(0), retry.ByRules); stop != nil {
			t.Fatal(stop)
		}
		err := p.Fail(t.Context(), &r, reason)
		wantIs(t, err, reason, errLimited)
		if !policy.NotStarted(err) {
			t.Errorf("%s, in the delay: %v: the function was not entered", name, err)
		}
	}
}

func TestAWaitThatTheCallerEndedRefusedNothing(t *testing.T) {
	p := on(t, clock.NewManual(start))
	ctx, cancel := context.WithCancel(t.Context())
	r := p.Begin()
	r.Entered = true
	if _, stop := p.Next(ctx, &r, retry.Returned, errBoom, retry.ByRules); stop != nil {
		t.Fatal(stop)
	}
	cancel()
	_, stop := p.Next(ctx, &r, retry.Refused, ctx.Err(), retry.ByRules)
	err := p.Fail(ctx, &r, stop)
	wantIs(t, err, context.Canceled, errBoom)
	if e := asError(t, err); e.Reason != context.Canceled || e.Last != errBoom || e.Attempts != 1 { //nolint:errorlint // those values
		t.Errorf("got %+v", e)
	}
}

func TestConform_19_ValuesThatRunOut(t *testing.T) {
	value := step{retry.Returned, nil, retry.Yes}
	for _, tc := range []struct {
		name     string
		opts     []retry.Option
		steps    []step
		attempts int
		is       error // nil: the last value is the result
	}{
		{"attempts", []retry.Option{retry.MaxAttempts(2)}, []step{value, value}, 2, nil},
		{"time", []retry.Option{retry.MaxDuration(100 * time.Millisecond)}, []step{value}, 1, nil},
		{"budget", []retry.Option{retry.Budget(0, 0)}, []step{value}, 1, nil},
		{"after an error", nil, []step{returned(errBoom), value, value}, 3, nil},
		{"superseded, then refused", []retry.Option{retry.MaxAttempts(2)}, []step{value, refused(full())}, 2, retry.ErrExhausted},
		{"cut by MaxDuration", []retry.Option{retry.MaxDuration(time.Second)}, []step{value, {retry.OutOfTime, nil, retry.Yes}}, 2, retry.ErrOutOfTime},
		{"error that the value rule retries", []retry.Option{retry.MaxAttempts(2), retry.AbortOn(errBoom)}, []step{{retry.Returned, errBoom, retry.Yes}, {retry.Returned, errBoom, retry.Yes}}, 2, retry.ErrExhausted},
		{"error that the value rule does not retry", nil, []step{{retry.Returned, errBoom, retry.No}}, 1, errBoom},
		{"permanent all the same", nil, []step{{retry.Returned, retry.Permanent(errBoom), retry.Yes}}, 1, errBoom},
	} {
		p, _, j := heard(t, clock.NewManual(start), tc.opts...)
		r, err := drive(t.Context(), p, tc.steps...)
		if !errors.Is(err, tc.is) || r.Attempt != tc.attempts {
			t.Errorf("%s: %d attempts, %v; want %d, %v", tc.name, r.Attempt, err, tc.attempts, tc.is)
		}
		if tc.is == nil {
			events := j.Take()
			if g, ok := events[len(events)-1].(retry.GaveUp); !ok || g.Err != nil || g.Attempts != tc.attempts {
				t.Errorf("%s: last event %#v, want GaveUp without an error", tc.name, events[len(events)-1])
			}
			if s := p.Snapshot(); s.Exhausted+s.OutOfTime+s.BudgetDenied != 1 {
				t.Errorf("%s: counted %+v", tc.name, s)
			}
		}
	}
	p := on(t, clock.NewManual(start))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := drive(ctx, p, value)
	wantIs(t, err, context.Canceled) // conformance 16: a value that was to be retried is no success
}

func TestClosedWhileTheLastAttemptRan(t *testing.T) {
	for _, s := range []step{returned(errBoom), {retry.Returned, nil, retry.Yes}} {
		p, sc, _ := heard(t, clock.NewManual(start))
		sc.Close()
		r, err := drive(t.Context(), p, s)
		wantIs(t, err, scope.ErrClosed)
		if s.err != nil {
			wantIs(t, err, errBoom)
		}
		if r.Attempt != 1 || p.Snapshot().Retries != 0 {
			t.Errorf("%d attempts, %d retries after the close", r.Attempt, p.Snapshot().Retries)
		}
	}
}

func TestKindIsThatOfTheLatestAttempt(t *testing.T) {
	p := on(t, clock.NewManual(start), retry.MaxAttempts(2))
	r, _ := drive(t.Context(), p, returned(errBoom), step{retry.TimedOut, full(), retry.ByRules})
	if r.Kind() != retry.TimedOut {
		t.Errorf("got %v, want TimedOut", r.Kind())
	}
}
