package retry_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

func TestField_SN02_SnapshotSharesNothing(t *testing.T) { // S-3, G-10
	c := config(retry.On(errBoom), retry.AbortOn(errOther), retry.Budget(1, 1))
	p, err := retry.New("reports", c, clock.NewManual(start))
	if err != nil {
		t.Fatal(err)
	}
	c.On[0], c.Budget.Ratio = errOther, 9 // what New was given is the caller's again
	first := p.Snapshot()
	want := retry.Snapshot{ID: "reports", Config: config(retry.On(errBoom), retry.AbortOn(errOther), retry.Budget(1, 1))}
	if diff := cmp.Diff(want, first, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	first.Config.On[0], first.Config.AbortOn[0], first.Config.Budget.Ratio = nil, nil, 7
	if diff := cmp.Diff(want, p.Snapshot(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("after another one was changed (-want +got)\n%s", diff)
	}
	text, err := json.Marshal(p.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	const wantText = `{"id":"reports","config":{"maxAttempts":3,"backoff":"exponential","delay":"100ms","factor":2,"maxDelay":"30s","jitter":0,` +
		`"fullJitter":false,"maxDuration":"0s","reserve":"0s","budget":{"ratio":1,"minPerSecond":1}},"retries":0,"exhausted":0,"outOfTime":0,"budgetDenied":0}`
	if string(text) != wantText {
		t.Errorf("got  %s\nwant %s", text, wantText)
	}
}

func TestSnapshotUnderLoadIsMonotone(t *testing.T) { // S-2
	p := on(t, clock.NewManual(start), retry.Constant(0), retry.Budget(0.5, 0))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = p.Do(context.Background(), func(context.Context) error { return errBoom })
				}
			}
		})
	}
	wg.Go(func() { // reconfigured meanwhile
		defer close(stop)
		for i := range 300 {
			if err := p.Reconfigure(config(retry.Constant(0), retry.Budget(0.5, 0), retry.MaxAttempts(2+i%2))); err != nil {
				t.Error(err)
			}
		}
	})
	var last retry.Snapshot
	for range 300 {
		s := p.Snapshot()
		if s.Retries < last.Retries || s.Exhausted < last.Exhausted || s.OutOfTime < last.OutOfTime || s.BudgetDenied < last.BudgetDenied {
			t.Fatalf("%+v after %+v", s, last)
		}
		if s.Retries < s.Exhausted {
			t.Fatalf("%d calls exhausted, but only %d retries: each had one at least", s.Exhausted, s.Retries)
		}
		last = s
	}
	wg.Wait()
}

func TestReconfigureIsAllOrNothing(t *testing.T) { // G-7
	clk := clock.NewManual(start)
	p := on(t, clk, retry.MaxAttempts(2), retry.Constant(time.Second))
	if err := p.Reconfigure(config(retry.MaxAttempts(0))); err == nil {
		t.Error("invalid settings were taken")
	}
	if got := p.Config().MaxAttempts; got != 2 {
		t.Errorf("after a mistake: MaxAttempts %d, want the old 2", got)
	}
	r := p.Begin()
	r.Entered = true
	if err := p.Reconfigure(config(retry.MaxAttempts(5), retry.Budget(0, 0))); err != nil {
		t.Fatal(err)
	}
	if _, stop := p.Next(t.Context(), &r, retry.Returned, errBoom, retry.ByRules); stop != nil {
		t.Errorf("a call in flight keeps its settings, without a budget: %v", stop)
	}
	if _, stop := p.Next(t.Context(), &r, retry.Returned, errBoom, retry.ByRules); stop != retry.ErrExhausted { //nolint:errorlint // that value
		t.Errorf("a call in flight keeps its settings, two attempts: %v", stop)
	}
	wantIs(t, p.Do(t.Context(), func(context.Context) error { return errBoom }), retry.ErrBudget)
}
