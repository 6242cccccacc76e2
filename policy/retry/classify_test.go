package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

type notFound struct{ id string }

func (e *notFound) Error() string { return e.id + " not found" }

func TestConform_04_Rules(t *testing.T) { // R-3; also conformance 33, 49
	isNotFound := func(err error) bool { var e *notFound; return errors.As(err, &e) }
	always := func(error) bool { return true }
	panics := func(error) bool { panic("predicate") }
	wrapped, joined := fmt.Errorf("query: %w", errBoom), errors.Join(errOther, errBoom)
	for _, tc := range []struct {
		name  string
		opts  []retry.Option
		err   error
		calls int
	}{
		{"default", nil, errBoom, 4},
		{"On matches", []retry.Option{retry.On(errBoom)}, errBoom, 4},
		{"On matches a wrapped one", []retry.Option{retry.On(errBoom)}, wrapped, 4},
		{"On matches a joined one", []retry.Option{retry.On(errBoom)}, joined, 4},
		{"On does not match", []retry.Option{retry.On(errBoom)}, errOther, 1},
		{"On appends", []retry.Option{retry.On(errBoom), retry.On(errOther)}, errBoom, 4},
		{"If matches", []retry.Option{retry.If(isNotFound)}, fmt.Errorf("a: %w", &notFound{"x"}), 4},
		{"If does not match", []retry.Option{retry.If(isNotFound)}, errBoom, 1},
		{"On or If: On", []retry.Option{retry.On(errBoom), retry.If(isNotFound)}, errBoom, 4},
		{"On or If: If", []retry.Option{retry.On(errBoom), retry.If(isNotFound)}, &notFound{"x"}, 4},
		{"On or If: neither", []retry.Option{retry.On(errBoom), retry.If(isNotFound)}, errOther, 1},
		{"AbortOn", []retry.Option{retry.AbortOn(errBoom)}, wrapped, 1},
		{"AbortOn does not match", []retry.Option{retry.AbortOn(errBoom)}, errOther, 4},
		{"AbortOn wins over On", []retry.Option{retry.On(errBoom), retry.AbortOn(errBoom)}, errBoom, 1},
		{"AbortOn wins over If", []retry.Option{retry.If(always), retry.AbortOn(errBoom)}, joined, 1},
		{"AbortIf", []retry.Option{retry.AbortIf(isNotFound)}, &notFound{"x"}, 1},
		{"AbortIf wins over On", []retry.Option{retry.On(errBoom), retry.AbortIf(always)}, errBoom, 1},
		{"If panics: no match", []retry.Option{retry.If(panics)}, errBoom, 1},
		{"If panics, On matches", []retry.Option{retry.On(errBoom), retry.If(panics)}, errBoom, 4},
		{"AbortIf panics: no match", []retry.Option{retry.AbortIf(panics)}, errBoom, 4},
		{"an empty On narrows to nothing less", []retry.Option{retry.On()}, errBoom, 4},
		{"nil functions are none", []retry.Option{retry.If(nil), retry.AbortIf(nil), retry.DelayFunc(nil), retry.Rand(nil), retry.Jitter(0.1)}, errBoom, 4},
	} {
		clk := clock.NewManual(start)
		f := &script{clk: clk, ends: []error{tc.err}}
		err := on(t, clk, append(tc.opts, retry.MaxAttempts(4))...).Do(t.Context(), f.call)
		if len(f.at) != tc.calls || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d calls, %v; want %d", tc.name, len(f.at), err, tc.calls)
		}
		if tc.calls == 1 && err != tc.err { //nolint:errorlint // R-1, R-13: unchanged
			t.Errorf("%s: got %#v, want the error unchanged", tc.name, err)
		}
	}
}

func TestAPanickingCallbackIsToldOnceAndGivesNoAnswer(t *testing.T) {
	for name, opts := range map[string][]retry.Option{
		"If":        {retry.If(func(error) bool { panic("x") }), retry.On(errBoom), retry.AbortOn(errOther)},
		"AbortIf":   {retry.AbortIf(func(error) bool { panic("x") })},
		"DelayFunc": {retry.DelayFunc(func(int, error) (time.Duration, bool) { panic("x") })},
		"Rand":      {retry.Jitter(1), retry.Rand(func() float64 { panic("x") })},
	} {
		clk := clock.NewManual(start)
		p, _, j := heard(t, clk, append(opts, retry.MaxAttempts(2), retry.Constant(time.Second))...)
		f := &script{clk: clk, ends: []error{errBoom}}
		wantIs(t, p.Do(t.Context(), f.call), retry.ErrExhausted)
		if got := clk.Now().Sub(start); len(f.at) != 2 || got != time.Second {
			t.Errorf("%s: %d calls, slept %v; want the configured delay, in the middle of its jitter", name, len(f.at), got)
		}
		told := 0
		for _, e := range j.Take() {
			if c, ok := e.(policy.CallbackPanic); ok && c.Value == "x" && c.Policy() == "retry" && c.ID() == "reports" {
				told++
			}
		}
		if want := map[string]int{"If": 0, "AbortIf": 2, "DelayFunc": 1, "Rand": 1}[name]; told != want {
			t.Errorf("%s: told %d times, want %d", name, told, want)
		}
	}
}

func TestRulesBelongToTheHandleAndTheRestToTheInstance(t *testing.T) { // G-1
	clk := clock.NewManual(start)
	p := on(t, clk, retry.Budget(0, 3), retry.MaxAttempts(2), retry.Constant(0), retry.AbortOn(errBoom))
	list := []error{errOther}
	view := p.WithRules(retry.Config{AbortOn: list})
	list[0] = errBoom // G-10: the caller's slice is his own
	fail := func(context.Context) error { return errBoom }
	wantIs(t, view.Do(t.Context(), fail), retry.ErrExhausted)
	if err := p.Do(t.Context(), fail); err != errBoom { //nolint:errorlint // unchanged
		t.Errorf("the instance's own rules: got %v", err)
	}
	if err := view.Do(t.Context(), func(context.Context) error { return errOther }); err != errOther { //nolint:errorlint // unchanged
		t.Errorf("the handle's rules: got %v", err)
	}
	if a, b := p.Snapshot().Retries, view.Snapshot().Retries; a != 1 || b != 1 {
		t.Errorf("retries %d and %d, want one count for both", a, b)
	}
	if err := p.Reconfigure(config(retry.MaxAttempts(3), retry.Constant(0))); err != nil {
		t.Fatal(err)
	}
	if e := asError(t, view.Do(t.Context(), fail)); e.Attempts != 3 {
		t.Errorf("after a reconfiguration: %+v, want the new values", e)
	}
	if err := view.Do(t.Context(), func(context.Context) error { return errOther }); err != errOther { //nolint:errorlint // unchanged
		t.Errorf("after a reconfiguration: got %v, want the handle's rules", err)
	}
}
