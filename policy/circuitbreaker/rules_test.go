package circuitbreaker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

// C-1.
func TestConform_62_OpensAfterFourFailuresOfVolumeFour(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.FailureRatio(.75), circuitbreaker.MinCalls(4),
		circuitbreaker.CountWindow(4), circuitbreaker.OpenFor(time.Hour))
	var got []error
	executed := 0
	for range 7 {
		permit, err := p.Allow()
		if err == nil {
			executed++
			err = errE
			permit.Record(err)
		}
		got = append(got, err)
	}
	for i, err := range got {
		want := errE
		if i >= 4 {
			want = circuitbreaker.ErrOpen
		}
		if !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i+1, err, want)
		}
	}
	if executed != 4 {
		t.Errorf("executed %d times, want 4", executed)
	}
}

// The breaker's part of case 64: refused for 1000 ms, allowed exactly then.
func TestConform_64_LetsTheNextCallThroughWhenTheOpenTimeIsOver(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
	record(t, p, errE)
	tries := 0
	for ; ; tries++ {
		if permit, err := p.Allow(); err == nil {
			permit.Record(nil)
			break
		}
		clk.Advance(100 * time.Millisecond)
	}
	if got := clk.Now().Sub(epoch); got != time.Second || tries != 10 {
		t.Errorf("allowed after %v and %d refusals, want 1s and 10", got, tries)
	}
	wantState(t, p, circuitbreaker.Closed)
}

// C-2, the last line of case 66: refusals by what stands behind the breaker are
// no samples by default, so they never open it; and with parity they do.
func TestConform_66_RefusalsBehindTheBreakerDoNotOpenIt(t *testing.T) {
	for _, count := range []bool{false, true} {
		p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(3), circuitbreaker.CountWindow(3),
			circuitbreaker.FailureRatio(1))
		if count {
			p = must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(3), circuitbreaker.CountWindow(3),
				circuitbreaker.FailureRatio(1), circuitbreaker.CountRejections())
		}
		allow(t, p) // the first call holds the bulkhead's slot
		var got []string
		for range 5 {
			permit, err := p.Allow()
			switch {
			case err != nil:
				got = append(got, "open")
				continue
			case p.CountsRejections():
				permit.Failure()
			default:
				permit.Ignored()
			}
			got = append(got, "full")
		}
		want := []string{"full", "full", "full", "full", "full"}
		if count {
			want = []string{"full", "full", "full", "open", "open"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("CountRejections %v (-want +got)\n%s", count, diff)
		}
	}
}

func TestConform_67_FailuresThenPreventedOrNotByTheOpenTime(t *testing.T) {
	for openFor, want := range map[time.Duration]string{
		100 * time.Millisecond: "5 failed, 6 prevented, 0 ok",
		0:                      "5 failed, 0 prevented, 1 ok",
	} {
		p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(5), circuitbreaker.CountWindow(5), circuitbreaker.OpenFor(openFor))
		bad, prevented, ok := 0, 0, 0
		for range 11 {
			permit, err := p.Allow()
			switch {
			case err != nil:
				prevented++
				continue
			case bad < 5:
				bad++
				permit.Record(errE)
				continue
			}
			permit.Record(nil)
			ok++
			break // what succeeded is not retried
		}
		if got := fmt.Sprintf("%d failed, %d prevented, %d ok", bad, prevented, ok); got != want {
			t.Errorf("open for %v: %s, want %s", openFor, got, want)
		}
	}
}

// C-1: the rule is samples >= MinCalls and failures/samples >= FailureRatio,
// looked at after every sample.
func TestOpensExactlyAtTheRatioOnceEnoughCallsWereSeen(t *testing.T) {
	for _, tc := range []struct {
		name     string
		ratio    float64
		min      int
		outcomes string // E or .
		openAt   int    // samples needed; 0: never
	}{
		{"not before MinCalls", .5, 4, "EEEE", 4},
		{"at MinCalls even when that one succeeds", .75, 4, "EEE.", 4},
		{"below the ratio", .75, 4, "EE..........", 0},
		{"exactly the ratio", .5, 2, ".E", 2},
		{"just below", .5, 3, "..EE", 4},
		{"all must fail", 1, 3, "EE.EEE", 0},
		{"all do fail", 1, 3, "EEE", 3},
		{"a tenth of thirty is three", .1, 30, "EEE...........................", 30},
		{"a tenth of thirty is not two", .1, 30, "EE............................", 0},
	} {
		p := must(t, clock.NewManual(epoch), circuitbreaker.FailureRatio(tc.ratio), circuitbreaker.MinCalls(tc.min))
		openAt := 0
		for i, c := range tc.outcomes {
			var err error
			if c == 'E' {
				err = errE
			}
			record(t, p, err)
			if p.State() == circuitbreaker.Open {
				openAt = i + 1
				break
			}
		}
		if openAt != tc.openAt {
			t.Errorf("%s: opened at sample %d, want %d", tc.name, openAt, tc.openAt)
		}
	}
}

// C-1: the count window forgets the oldest sample, and nothing else.
func TestCountWindowHoldsTheLastCallsOnly(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.CountWindow(4), circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(.75))
	record(t, p, errE, errE, nil, nil) // .5
	record(t, p, nil)                  // the first failure has left: .25
	if got := p.Snapshot().FailureRatio; got != .25 {
		t.Errorf("ratio %v, want .25", got)
	}
	record(t, p, errE, errE) // E has left, E E in: . . E E
	wantState(t, p, circuitbreaker.Closed)
	if got := p.Snapshot().FailureRatio; got != .5 {
		t.Errorf("ratio %v, want .5", got)
	}
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Open)
}

// C-1: samples leave a time window with time, a tenth of it at a time.
func TestTimeWindowForgetsWithTime(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.TimeWindow(10*time.Second), circuitbreaker.MinCalls(3), circuitbreaker.FailureRatio(.6))
	record(t, p, errE, errE)
	clk.Advance(9 * time.Second)
	if got := p.Snapshot().FailureRatio; got != 1 {
		t.Errorf("after 9 s: ratio %v, want 1", got)
	}
	clk.Advance(time.Second)
	if got := p.Snapshot().FailureRatio; got != 0 {
		t.Errorf("after 10 s: ratio %v, want 0", got)
	}
	record(t, p, errE, errE) // two samples, the old ones are gone
	wantState(t, p, circuitbreaker.Closed)
	clk.Advance(5 * time.Second)
	record(t, p, nil)
	wantState(t, p, circuitbreaker.Open) // 2 of 3 ≥ .6
}

// A success may open, too: what it completes is the ratio of the window as it is.
func TestTimeWindowIsJudgedAfterEverySample(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.TimeWindow(10*time.Second), circuitbreaker.MinCalls(2))
	record(t, p, nil, nil, nil, nil)
	clk.Advance(5 * time.Second)
	record(t, p, errE, errE, errE) // 3 of 7
	wantState(t, p, circuitbreaker.Closed)
	clk.Advance(5 * time.Second) // the successes leave
	record(t, p, nil)            // 3 of 4
	wantState(t, p, circuitbreaker.Open)
}

// C-1: slow calls have a ratio of their own, be they good or bad.
func TestSlowCallsOpenByTheirOwnRatio(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.SlowCall(2*time.Second, .5), circuitbreaker.MinCalls(4), circuitbreaker.FailureRatio(1))
	call := func(d time.Duration, err error) {
		permit := allow(t, p)
		clk.Advance(d)
		permit.Record(err)
	}
	call(2*time.Second-1, nil) // fast by a nanosecond
	call(time.Second, nil)
	call(2*time.Second, nil) // slow: that long or longer
	wantState(t, p, circuitbreaker.Closed)
	call(3*time.Second, errE)
	wantState(t, p, circuitbreaker.Open)

	clk.Advance(5 * time.Second)
	call(2*time.Second, nil) // a slow probe does not close it
	wantState(t, p, circuitbreaker.Open)
	clk.Advance(5 * time.Second)
	call(time.Second, nil)
	wantState(t, p, circuitbreaker.Closed)
}

func TestRecordJudgesByIgnoreThenFailIf(t *testing.T) {
	ignored, harmless := errors.New("ignored"), errors.New("harmless")
	asked := 0
	opts := []circuitbreaker.Option{
		circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(10), circuitbreaker.Ignore(ignored),
		circuitbreaker.FailIf(func(err error) bool { asked++; return !errors.Is(err, harmless) }),
	}
	p := must(t, clock.NewManual(epoch), opts...)
	p.ForceClosed()
	record(t, p, nil, fmt.Errorf("wrapped: %w", ignored), errors.Join(errE, ignored), fmt.Errorf("wrapped: %w", harmless))
	if got := p.Snapshot().FailureRatio; got != 0 {
		t.Errorf("ratio %v, want 0: none of these is a failure", got)
	}
	record(t, p, errE, errE) // with the success and the harmless one: 2 of 4
	if got := p.Snapshot().FailureRatio; got != .5 {
		t.Errorf("ratio %v, want .5: ignored ones are no samples", got)
	}
	if asked != 3 {
		t.Errorf("FailIf was asked %d times, want 3: neither about nil nor about ignored errors", asked)
	}
	if !p.Ignores(t.Context(), fmt.Errorf("wrapped: %w", ignored)) || p.Ignores(t.Context(), errE) || p.Ignores(t.Context(), nil) {
		t.Error("Ignores does not follow errors.Is")
	}
}

func TestWithoutFailIfEveryErrorIsAFailure(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(1))
	record(t, p, fmt.Errorf("anything: %w", errE))
	wantState(t, p, circuitbreaker.Open)
}

func TestZeroPermitDoesNothing(*testing.T) {
	var permit circuitbreaker.Permit
	permit.Record(nil)
	permit.Record(errE)
	permit.Success()
	permit.Failure()
	permit.Ignored()
}
