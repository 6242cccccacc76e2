package circuitbreaker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

func TestForceOpenStaysUntilTakenBack(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(1))
	before := allow(t, p)
	p.ForceOpen()
	clk.Advance(1000 * time.Hour)
	wantState(t, p, circuitbreaker.Open)
	before.Record(nil)
	if e := refusal(t, p); e.Wait != 0 {
		t.Errorf("Wait %v, want 0: nobody knows", e.Wait)
	}
	want := circuitbreaker.Snapshot{ID: "reports", Config: p.Config(), State: circuitbreaker.Open, Rejected: 1}
	if diff := cmp.Diff(want, p.Snapshot()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	p.Reset()
	wantState(t, p, circuitbreaker.Closed)
	allow(t, p)

	p.ForceOpen()
	p.ForceClosed()
	wantState(t, p, circuitbreaker.Closed)
}

func TestForceClosedStaysClosedWhateverHappens(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(1))
	p.ForceClosed()
	record(t, p, errE, errE, errE)
	wantState(t, p, circuitbreaker.Closed)
	if got := p.Snapshot().FailureRatio; got != 1 {
		t.Errorf("ratio %v, want 1: outcomes are still counted", got)
	}
	p.Reset() // closed with an empty window, and alive again
	wantState(t, p, circuitbreaker.Closed)
	if got := p.Snapshot().FailureRatio; got != 0 {
		t.Errorf("ratio %v after Reset, want 0", got)
	}
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Open)
}

func TestResetEmptiesTheWindowAndForgetsCallsInFlight(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(2))
	inFlight := allow(t, p)
	record(t, p, errE)
	p.Reset()
	inFlight.Record(errE)
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Closed)
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Open)
}

// G-7.
func TestReconfigureKeepsStateAndSamples(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := must(t, clk, circuitbreaker.MinCalls(4))
	record(t, p, errE, errE)
	inFlight := allow(t, p)
	if err := p.Reconfigure(with(circuitbreaker.MinCalls(3), circuitbreaker.OpenFor(time.Minute))); err != nil {
		t.Fatal(err)
	}
	if got := p.Snapshot().FailureRatio; got != 1 {
		t.Errorf("ratio %v, want 1: samples are kept", got)
	}
	inFlight.Record(errE) // its permit is still good, and the new MinCalls is reached
	wantState(t, p, circuitbreaker.Open)

	clk.Advance(10 * time.Second)
	if err := p.Reconfigure(with(circuitbreaker.OpenFor(15 * time.Second))); err != nil {
		t.Fatal(err)
	}
	if e := refusal(t, p); e.Wait != 5*time.Second {
		t.Errorf("Wait %v, want 5s: the new open time, counted from when it opened", e.Wait)
	}
}

func TestReconfigureWithAnotherWindowBeginsAnEmptyOne(t *testing.T) {
	for name, opt := range map[string]circuitbreaker.Option{
		"another size": circuitbreaker.CountWindow(50), "another kind": circuitbreaker.TimeWindow(time.Minute),
	} {
		p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(2))
		inFlight := allow(t, p)
		record(t, p, errE)
		if err := p.Reconfigure(with(circuitbreaker.MinCalls(2), opt)); err != nil {
			t.Fatal(err)
		}
		inFlight.Record(errE)
		if got := p.Snapshot().FailureRatio; got != 0 {
			t.Errorf("%s: ratio %v, want 0", name, got)
		}
		record(t, p, errE, errE)
		wantState(t, p, circuitbreaker.Open)
	}
}

func TestReconfigureLeavesProbesUnderWayAlone(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := halfOpen(t, clk)
	probe := allow(t, p)
	if err := p.Reconfigure(with(circuitbreaker.HalfOpenCalls(9), circuitbreaker.MinCalls(2))); err != nil {
		t.Fatal(err)
	}
	refused(t, p)
	probe.Record(nil)
	wantState(t, p, circuitbreaker.Closed)
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Closed) // MinCalls(2) is in force from here on
}

func TestReconfigureKeepsCommands(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.MinCalls(1))
	p.ForceOpen()
	if err := p.Reconfigure(with(circuitbreaker.OpenFor(0), circuitbreaker.MinCalls(1))); err != nil {
		t.Fatal(err)
	}
	refused(t, p)
	p.ForceClosed()
	if err := p.Reconfigure(with(circuitbreaker.MinCalls(1), circuitbreaker.CountWindow(7))); err != nil {
		t.Fatal(err)
	}
	record(t, p, errE, errE)
	wantState(t, p, circuitbreaker.Closed)
}

// G-7: invalid settings change nothing.
func TestReconfigureRefusesMistakes(t *testing.T) {
	p := must(t, clock.NewManual(epoch))
	err := p.Reconfigure(with(circuitbreaker.MinCalls(0)))
	if all := policy.ConfigErrors(err); len(all) != 1 || all[0].ID != "reports" || all[0].Path != "minCalls" {
		t.Errorf("got %v, want one mistake that names reports and minCalls", err)
	}
	if diff := cmp.Diff(circuitbreaker.Default(), p.Config()); diff != "" {
		t.Errorf("settings changed (-want +got)\n%s", diff)
	}
}

// G-10, SN-02: nothing that the caller holds reaches into the breaker.
func TestConfigIsNotShared(t *testing.T) {
	given := []error{errE}
	c := with(circuitbreaker.MinCalls(1))
	c.Ignore = given
	p, err := circuitbreaker.New("reports", c, clock.NewManual(epoch))
	if err != nil {
		t.Fatal(err)
	}
	given[0] = errors.New("another")
	p.Config().Ignore[0] = given[0]
	p.Snapshot().Config.Ignore[0] = given[0]
	if !p.Ignores(t.Context(), errE) {
		t.Error("the breaker forgot what it ignores")
	}
}
