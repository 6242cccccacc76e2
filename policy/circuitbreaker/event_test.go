package circuitbreaker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

func TestEventsTellEachChangeOnceWithItsTime(t *testing.T) {
	clk := clock.NewManual(epoch)
	var l testkit.Journal
	p := heard(t, clk, l.Listen, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
	record(t, p, errE)
	refused(t, p)
	clk.Advance(1500 * time.Millisecond)
	if p.State(); l.Len() != 2 {
		t.Errorf("State published something: %v", l.Events())
	}
	_ = p.Snapshot()
	probe := allow(t, p) // the first call to notice
	clk.Advance(time.Second / 2)
	probe.Record(nil)
	p.Reset() // no change
	p.ForceOpen()
	p.ForceOpen() // no change
	p.ForceClosed()

	at := func(d time.Duration) policy.Meta {
		return policy.NewMeta("circuitbreaker", "reports", epoch.Add(d))
	}
	want := []policy.Event{
		circuitbreaker.StateChanged{Meta: at(0), From: "closed", To: "open"},
		circuitbreaker.Rejected{Meta: at(0)},
		circuitbreaker.StateChanged{Meta: at(1500 * time.Millisecond), From: "open", To: "half-open"},
		circuitbreaker.StateChanged{Meta: at(2 * time.Second), From: "half-open", To: "closed"},
		circuitbreaker.StateChanged{Meta: at(2 * time.Second), From: "closed", To: "open"},
		circuitbreaker.StateChanged{Meta: at(2 * time.Second), From: "open", To: "closed"},
	}
	if diff := cmp.Diff(want, l.Events(), cmpopts.EquateComparable(policy.Meta{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEventsCarryTheContextOfTheirCall(t *testing.T) {
	type key struct{}
	clk := clock.NewManual(epoch)
	var got []any
	p := heard(t, clk, func(ctx context.Context, _ policy.Event) { got = append(got, ctx.Value(key{})) },
		circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
	enter := func(name string) circuitbreaker.Permit {
		permit, _ := p.Enter(context.WithValue(t.Context(), key{}, name))
		return permit
	}
	enter("opens").Failure()
	enter("is refused")
	clk.Advance(time.Second)
	enter("probes").Success()
	p.ForceOpen()
	want := []any{"opens", "is refused", "probes", "probes", nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// C-4, X-3, a peer's fault: State, let alone Allow, inside a listener deadlocks.
// What a listener causes is told after what it is being told.
func TestListenersMayCallBack(t *testing.T) {
	clk := clock.NewManual(epoch)
	var l testkit.Journal
	var p *circuitbreaker.Policy
	var seen []circuitbreaker.State
	telling := false
	p = heard(t, clk, func(ctx context.Context, e policy.Event) {
		l.Listen(ctx, e)
		change, ok := e.(circuitbreaker.StateChanged)
		if !ok {
			return
		}
		if telling {
			t.Errorf("%s>%s is told in the middle of another change", change.From, change.To)
		}
		telling = true
		defer func() { telling = false }()
		seen = append(seen, p.State(), p.Snapshot().State)
		permit, _ := p.Allow()
		permit.Record(nil)
		if change.To == circuitbreaker.Open && len(seen) == 2 {
			p.Reset()
			seen = append(seen, p.State())
		}
	}, circuitbreaker.MinCalls(1))
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Closed)
	if diff := cmp.Diff([]circuitbreaker.State{"open", "open", "closed", "closed", "closed"}, seen); diff != "" {
		t.Errorf("states (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"closed>open", "open>closed"}, changes(&l)); diff != "" {
		t.Errorf("changes (-want +got)\n%s", diff)
	}
}

//
func TestListenerThatPanicsOrEndsTheGoroutineStopsNothing(t *testing.T) {
	for name, leave := range testkit.Leaving {
		var l testkit.Journal
		var p *circuitbreaker.Policy
		p = heard(t, clock.NewManual(epoch), func(ctx context.Context, e policy.Event) {
			l.Listen(ctx, e)
			if change, ok := e.(circuitbreaker.StateChanged); ok && change.From == circuitbreaker.Closed {
				p.ForceClosed() // news that waits while this listener leaves
				leave()
			}
		}, circuitbreaker.MinCalls(1))
		run(func() { record(t, p, errE) })
		wantState(t, p, circuitbreaker.Closed)
		p.ForceClosed()
		if diff := cmp.Diff([]string{"closed>open", "open>closed"}, changes(&l)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// A listener that ends the goroutine when it hears of the first probe leaves no
// call behind that would hold the probe's place.
func TestProbe_C3_ComesBackFromAListenerThatEndsTheGoroutine(t *testing.T) {
	clk := clock.NewManual(epoch)
	p := heard(t, clk, func(_ context.Context, e policy.Event) {
		if change, ok := e.(circuitbreaker.StateChanged); ok && change.To == circuitbreaker.HalfOpen {
			runtime.Goexit()
		}
	}, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second))
	record(t, p, errE)
	clk.Advance(time.Second)
	run(func() { _, _ = p.Allow() })
	wantState(t, p, circuitbreaker.HalfOpen)
	allow(t, p).Record(nil)
	wantState(t, p, circuitbreaker.Closed)
}

func TestPanickingFailIfIsToldOnce(t *testing.T) {
	var l testkit.Journal
	p := heard(t, clock.NewManual(epoch), l.Listen, circuitbreaker.FailIf(func(error) bool { panic("boom") }))
	record(t, p, errE)
	if l.Len() != 1 {
		t.Fatalf("%d events, want 1: %v", l.Len(), l.Events())
	}
	e, ok := l.Events()[0].(policy.CallbackPanic)
	if !ok || e.Value != "boom" || e.ID() != "reports" || e.Policy() != "circuitbreaker" {
		t.Errorf("got %v, want a CallbackPanic of reports with boom", l.Events()[0])
	}
	if got := p.Snapshot().FailureRatio; got != 1 {
		t.Errorf("ratio %v, want 1: without an answer an error is a failure", got)
	}
}

//
func TestClosedScopeRefusesNewCalls(t *testing.T) {
	s := scope.New(clock.NewManual(epoch), nil)
	p, err := circuitbreaker.NewIn(s, "reports", circuitbreaker.Default())
	if err != nil {
		t.Fatal(err)
	}
	inFlight := allow(t, p)
	s.Close()
	if _, err := p.Allow(); !errors.Is(err, scope.ErrClosed) {
		t.Errorf("Allow: %v, want ErrClosed", err)
	}
	inFlight.Record(errE)
	if got := p.Snapshot(); got.FailureRatio != 1 || got.Rejected != 0 {
		t.Errorf("snapshot %+v, want the sample and no refusal of the breaker's own", got)
	}
}

func TestLogValuesNameWhatChanged(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	var l testkit.Journal
	p := heard(t, clock.NewManual(epoch), l.Listen, circuitbreaker.MinCalls(1))
	record(t, p, errE)
	log.Info("x", "error", refusal(t, p), "change", l.Events()[0], "refusal", l.Events()[1], "snapshot", p.Snapshot())
	for _, want := range []string{
		"error.id=reports", "error.retryAfter=5s", "change.from=closed", "change.to=open",
		"refusal.id=reports", "snapshot.state=open", "snapshot.rejected=1", "snapshot.retryAfterMs=5000",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in %s", want, b.String())
		}
	}
}
