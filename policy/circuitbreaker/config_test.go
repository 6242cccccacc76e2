package circuitbreaker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

func TestDefaultIsValidAndAsDocumented(t *testing.T) {
	want := circuitbreaker.Config{FailureRatio: .5, MinCalls: 20, Window: 100, OpenFor: 5 * time.Second, HalfOpenCalls: 1}
	if diff := cmp.Diff(want, circuitbreaker.Default()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := want.Validate(); err != nil {
		t.Error(err)
	}
}

// Conformance 72: each illegal value is an error that names policy and field.
func TestValidateNamesEveryMistake(t *testing.T) {
	for _, tc := range []struct {
		opt  circuitbreaker.Option
		want string // code path; empty: legal
	}{
		{circuitbreaker.FailureRatio(0), "R4C-ATR-003 failureRatio"},
		{circuitbreaker.FailureRatio(-.1), "R4C-ATR-003 failureRatio"},
		{circuitbreaker.FailureRatio(1.1), "R4C-ATR-003 failureRatio"},
		{circuitbreaker.FailureRatio(math.NaN()), "R4C-ATR-003 failureRatio"},
		{circuitbreaker.FailureRatio(1), ""},
		{circuitbreaker.MinCalls(0), "R4C-ATR-003 minCalls"},
		{circuitbreaker.MinCalls(100), ""},
		{circuitbreaker.MinCalls(101), "R4C-ATR-007 minCalls"},
		{circuitbreaker.CountWindow(19), "R4C-ATR-007 minCalls"},
		{circuitbreaker.CountWindow(20), ""},
		{circuitbreaker.CountWindow(0), "R4C-ATR-003 window"},
		{circuitbreaker.CountWindow(-1), "R4C-ATR-003 window"},
		{circuitbreaker.CountWindow(1 << 20), ""},
		{circuitbreaker.CountWindow(1<<20 + 1), "R4C-ATR-003 window"},
		{circuitbreaker.TimeWindow(-1), "R4C-ATR-003 timeWindow"},
		{circuitbreaker.TimeWindow(1), ""},
		{circuitbreaker.OpenFor(-1), "R4C-ATR-003 openFor"},
		{circuitbreaker.OpenFor(0), ""},
		{circuitbreaker.HalfOpenCalls(0), "R4C-ATR-003 halfOpenCalls"},
		{circuitbreaker.SlowCall(-1, .5), "R4C-ATR-003 slowCall"},
		{circuitbreaker.SlowCall(time.Second, 0), "R4C-ATR-007 slowRatio"},
		{circuitbreaker.SlowCall(time.Second, 1.5), "R4C-ATR-003 slowRatio"},
		{circuitbreaker.SlowCall(time.Second, math.NaN()), "R4C-ATR-003 slowRatio"},
		{circuitbreaker.SlowCall(0, 0), ""},
		{circuitbreaker.SlowCall(time.Second, 1), ""},
		{circuitbreaker.Ignore(errE, nil), "R4C-ATR-003 ignore[1]"},
	} {
		var found []string
		for _, e := range policy.ConfigErrors(with(tc.opt).Validate()) {
			found = append(found, e.Code+" "+e.Path)
			if e.Policy != "circuitbreaker" || e.Got == "" || e.Hint == "" {
				t.Errorf("%v: incomplete: %+v", tc.opt, e)
			}
		}
		if got := strings.Join(found, ", "); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.opt, got, tc.want)
		}
	}
}

// A time window has no size in calls, so MinCalls may be anything.
func TestTimeWindowTakesTheCountWindowsPlace(t *testing.T) {
	c := with(circuitbreaker.MinCalls(1000), circuitbreaker.TimeWindow(time.Minute))
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Window = 0
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Apply(circuitbreaker.CountWindow(2000))
	if c.TimeWindow != 0 || c.Window != 2000 {
		t.Errorf("got %v and %d, want the count window of 2000 alone", c.TimeWindow, c.Window)
	}
}

func TestNewReportsEveryMistakeWithTheID(t *testing.T) {
	_, err := circuitbreaker.New(" reports", with(circuitbreaker.MinCalls(0), circuitbreaker.OpenFor(-time.Second)), nil)
	var got []string
	for _, e := range policy.ConfigErrors(err) {
		got = append(got, fmt.Sprintf("%s %q %s", e.Code, e.ID, e.Path))
	}
	want := []string{
		`R4C-ATR-004 " reports" id`, `R4C-ATR-003 " reports" clk`,
		`R4C-ATR-003 " reports" minCalls`, `R4C-ATR-003 " reports" openFor`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// G-1.
func TestIDsAreExact(t *testing.T) {
	clk := clock.NewManual(epoch)
	for id, ok := range map[string]bool{
		"": false, " a": false, "a ": false, "\ta": false, "a b": true, "com.acme.Api#build(java.lang.String)": true, "a/b": true,
	} {
		p, err := circuitbreaker.New(id, circuitbreaker.Default(), clk)
		if (err == nil) != ok {
			t.Errorf("%q: %v, want accepted: %v", id, err, ok)
		}
		if err == nil && p.ID() != id {
			t.Errorf("ID %q, want %q", p.ID(), id)
		}
	}
}

func TestApplyNamesTheKeysItSet(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	var c circuitbreaker.Config
	keys := c.Apply(
		circuitbreaker.Name("shared"), circuitbreaker.OpenFor(time.Second), circuitbreaker.Ignore(a), circuitbreaker.FailureRatio(.1),
		circuitbreaker.TimeWindow(time.Minute), circuitbreaker.Ignore(b), circuitbreaker.OpenFor(2*time.Second), circuitbreaker.CountRejections(),
		circuitbreaker.SlowCall(time.Second, .3), circuitbreaker.HalfOpenCalls(4), circuitbreaker.MinCalls(5), circuitbreaker.FailIf(nil),
		circuitbreaker.CountWindow(6),
	)
	want := []string{
		"openFor", "ignore", "failureRatio", "timeWindow", "countRejections", "slowCall", "slowRatio",
		"halfOpenCalls", "minCalls", "failIf", "window",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	if !slices.Equal(c.Ignore, []error{a, b}) {
		t.Errorf("Ignore %v, want both", c.Ignore)
	}
	c.Ignore = nil
	wantConfig := circuitbreaker.Config{
		FailureRatio: .1, MinCalls: 5, Window: 6, OpenFor: 2 * time.Second, HalfOpenCalls: 4,
		SlowCall: time.Second, SlowRatio: .3, CountRejections: true,
	}
	if diff := cmp.Diff(wantConfig, c); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// G-10.
func TestApplyNeverWritesToTheBase(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	base := circuitbreaker.Config{Ignore: append(make([]error, 0, 8), a)}
	one, two := base, base
	one.Apply(circuitbreaker.Ignore(b))
	two.Apply(circuitbreaker.Ignore(c))
	if !slices.Equal(one.Ignore, []error{a, b}) || !slices.Equal(two.Ignore, []error{a, c}) || len(base.Ignore) != 1 {
		t.Errorf("got %v, %v and %v", one.Ignore, two.Ignore, base.Ignore)
	}
	mine := []error{a}
	opt := circuitbreaker.Ignore(mine...)
	mine[0] = b
	base.Apply(opt)
	if !errors.Is(base.Ignore[1], a) {
		t.Error("the option saw the caller's change of its slice")
	}
}

func TestNameOfIsTheLastName(t *testing.T) {
	if id, ok := circuitbreaker.NameOf(circuitbreaker.Name("a"), circuitbreaker.MinCalls(1), circuitbreaker.Name("b")); id != "b" || !ok {
		t.Errorf("got %q %v, want b", id, ok)
	}
	if id, ok := circuitbreaker.NameOf(circuitbreaker.MinCalls(1)); id != "" || ok {
		t.Errorf("got %q %v, want none", id, ok)
	}
}

// S-3: explicit zeros included, durations as text.
func TestConfigAsJSONHasEverySetting(t *testing.T) {
	for want, c := range map[string]circuitbreaker.Config{
		`{"failureRatio":0.5,"minCalls":20,"window":100,"timeWindow":"0s","openFor":"5s","halfOpenCalls":1,"slowCall":"0s","slowRatio":0,"countRejections":false}`: circuitbreaker.Default(),
		`{"failureRatio":0.5,"minCalls":20,"window":0,"timeWindow":"1m0s","openFor":"0s","halfOpenCalls":1,"slowCall":"1.5s","slowRatio":0.25,"countRejections":true}`: with(
			circuitbreaker.TimeWindow(time.Minute), circuitbreaker.OpenFor(0), circuitbreaker.SlowCall(1500*time.Millisecond, .25), circuitbreaker.CountRejections()),
	} {
		got, err := json.Marshal(c)
		if err != nil || string(got) != want {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
}

func TestOptionsPrintAsTheyAreWritten(t *testing.T) {
	got := fmt.Sprint([]circuitbreaker.Option{
		circuitbreaker.FailureRatio(.25), circuitbreaker.MinCalls(4), circuitbreaker.CountWindow(8), circuitbreaker.TimeWindow(time.Minute),
		circuitbreaker.OpenFor(time.Second), circuitbreaker.HalfOpenCalls(2), circuitbreaker.SlowCall(time.Second, .5),
		circuitbreaker.FailIf(nil), circuitbreaker.Ignore(errE), circuitbreaker.CountRejections(), circuitbreaker.Name("a"),
	})
	want := `[failureRatio(0.25) minCalls(4) countWindow(8) timeWindow(1m0s) openFor(1s) halfOpenCalls(2) slowCall(1s, 0.5) ` +
		`failIf(func) ignore["the service is down"] countRejections() name("a")]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestErrorSaysWhoAndWhen(t *testing.T) {
	e := &circuitbreaker.Error{Instance: "reports", Wait: 4200 * time.Millisecond}
	if got, want := e.Error(), `circuitbreaker "reports": open, next probe in 4.2s`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := (&circuitbreaker.Error{Instance: "reports"}).Error(), `circuitbreaker "reports": open`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if e.Policy() != "circuitbreaker" || e.ID() != "reports" || e.Started() || !policy.NotStarted(e) || errors.Is(e, errE) {
		t.Errorf("got %q %q started %v", e.Policy(), e.ID(), e.Started())
	}
}
