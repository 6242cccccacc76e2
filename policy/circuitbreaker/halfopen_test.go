package circuitbreaker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

// halfOpen returns a breaker that has just opened and may be probed now.
func halfOpen(t *testing.T, clk *clock.Manual, opts ...circuitbreaker.Option) *circuitbreaker.Policy {
	t.Helper()
	p := must(t, clk, append([]circuitbreaker.Option{circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second)}, opts...)...)
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Open)
	clk.Advance(time.Second)
	wantState(t, p, circuitbreaker.HalfOpen)
	return p
}

// C-4.
func TestStateIsTrueToTheClockWithoutTraffic(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(5*time.Second))
	record(t, p, errE)
	clk.Advance(5*time.Second - 1)
	wantState(t, p, circuitbreaker.Open)
	if got := p.Snapshot(); got.State != circuitbreaker.Open || got.RetryAfterMs != 1 {
		t.Errorf("snapshot %q %d ms, want open and 1 ms (rounded up)", got.State, got.RetryAfterMs)
	}
	clk.Advance(1)
	wantState(t, p, circuitbreaker.HalfOpen)
	if got := p.Snapshot(); got.State != circuitbreaker.HalfOpen || got.RetryAfterMs != 0 {
		t.Errorf("snapshot %q %d ms, want half-open and 0", got.State, got.RetryAfterMs)
	}
}

// C-4: never a moment too late, never too early.
func TestRetryAfterIsExactlyWhenTheNextProbeIsAllowed(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(5*time.Second))
	record(t, p, errE)
	clk.Advance(800 * time.Millisecond)
	e := refusal(t, p)
	if e.RetryAfter() != 4200*time.Millisecond {
		t.Fatalf("RetryAfter %v, want 4.2s", e.RetryAfter())
	}
	clk.Advance(e.RetryAfter() - 1)
	refused(t, p)
	clk.Advance(1)
	allow(t, p)

	// Half-open with the probe under way: until that one is given up.
	clk.Advance(time.Second)
	if e = refusal(t, p); e.RetryAfter() != 4*time.Second {
		t.Fatalf("RetryAfter %v, want 4s", e.RetryAfter())
	}
	if got := p.Snapshot().RetryAfterMs; got != 4000 {
		t.Errorf("snapshot says %d ms, want 4000", got)
	}
	clk.Advance(e.RetryAfter())
	allow(t, p)
}

// between is a clock that lets something happen right after its next reading.
type between struct {
	*clock.Manual
	happens func()
}

func (b *between) Now() time.Time {
	now, f := b.Manual.Now(), b.happens
	if b.happens = nil; f != nil {
		f()
	}
	return now
}

// A call that is held up after it has read the clock is not told to wait for
// longer than OpenFor, whatever has happened to the breaker meanwhile.
func TestRetryAfter_C4_OfACallThatWasHeldUpIsNoLongerThanOpenFor(t *testing.T) {
	for name, after := range map[string]time.Duration{"while open": 500 * time.Millisecond, "when the open time is over": time.Second} {
		clk := &between{Manual: clock.NewManual(epoch)}
		p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
		record(t, p, errE)
		clk.Advance(after)
		clk.happens = func() {
			clk.Advance(time.Hour)
			allow(t, p).Failure() // opens anew
		}
		if got := refusal(t, p).RetryAfter(); got > time.Second {
			t.Errorf("%s: RetryAfter %s", name, got)
		}
	}

	clk := &between{Manual: clock.NewManual(epoch)}
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
	record(t, p, errE)
	clk.Advance(time.Second)
	probe := allow(t, p)
	clk.happens = func() {
		clk.Advance(time.Hour)
		probe.Ignored()
		allow(t, p)
	}
	if got := refusal(t, p).RetryAfter(); got > time.Second {
		t.Errorf("half-open: RetryAfter %s", got)
	}
}

func TestHalfOpenLetsExactlyItsProbesThrough(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := halfOpen(t, clk, circuitbreaker.HalfOpenCalls(3))
	permits := []circuitbreaker.Permit{allow(t, p), allow(t, p), allow(t, p)}
	refused(t, p)
	permits[0].Record(nil)
	refused(t, p) // a place that has decided is not given again
	permits[1].Record(nil)
	wantState(t, p, circuitbreaker.HalfOpen)
	permits[2].Record(nil)
	wantState(t, p, circuitbreaker.Closed)
	if got := p.Snapshot().FailureRatio; got != 0 {
		t.Errorf("ratio %v, want an empty window", got)
	}
}

// The ratio is that of all probes of the generation.
func TestHalfOpenOpensAsSoonAsTheRestCannotSaveIt(t *testing.T) {
	for _, tc := range []struct {
		name     string
		outcomes string
		want     []circuitbreaker.State
	}{
		{"one of four fails", "E...", []circuitbreaker.State{"half-open", "half-open", "half-open", "closed"}},
		{"the second of four decides", "EE", []circuitbreaker.State{"half-open", "open"}},
		{"the last one decides", ".E.E", []circuitbreaker.State{"half-open", "half-open", "half-open", "open"}},
	} {
		clk := clock.NewManual(epoch)
		p := halfOpen(t, clk, circuitbreaker.HalfOpenCalls(4))
		for i, c := range tc.outcomes {
			if permit := allow(t, p); c == 'E' {
				permit.Record(errE)
			} else {
				permit.Record(nil)
			}
			if got := p.State(); got != tc.want[i] {
				t.Errorf("%s: after probe %d %q, want %q", tc.name, i+1, got, tc.want[i])
			}
		}
	}
}

// C-3.
func TestIgnoredProbeGivesItsPlaceBack(t *testing.T) {
	clk := clock.NewManual(epoch)
	ignore := errors.New("not the service's fault")
	p := halfOpen(t, clk, circuitbreaker.Ignore(ignore))
	for range 3 {
		permit := allow(t, p)
		refused(t, p)
		permit.Record(ignore)
		permit = allow(t, p)
		refused(t, p)
		permit.Ignored()
	}
	allow(t, p).Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

// C-3: with all probes out for OpenFor, new ones are allowed.
func TestProbesThatNeverReturnAreReplacedAfterOpenFor(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := halfOpen(t, clk, circuitbreaker.HalfOpenCalls(2))
	lost := allow(t, p)
	clk.Advance(600 * time.Millisecond)
	allow(t, p)
	clk.Advance(time.Second - 1) // counted from the last one that left
	refused(t, p)
	clk.Advance(1)
	second := allow(t, p)
	lost.Record(errE) // of the generation before: changes nothing
	wantState(t, p, circuitbreaker.HalfOpen)
	third := allow(t, p)
	refused(t, p)
	second.Record(nil)
	third.Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

// Peers hand out more probes, or close, when one permit is recorded twice.
func TestProbeRecordedTwiceCountsOnce(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := halfOpen(t, clk, circuitbreaker.HalfOpenCalls(2))
	first := allow(t, p)
	first.Record(nil)
	first.Record(nil)
	first.Ignored()
	wantState(t, p, circuitbreaker.HalfOpen)
	second := allow(t, p)
	refused(t, p)
	second.Ignored()
	second.Ignored()
	second = allow(t, p)
	refused(t, p) // one place came back, not two
	second.Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

// C-3, a peer's fault: a slow call from before the failure ends well while the
// breaker is open or half-open, and closes it.
func TestLateSuccessOfAnOldGenerationDoesNotClose(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
	old := []circuitbreaker.Permit{allow(t, p), allow(t, p), allow(t, p)}
	record(t, p, errE)
	old[0].Record(nil)
	wantState(t, p, circuitbreaker.Open)
	clk.Advance(time.Second)
	probe := allow(t, p)
	old[1].Record(nil)
	wantState(t, p, circuitbreaker.HalfOpen)
	refused(t, p)
	probe.Record(nil)
	wantState(t, p, circuitbreaker.Closed)
	old[2].Record(errE) // nor does a late failure open it
	wantState(t, p, circuitbreaker.Closed)
	if got := p.Snapshot().FailureRatio; got != 0 {
		t.Errorf("ratio %v, want 0: the late failure is no sample", got)
	}
}

// C-3, a peer's fault: the only probe panics or ends its goroutine, and the
// breaker refuses for ever. The permit comes back by a deferred call, or, for
// code without one, after OpenFor.
func TestHalfOpenIsNotStuckAfterPanicOrGoexit(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := halfOpen(t, clk)
	guarded := func(f func()) {
		permit := allow(t, p)
		defer permit.Failure()
		f()
	}
	for _, leave := range testkit.Leaving {
		run(func() { guarded(leave) })
		wantState(t, p, circuitbreaker.Open)
		clk.Advance(time.Second)
		run(func() { allow(t, p); leave() }) // no defer: the probe is lost
		refused(t, p)
		clk.Advance(time.Second)
	}
	allow(t, p).Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

// run calls f on a goroutine of its own and waits for its end, whatever it is.
func run(f func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { _ = recover() }()
		f()
	})
	wg.Wait()
}

// The callback that judges a probe panics or ends the goroutine: the error
// counts as a failure, and the place is not lost.
func TestFailIfThatGivesNoAnswerCostsNoPermit(t *testing.T) {
	clk := clock.NewManual(epoch)
	var leave func()
	p := halfOpen(t, clk, circuitbreaker.FailIf(func(error) bool {
		if leave != nil {
			leave()
		}
		return true
	}))
	for _, leave = range testkit.Leaving {
		run(func() { allow(t, p).Record(errE) })
		wantState(t, p, circuitbreaker.Open)
		clk.Advance(time.Second)
	}
	allow(t, p).Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

// leaver is an error that gives no answer when it is compared with another.
type leaver func()

func (leaver) Error() string   { return "leaver" }
func (l leaver) Is(error) bool { l(); return false }

// The same, where it is the error's own Is that does so.
func TestIgnore_C3_AnErrorThatGivesNoAnswerCostsNoPermit(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := halfOpen(t, clk, circuitbreaker.Ignore(context.Canceled))
	for _, leave := range testkit.Leaving {
		run(func() { allow(t, p).Record(leaver(leave)) })
		wantState(t, p, circuitbreaker.Open)
		clk.Advance(time.Second)
	}
	if p.Ignores(t.Context(), leaver(func() { panic("boom") })) || !p.Ignores(t.Context(), context.Canceled) {
		t.Error("Ignores has got it wrong")
	}
	allow(t, p).Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

// Who listens hears of such a panic with the context of the call it came from.
func TestIgnores_X3_ThePanicIsTheCallers(t *testing.T) {
	type key struct{}
	var of []any
	p := heard(t, clock.NewManual(epoch), func(ctx context.Context, e policy.Event) {
		if _, ok := e.(policy.CallbackPanic); ok {
			of = append(of, ctx.Value(key{}))
		}
	}, circuitbreaker.Ignore(context.Canceled))
	p.Ignores(context.WithValue(t.Context(), key{}, "call"), leaver(func() { panic("boom") }))
	if len(of) != 1 || of[0] != "call" {
		t.Errorf("heard with %v, want once, with the call's context", of)
	}
}

func TestOpenForZeroRefusesNobody(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(0))
	record(t, p, errE)
	wantState(t, p, circuitbreaker.HalfOpen)
	allow(t, p)
	allow(t, p)
	allow(t, p).Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

func TestOpenForAsLongAsADurationCanBeSaturates(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(1<<63-1))
	clk.Advance(time.Hour)
	record(t, p, errE)
	clk.Advance(24 * 365 * time.Hour)
	wantState(t, p, circuitbreaker.Open)
	if e := refusal(t, p); e.Wait <= 0 {
		t.Errorf("Wait %v, want a long one", e.Wait)
	}
}

// A clock is the user's code: one that panics takes neither the lock nor a probe
// with it.
func TestHalfOpen_X3_AClockThatPanicsTakesNothingWithIt(t *testing.T) {
	clk := &between{Manual: clock.NewManual(epoch)}
	p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second), circuitbreaker.HalfOpenCalls(1))
	record(t, p, errE)
	clk.Advance(time.Second)
	for _, reads := range []int{1, 2} {
		var broken func()
		broken = func() {
			if reads--; reads == 0 {
				panic("no time")
			}
			clk.happens = broken
		}
		clk.happens = broken
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the clock did not panic")
				}
			}()
			_, _ = p.Allow()
		}()
	}
	allow(t, p).Success()
	wantState(t, p, circuitbreaker.Closed)
}

// C-3: whatever a probe is to record, its place comes back although the clock panics;
// what was no sample needs no clock.
func TestProbe_C3_X3_AClockThatPanicsTakesNoPlace(t *testing.T) {
	for name, test := range map[string]struct {
		record func(circuitbreaker.Permit)
		reads  int
	}{
		"success": {circuitbreaker.Permit.Success, 1},
		"failure": {circuitbreaker.Permit.Failure, 1},
		"ignored": {circuitbreaker.Permit.Ignored, 0},
	} {
		for _, leave := range testkit.Leaving {
			reads := 0
			clk := &testkit.HookedClock{Manual: clock.NewManual(epoch)}
			p := must(t, clk, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second), circuitbreaker.HalfOpenCalls(1))
			record(t, p, errE)
			clk.Advance(time.Second)
			probe := allow(t, p)
			clk.OnNow = func() {
				reads++
				leave()
			}
			if test.reads == 0 {
				test.record(probe)
			} else {
				testkit.Survive(t, func() { test.record(probe) })
			}
			clk.OnNow = nil
			if reads != test.reads {
				t.Errorf("%s: the clock was read %d times, want %d", name, reads, test.reads)
			}
			next := allow(t, p)
			probe.Ignored() // a second time: it gives no other place back
			refused(t, p)
			next.Success()
			wantState(t, p, circuitbreaker.Closed)
		}
	}
}
