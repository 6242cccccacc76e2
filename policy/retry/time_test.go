package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

const ms = time.Millisecond

func TestMaxDurationIsOneBudget(t *testing.T) { // seed 1: 500 ms never pay for three attempts of 300 ms
	for _, tc := range []struct {
		name  string
		opts  []retry.Option
		takes time.Duration
		at    []time.Duration
		end   time.Duration
	}{
		{"three attempts of 300 ms in 500 ms", []retry.Option{retry.Constant(0), retry.MaxDuration(500 * ms)}, 300 * ms, []time.Duration{0, 300 * ms}, 600 * ms},
		{"a delay that fits by 1 ns", []retry.Option{retry.Constant(200*ms - 1), retry.MaxDuration(500 * ms)}, 300 * ms, []time.Duration{0, 500*ms - 1}, 800*ms - 1},
		{"a delay of exactly what is left", []retry.Option{retry.Constant(200 * ms), retry.MaxDuration(500 * ms)}, 300 * ms, []time.Duration{0}, 300 * ms},
		{"the reserve is kept back", []retry.Option{retry.Constant(150 * ms), retry.MaxDuration(500 * ms), retry.Reserve(50 * ms)}, 300 * ms, []time.Duration{0}, 300 * ms},
		{"the reserve leaves just enough", []retry.Option{retry.Constant(150*ms - 1), retry.MaxDuration(500 * ms), retry.Reserve(50 * ms)}, 300 * ms, []time.Duration{0, 450*ms - 1}, 750*ms - 1},
		{"unlimited obeys too (R-16)", []retry.Option{retry.Unlimited(), retry.Constant(100 * ms), retry.MaxDuration(time.Second)}, 0, []time.Duration{
			0, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 500 * ms, 600 * ms, 700 * ms, 800 * ms, 900 * ms,
		}, 900 * ms},
	} {
		clk := clock.NewManual(start)
		p := on(t, clk, tc.opts...)
		f := &script{clk: clk, ends: []error{errBoom}, takes: tc.takes}
		err := p.Do(t.Context(), f.call)
		wantIs(t, err, retry.ErrOutOfTime, context.DeadlineExceeded, errBoom)
		if diff := cmp.Diff(tc.at, f.at); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", tc.name, diff)
		}
		if got := clk.Now().Sub(start); got != tc.end {
			t.Errorf("%s: returned at %v, want %v", tc.name, got, tc.end)
		}
		if e := asError(t, err); e.Elapsed != tc.end || e.Attempts != len(tc.at) {
			t.Errorf("%s: %+v", tc.name, e)
		}
		if s := p.Snapshot(); s.OutOfTime != 1 || s.Exhausted != 0 || s.Retries != uint64(len(tc.at)-1) {
			t.Errorf("%s: %+v", tc.name, s)
		}
		if clk.Pending() != 0 {
			t.Errorf("%s: %d events pending", tc.name, clk.Pending())
		}
	}
}

func TestCallersDeadlineIsWeighedBeforeASleep(t *testing.T) {
	for _, tc := range []struct {
		name    string
		left    time.Duration
		opts    []retry.Option
		calls   int
		callers bool
	}{
		{"fits by 1 ns", time.Second + 1, []retry.Option{retry.MaxAttempts(2)}, 2, false},
		{"exactly", time.Second, nil, 1, true},
		{"less the reserve", 1100 * ms, []retry.Option{retry.Reserve(100 * ms)}, 1, true},
		{"less a smaller reserve", 1100 * ms, []retry.Option{retry.Reserve(100*ms - 1), retry.MaxAttempts(2)}, 2, false},
		{"MaxDuration is tighter", time.Second, []retry.Option{retry.MaxDuration(900 * ms)}, 1, false},
		{"MaxDuration is as tight", time.Second, []retry.Option{retry.MaxDuration(time.Second)}, 1, false},
		{"MaxDuration is wider", 900 * ms, []retry.Option{retry.MaxDuration(time.Second)}, 1, true},
		{"now", 0, []retry.Option{retry.Reserve(longest - 1)}, 1, true},
		{"less than the reserve", 5 * time.Second, []retry.Option{retry.Reserve(10 * time.Second)}, 1, true},
		{"of another clock, as ctx lives", -time.Hour, []retry.Option{retry.MaxAttempts(2)}, 2, false},
		{"and that long ago", -1 << 62, []retry.Option{retry.Reserve(longest - 1), retry.MaxAttempts(2)}, 2, false},
	} {
		clk := clock.NewManual(start)
		p := on(t, clk, append([]retry.Option{retry.Constant(time.Second)}, tc.opts...)...)
		ctx := deadlineContext{t.Context(), start.Add(tc.left)}
		r := p.Begin()
		var stop error
		calls := 1
		for ; ; calls++ {
			r.Entered = true
			var delay time.Duration
			if delay, stop = p.Next(ctx, &r, retry.Returned, errBoom, retry.ByRules); stop != nil {
				break
			}
			if stop = p.Pause(ctx, &r, delay); stop != nil {
				break
			}
		}
		err := p.Fail(ctx, &r, stop)
		want := retry.ErrOutOfTime
		if tc.calls > 1 {
			want = retry.ErrExhausted
		}
		wantIs(t, err, want, errBoom)
		if calls != tc.calls || r.CallerDeadline() != tc.callers {
			t.Errorf("%s: %d calls, caller's deadline %v; want %d, %v", tc.name, calls, r.CallerDeadline(), tc.calls, tc.callers)
		}
		if slept := clk.Now().Sub(start); slept != time.Duration(tc.calls-1)*time.Second {
			t.Errorf("%s: slept %v", tc.name, slept)
		}
	}
}

func TestCallersDeadlineThatIsLongOver(t *testing.T) {
	p := on(t, clock.System(), retry.Constant(time.Hour), retry.Reserve(longest-1))
	r := p.Begin()
	r.Entered = true
	ctx := deadlineContext{t.Context(), time.Now().Add(-1 << 62)}
	if _, stop := p.Next(ctx, &r, retry.Returned, errBoom, retry.ByRules); !errors.Is(stop, retry.ErrOutOfTime) || !r.CallerDeadline() {
		t.Errorf("stop %v, caller's deadline %v", stop, r.CallerDeadline())
	}
}

// The real deadline that guards a test against hanging says nothing of the time of
// a manual clock, which may be years ahead.
func TestRetry_R9_ADeadlineOfAnotherClockIsNotWeighed(t *testing.T) {
	clk := clock.NewManual(time.Now().AddDate(10, 0, 0))
	p := on(t, clk, retry.MaxAttempts(3), retry.Constant(time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	calls := 0
	err := p.Do(ctx, func(context.Context) error { calls++; return errBoom })
	if calls != 3 || !errors.Is(err, retry.ErrExhausted) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestField_RE06_AHintLongerThanTheTimeLeft(t *testing.T) {
	for _, tc := range []struct {
		name string
		hint time.Duration
		opts []retry.Option
		at   []time.Duration
		want error
	}{
		{"beyond MaxDuration: no sleep", 30 * time.Minute, []retry.Option{retry.MaxDuration(15 * time.Minute), retry.MaxDelay(0)}, []time.Duration{0}, retry.ErrOutOfTime},
		{"capped by MaxDelay", 24 * time.Hour, []retry.Option{retry.MaxDelay(30 * time.Second)}, []time.Duration{0, 30 * time.Second, time.Minute}, retry.ErrExhausted},
		{"shorter than the backoff", time.Second, []retry.Option{retry.Constant(2 * time.Second)}, []time.Duration{0, 2 * time.Second, 4 * time.Second}, retry.ErrExhausted},
		{"longer than the backoff", 3 * time.Second, []retry.Option{retry.Constant(2 * time.Second)}, []time.Duration{0, 3 * time.Second, 6 * time.Second}, retry.ErrExhausted},
		{"says nothing", -time.Second, []retry.Option{retry.Constant(0)}, []time.Duration{0, 0, 0}, retry.ErrExhausted},
		{"longer than a DelayFunc's answer", 3 * time.Second, []retry.Option{
			retry.DelayFunc(func(int, error) (time.Duration, bool) { return time.Second, true }),
		}, []time.Duration{0, 3 * time.Second, 6 * time.Second}, retry.ErrExhausted},
	} {
		clk := clock.NewManual(start)
		f := &script{clk: clk, ends: []error{errors.Join(errBoom, hinted(tc.hint))}}
		err := on(t, clk, tc.opts...).Do(t.Context(), f.call)
		wantIs(t, err, tc.want, errBoom)
		if diff := cmp.Diff(tc.at, f.at); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestField_RE10_MaxDurationEndsTheRunningAttempt(t *testing.T) {
	clk := clock.NewManual(start)
	p := on(t, clk, retry.Constant(0), retry.MaxDuration(500*ms), retry.MaxAttempts(10))
	attempts := 0
	var cause, ctxErr error
	var deadline time.Time
	err := p.Do(t.Context(), func(ctx context.Context) error {
		attempts++
		deadline, _ = ctx.Deadline()
		if err := clk.Sleep(ctx, 300*ms); err != nil {
			cause, ctxErr = context.Cause(ctx), ctx.Err()
			return err
		}
		return errBoom
	})
	wantIs(t, err, retry.ErrOutOfTime, context.DeadlineExceeded)
	if e := asError(t, err); e.Reason != retry.ErrOutOfTime || e.Attempts != 2 || e.Elapsed != 500*ms { //nolint:errorlint // that value
		t.Errorf("got %+v", e)
	}
	if clk.Now() != start.Add(500*ms) || attempts != 2 || !deadline.Equal(start.Add(500*ms)) {
		t.Errorf("returned at %v after %d attempts with a deadline at %v", clk.Now().Sub(start), attempts, deadline.Sub(start))
	}
	if ctxErr != context.DeadlineExceeded || cause != retry.ErrOutOfTime { //nolint:errorlint // those values
		t.Errorf("the attempt saw %v, cause %v", ctxErr, cause)
	}
	clk.Advance(5 * time.Second)
	if attempts != 2 || clk.Pending() != 0 {
		t.Errorf("five seconds later: %d attempts, %d events pending", attempts, clk.Pending())
	}
}

func TestMaxDurationDiscardsWhatComesLate(t *testing.T) { // R-8 as T-3, T-7, T-8, R-12
	for _, tc := range []struct {
		name  string
		takes time.Duration
		end   error
		late  bool
	}{
		{"success in time", 500*ms - 1, nil, false},
		{"success exactly at the deadline", 500 * ms, nil, true},
		{"late success", time.Second, nil, true},
		{"late error", time.Second, errBoom, true},
	} {
		clk := clock.NewManual(start)
		p := on(t, clk, retry.Constant(0), retry.MaxDuration(500*ms), retry.MaxAttempts(1))
		f := &script{clk: clk, ends: []error{tc.end}, takes: tc.takes}
		err := p.Do(t.Context(), f.call)
		if !tc.late {
			if err != nil {
				t.Errorf("%s: got %v", tc.name, err)
			}
			continue
		}
		wantIs(t, err, retry.ErrOutOfTime)
		if tc.end != nil {
			wantIs(t, err, tc.end)
		}
		if errors.Is(err, retry.ErrExhausted) {
			t.Errorf("%s: got %v, MaxDuration won", tc.name, err)
		}
	}
}

func TestCallersEndBeforeMaxDurationIsTheCallers(t *testing.T) { // R-3, T-10
	synctest.Test(t, func(t *testing.T) {
		p := on(t, clock.System(), retry.MaxDuration(2*time.Second), retry.Constant(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var own error
		err := p.Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			own = ctx.Err()
			return own
		})
		if err != own || err != context.DeadlineExceeded { //nolint:errorlint // unchanged
			t.Errorf("got %v, want the function's own error", err)
		}
		if s := p.Snapshot(); s.OutOfTime != 0 || s.Retries != 0 {
			t.Errorf("counted %+v", s)
		}
	})
}

func TestADriversOwnDeadlineExceededIsRetried(t *testing.T) {
	clk := clock.NewManual(start)
	f := &script{clk: clk, ends: []error{context.DeadlineExceeded, context.Canceled, nil}}
	if err := on(t, clk).Do(t.Context(), f.call); err != nil || len(f.at) != 3 {
		t.Errorf("%d calls, %v; the caller's context is alive: both are errors like others", len(f.at), err)
	}
}

func TestResumeSeesAClockThatCameLate(t *testing.T) { // no attempt that cannot fit
	clk := clock.NewManual(start)
	p := on(t, clk, retry.Constant(100*ms), retry.MaxDuration(time.Second))
	r := p.Begin()
	r.Entered = true
	if _, stop := p.Next(t.Context(), &r, retry.Returned, errBoom, retry.ByRules); stop != nil {
		t.Fatal(stop)
	}
	if stop := p.Resume(t.Context(), &r); stop != nil {
		t.Errorf("in time: %v", stop)
	}
	clk.Advance(time.Second)
	stop := p.Resume(t.Context(), &r)
	if stop != retry.ErrOutOfTime { //nolint:errorlint // that value
		t.Fatalf("at the deadline: got %v", stop)
	}
	err := p.Fail(t.Context(), &r, stop)
	wantIs(t, err, retry.ErrOutOfTime, errBoom)
	if e := asError(t, err); e.Attempts != 1 {
		t.Errorf("%d attempts, want one: the second never began", e.Attempts)
	}
}

func TestALongMaxDurationSaturates(t *testing.T) {
	clk := clock.NewManual(start)
	clk.Advance(time.Hour)
	p := on(t, clk, retry.MaxDuration(longest), retry.Constant(0))
	clk.Advance(time.Hour)
	r := p.Begin()
	if r.Deadline() < int64(longest)-1 {
		t.Errorf("deadline %d overflowed", r.Deadline())
	}
	f := &script{clk: clk, ends: []error{errBoom}}
	wantIs(t, p.Do(t.Context(), f.call), retry.ErrExhausted)
	if r := on(t, clk).Begin(); r.Deadline() != 0 || r.Attempt != 1 {
		t.Errorf("without MaxDuration: deadline %d, attempt %d", r.Deadline(), r.Attempt)
	}
}

// panicky is an error whose hint panics.
type panicky struct{}

func (panicky) Error() string             { return "busy" }
func (panicky) RetryAfter() time.Duration { panic("hint") }

func TestAHintThatPanicsIsNone(t *testing.T) {
	clk := clock.NewManual(start)
	p, _, j := heard(t, clk, retry.MaxAttempts(2), retry.Constant(3*time.Second))
	f := &script{clk: clk, ends: []error{panicky{}, nil}}
	if err := p.Do(t.Context(), f.call); err != nil {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]time.Duration{0, 3 * time.Second}, f.at); diff != "" {
		t.Errorf("began at (-want +got)\n%s", diff)
	}
	panics := 0
	for _, e := range j.Take() {
		if e, ok := e.(policy.CallbackPanic); ok && e.Value == "hint" && e.Policy() == "retry" {
			panics++
		}
	}
	if panics != 1 {
		t.Errorf("%d panics were published, want 1", panics)
	}
}
