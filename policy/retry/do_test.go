package retry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

func TestMaxAttemptsCountsTheFirstCall(t *testing.T) { // conformance 1, 2
	for _, tc := range []struct {
		attempts, failures, calls int
	}{
		{3, 0, 1}, {3, 1, 2}, {3, 2, 3}, {3, 3, 3}, {3, 99, 3}, {1, 0, 1}, {1, 99, 1}, {6, 99, 6}, {4, 3, 4},
	} {
		clk := clock.NewManual(start)
		f := &script{clk: clk}
		for range min(tc.failures, tc.attempts) {
			f.ends = append(f.ends, errBoom)
		}
		f.ends = append(f.ends, nil)
		err := on(t, clk, retry.MaxAttempts(tc.attempts)).Do(t.Context(), f.call)
		if len(f.at) != tc.calls {
			t.Errorf("%+v: %d calls", tc, len(f.at))
		}
		if (err != nil) != (tc.failures >= tc.attempts) {
			t.Errorf("%+v: got %v", tc, err)
		}
		if err != nil {
			wantIs(t, err, retry.ErrExhausted, errBoom)
			e := asError(t, err)
			if e.Attempts != tc.attempts || e.Last != errBoom || e.Instance != "reports" || !e.Started() { //nolint:errorlint // unchanged
				t.Errorf("%+v: got %+v", tc, e)
			}
		}
	}
}

func TestConform_03_AbortAfterRetries(t *testing.T) {
	errAbort := errors.New("abort")
	for _, tc := range []struct {
		failures, calls int
		want            error
	}{{2, 3, errAbort}, {3, 4, errAbort}, {4, 4, errBoom}} {
		clk := clock.NewManual(start)
		f := &script{clk: clk}
		for range tc.failures {
			f.ends = append(f.ends, errBoom)
		}
		f.ends = append(f.ends, errAbort)
		err := on(t, clk, retry.MaxAttempts(4), retry.AbortOn(errAbort)).Do(t.Context(), f.call)
		if len(f.at) != tc.calls || !errors.Is(err, tc.want) {
			t.Errorf("after %d failures: %d calls, %v; want %d, %v", tc.failures, len(f.at), err, tc.calls, tc.want)
		}
		if tc.want == errAbort && err != errAbort { //nolint:errorlint // R-13: unchanged
			t.Errorf("after %d failures: got %#v, want the abort error unchanged", tc.failures, err)
		}
	}
}

func TestField_RE04_SleepsLieBetweenAttempts(t *testing.T) { // R-5, conformance 18
	second := time.Second
	for _, tc := range []struct {
		name string
		opts []retry.Option
		at   []time.Duration // when the calls begin
	}{
		{"constant", []retry.Option{retry.Constant(second)}, []time.Duration{0, second, 2 * second}},
		{"exponential", []retry.Option{retry.Exponential(second, 2)}, []time.Duration{0, second, 3 * second}},
		{"500 ms × 2", []retry.Option{retry.Exponential(second/2, 2)}, []time.Duration{0, second / 2, 3 * second / 2}},
		{"linear", []retry.Option{retry.Linear(second)}, []time.Duration{0, second, 3 * second}},
		{"one attempt", []retry.Option{retry.Constant(second), retry.MaxAttempts(1)}, []time.Duration{0}},
		{"by the outcome", []retry.Option{retry.DelayFunc(func(n int, _ error) (time.Duration, bool) {
			return 100 * time.Millisecond * time.Duration(n), true
		})}, []time.Duration{0, second / 10, 3 * second / 10}},
		{"linear, capped", []retry.Option{retry.Linear(2 * second), retry.MaxDelay(123 * time.Millisecond), retry.MaxAttempts(4)}, []time.Duration{
			0, 123 * time.Millisecond, 246 * time.Millisecond, 369 * time.Millisecond,
		}},
	} {
		clk := clock.NewManual(start)
		p, _, j := heard(t, clk, tc.opts...)
		f := &script{clk: clk, ends: []error{errBoom}}
		wantIs(t, p.Do(t.Context(), f.call), retry.ErrExhausted, errBoom)
		if diff := cmp.Diff(tc.at, f.at); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", tc.name, diff)
		}
		if end := clk.Now().Sub(start); end != tc.at[len(tc.at)-1] {
			t.Errorf("%s: returned at %v, the last call began at %v", tc.name, end, tc.at[len(tc.at)-1])
		}
		retries := 0
		for _, e := range j.Take() {
			if r, ok := e.(retry.Retrying); ok {
				retries++
				if r.Attempt != retries || r.Delay != tc.at[retries]-tc.at[retries-1] || !errors.Is(r.Err, errBoom) {
					t.Errorf("%s: event %+v", tc.name, r)
				}
			}
		}
		if retries != len(tc.at)-1 {
			t.Errorf("%s: %d retry events, want %d", tc.name, retries, len(tc.at)-1)
		}
		if clk.Pending() != 0 {
			t.Errorf("%s: %d events pending", tc.name, clk.Pending())
		}
	}
}

func TestConform_08_EveryGapIsJittered(t *testing.T) { // and 10
	ms := time.Millisecond
	clk := clock.NewManual(start)
	p := on(t, clk, retry.Constant(400*ms), retry.Jitter(1), retry.MaxDuration(3200*ms), retry.MaxAttempts(11))
	f := &script{clk: clk, ends: []error{errBoom}}
	if err := p.Do(t.Context(), f.call); err == nil {
		t.Fatal("got nil")
	}
	for i := 1; i < len(f.at); i++ {
		if gap := f.at[i] - f.at[i-1]; gap < 0 || gap > 800*ms {
			t.Errorf("gap %v is outside [0, 800ms]", gap)
		}
	}
	if len(f.at) <= 4 {
		t.Errorf("%d calls, want more than 4", len(f.at))
	}
	f = &script{clk: clk, ends: []error{errBoom}}
	before := clk.Now()
	wantIs(t, on(t, clk, retry.Constant(0), retry.MaxAttempts(4)).Do(t.Context(), f.call), retry.ErrExhausted)
	if clk.Now() != before || len(f.at) != 4 {
		t.Errorf("without delay and jitter: %d calls in %v, want 4 in 0s", len(f.at), clk.Now().Sub(before))
	}
}

func TestConform_15_DelayFunc(t *testing.T) {
	clk := clock.NewManual(start)
	var asked []int
	noAnswer := func(n int, err error) (time.Duration, bool) {
		asked = append(asked, n)
		wantIs(t, err, errBoom)
		return time.Hour, false
	}
	f := &script{clk: clk, ends: []error{errBoom}}
	wantIs(t, on(t, clk, retry.Constant(2*time.Millisecond), retry.DelayFunc(noAnswer)).Do(t.Context(), f.call), retry.ErrExhausted)
	if diff := cmp.Diff([]time.Duration{0, 2 * time.Millisecond, 4 * time.Millisecond}, f.at); diff != "" {
		t.Errorf("no answer: the configured delay (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 2}, asked); diff != "" {
		t.Errorf("asked once per delay (-want +got)\n%s", diff)
	}
	for name, answer := range map[string]time.Duration{"zero": 0, "negative": -time.Second} {
		clk := clock.NewManual(start).Passive() // any sleep would hang here
		f := &script{clk: clk, ends: []error{errBoom}}
		p := on(t, clk, retry.MaxAttempts(4), retry.DelayFunc(func(int, error) (time.Duration, bool) { return answer, true }))
		wantIs(t, p.Do(t.Context(), f.call), retry.ErrExhausted)
		if len(f.at) != 4 {
			t.Errorf("%s: %d calls, want 4", name, len(f.at))
		}
	}
}

func TestConform_16_Cancel(t *testing.T) { // O-5, R-11, R-12
	clk := clock.NewManual(start)
	p, s, _ := heard(t, clk, retry.Constant(time.Second), retry.Budget(0, 0))

	done, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if err := p.Do(done, func(context.Context) error { t.Error("called"); return nil }); err != context.Canceled { //nolint:errorlint // its own
			t.Fatalf("before the start: got %v", err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	f := &script{clk: clk, ends: []error{nil}}
	if err := p.Do(ctx, func(ctx context.Context) error { cancel(); return f.call(ctx) }); err != nil {
		t.Errorf("cancelled in an attempt that succeeds: got %v, want success", err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	calls := 0
	err := p.Do(ctx, func(context.Context) error { calls++; cancel(); return errBoom })
	wantIs(t, err, context.Canceled, errBoom)
	if e := asError(t, err); calls != 1 || e.Attempts != 1 {
		t.Errorf("cancelled in an attempt that fails: %d calls, %+v", calls, e)
	}

	ctx, cancel = context.WithCancel(t.Context())
	var own error
	err = p.Do(ctx, func(ctx context.Context) error { cancel(); own = fmt.Errorf("query: %w", ctx.Err()); return own })
	if err != own { //nolint:errorlint // R-13, T-10: unchanged
		t.Errorf("a function that honors its context: got %v, want its own error unchanged", err)
	}

	reason := errors.New("shutting down")
	because, end := context.WithCancelCause(t.Context())
	end(reason)
	wantIs(t, p.Do(because, f.call), context.Canceled, reason)

	s.Close()
	if err := p.Do(t.Context(), func(context.Context) error { t.Error("called"); return nil }); !errors.Is(err, scope.ErrClosed) {
		t.Errorf("closed: got %v", err)
	}
}

func TestCancelDuringTheDelay(t *testing.T) { // conformance 16
	synctest.Test(t, func(t *testing.T) {
		p, s, j := heard(t, clock.System(), retry.Constant(time.Hour), retry.MaxDelay(0))
		for name, end := range map[string]func() (context.Context, error){
			"cancelled": func() (context.Context, error) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, context.Canceled
			},
			"with a cause": func() (context.Context, error) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errOther) })
				return ctx, errOther
			},
			"closed": func() (context.Context, error) {
				time.AfterFunc(time.Second, func() { s.Close() })
				return t.Context(), scope.ErrClosed
			},
		} {
			if s.Closed() {
				p, s, j = heard(t, clock.System(), retry.Constant(time.Hour), retry.MaxDelay(0))
			}
			j.Take()
			began, calls := time.Now(), 0
			ctx, want := end()
			err := p.Do(ctx, func(context.Context) error { calls++; return errBoom })
			wantIs(t, err, want, errBoom)
			e := asError(t, err)
			if took := time.Since(began); took != time.Second || calls != 1 || e.Attempts != 1 || e.Elapsed != time.Second {
				t.Errorf("%s: %d calls in %v, %+v", name, calls, took, e)
			}
			events := j.Take()
			if g, ok := events[len(events)-1].(retry.GaveUp); !ok || !errors.Is(g.Reason, want) || !errors.Is(g.Err, errBoom) {
				t.Errorf("%s: last event %#v", name, events[len(events)-1])
			}
		}
	})
}

func TestConform_06_MaxDurationWithoutDelay(t *testing.T) {
	clk := clock.NewManual(start)
	p := on(t, clk, retry.Unlimited(), retry.Constant(0), retry.MaxDuration(time.Second))
	f := &script{clk: clk, ends: []error{errBoom}, takes: 100 * time.Millisecond}
	err := p.Do(t.Context(), f.call)
	wantIs(t, err, retry.ErrOutOfTime, context.DeadlineExceeded, errBoom)
	if e := asError(t, err); len(f.at) != 10 || e.Elapsed != time.Second {
		t.Errorf("%d calls, elapsed %v, want 10 and 1s", len(f.at), e.Elapsed)
	}
}

func TestPanicsAndGoexitPassThrough(t *testing.T) {
	p := on(t, clock.NewManual(start))
	var seen context.Context
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v, want the panic's own value", v)
			}
		}()
		_ = p.Do(t.Context(), func(ctx context.Context) error { seen = ctx; panic("boom") })
	}()
	if seen.Err() == nil {
		t.Error("the attempt's context is alive after a panic")
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = p.Do(context.Background(), func(ctx context.Context) error { seen = ctx; runtime.Goexit(); return nil })
		t.Error("Do returned after Goexit")
	}()
	<-exited
	if seen.Err() == nil {
		t.Error("the attempt's context is alive after Goexit")
	}
	if s := p.Snapshot(); s.Retries != 0 {
		t.Errorf("%d retries, want none", s.Retries)
	}
}

func TestNilArgumentsPanicWithTheirName(t *testing.T) {
	p := on(t, clock.NewManual(start))
	for want, f := range map[string]func(){
		"retry: Do: ctx is nil":                               func() { _ = p.Do(nil, func(context.Context) error { return nil }) }, //nolint:staticcheck // that is the test
		"retry: Do: fn is nil":                                func() { _ = p.Do(t.Context(), nil) },
		"retry: Do on a nil or zero Policy: make it with New": func() { _ = new(retry.Policy).Do(t.Context(), nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("panicked with %v, want %q", v, want)
				}
			}()
			f()
		}()
	}
}

func TestNestedRetriesDecideAnew(t *testing.T) {
	clk := clock.NewManual(start)
	inner, outer := on(t, clk, retry.MaxAttempts(2)), on(t, clk, retry.MaxAttempts(3))
	calls := 0
	err := outer.Do(t.Context(), func(ctx context.Context) error {
		return inner.Do(ctx, func(context.Context) error { calls++; return errBoom })
	})
	wantIs(t, err, retry.ErrExhausted, errBoom)
	if calls != 6 {
		t.Errorf("%d calls, want 2 × 3", calls)
	}
	if !policy.Started(err) || policy.NotStarted(err) {
		t.Error("the function was entered")
	}
}
