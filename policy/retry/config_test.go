package retry_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

func TestDefaultIsValid(t *testing.T) {
	want := retry.Config{MaxAttempts: 3, Backoff: retry.BackoffExponential, Delay: 100 * time.Millisecond, Factor: 2, MaxDelay: 30 * time.Second}
	if diff := cmp.Diff(want, retry.Default()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := retry.Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	type mistake struct{ Code, Path string }
	for _, tc := range []struct {
		name string
		c    retry.Config
		want []mistake
	}{
		{"no attempts", config(retry.MaxAttempts(0)), []mistake{{"R4C-ATR-003", "maxAttempts"}}},
		{"negative attempts", config(retry.MaxAttempts(-2)), []mistake{{"R4C-ATR-003", "maxAttempts"}}},
		{"unlimited", config(retry.Unlimited()), nil},
		{"-1 is unlimited", config(retry.MaxAttempts(-1)), nil},
		{"unknown backoff", retry.Config{MaxAttempts: 1, Backoff: "cubic"}, []mistake{{"R4C-ATR-003", "backoff"}}},
		{"no backoff is a constant one", retry.Config{MaxAttempts: 1}, nil},
		{"factor 0.9", config(retry.Exponential(time.Second, 0.9)), []mistake{{"R4C-ATR-003", "factor"}}},
		{"factor 1", config(retry.Exponential(time.Second, 1)), nil},
		{"factor NaN", config(retry.Exponential(time.Second, math.NaN())), []mistake{{"R4C-ATR-003", "factor"}}},
		{"factor infinite", config(retry.Exponential(time.Second, math.Inf(1))), []mistake{{"R4C-ATR-003", "factor"}}},
		{"factor of another backoff", retry.Config{MaxAttempts: 1, Backoff: retry.BackoffLinear, Factor: 0.5}, nil},
		{"jitter -0.1", config(retry.Jitter(-0.1)), []mistake{{"R4C-ATR-003", "jitter"}}},
		{"jitter 1", config(retry.Jitter(1)), nil},
		{"jitter 1.1", config(retry.Jitter(1.1)), []mistake{{"R4C-ATR-003", "jitter"}}},
		{"jitter NaN", config(retry.Jitter(math.NaN())), []mistake{{"R4C-ATR-003", "jitter"}}},
		{"both jitters", config(retry.Jitter(0.1), retry.FullJitter()), []mistake{{"R4C-ATR-007", "fullJitter"}}},
		{"full jitter and none", config(retry.Jitter(0), retry.FullJitter()), nil},
		{"negative durations", retry.Config{MaxAttempts: 1, Delay: -1, MaxDelay: -1, MaxDuration: -1, Reserve: -1}, []mistake{
			{"R4C-ATR-003", "delay"}, {"R4C-ATR-003", "maxDelay"}, {"R4C-ATR-003", "maxDuration"}, {"R4C-ATR-003", "reserve"},
		}},
		{"reserve without MaxDuration", config(retry.Reserve(time.Second)), nil},
		{"reserve of all", config(retry.Reserve(time.Second), retry.MaxDuration(time.Second)), []mistake{{"R4C-ATR-007", "reserve"}}},
		{"budget of nothing", config(retry.Budget(0, 0)), nil},
		{"negative budget", config(retry.Budget(-1, -1)), []mistake{{"R4C-ATR-003", "budget.ratio"}, {"R4C-ATR-003", "budget.minPerSecond"}}},
		{"budget not a number", config(retry.Budget(math.NaN(), math.Inf(1))), []mistake{{"R4C-ATR-003", "budget.ratio"}, {"R4C-ATR-003", "budget.minPerSecond"}}},
		{"nil in a list", config(retry.On(errBoom, nil), retry.AbortOn(nil)), []mistake{{"R4C-ATR-003", "on"}, {"R4C-ATR-003", "abortOn"}}},
	} {
		var got []mistake
		for _, e := range policy.ConfigErrors(tc.c.Validate()) {
			got = append(got, mistake{e.Code, e.Path})
			if e.Policy != "retry" || e.ID != "" || e.Got == "" || e.Hint == "" {
				t.Errorf("%s: %#v", tc.name, e)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
		_, err := retry.New("reports", tc.c, clock.NewManual(start))
		if (err != nil) != (tc.want != nil) {
			t.Errorf("%s: New: %v", tc.name, err)
		}
		for _, e := range policy.ConfigErrors(err) {
			if e.ID != "reports" {
				t.Errorf("%s: New does not name the instance: %v", tc.name, e)
			}
		}
	}
}

func TestNewRefusesIdsAndClocks(t *testing.T) { // G-1
	clk := clock.NewManual(start)
	for _, id := range []string{"", " x", "x ", "\tx", "a\nb", "\xff"} {
		_, err := retry.New(id, retry.Config{}, clk)
		errs := policy.ConfigErrors(err)
		if len(errs) != 2 || errs[0].Code != "R4C-ATR-004" || errs[1].Path != "maxAttempts" {
			t.Errorf("%q: got %v, want the id's mistake and the setting's", id, err)
		}
	}
	for _, id := range []string{"x", "com.acme.Api#build(java.lang.String)", "a/b c", "報告"} {
		if p, err := retry.New(id, retry.Default(), clk); err != nil || p.ID() != id {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := retry.New("x", retry.Default(), nil); len(policy.ConfigErrors(err)) != 1 || policy.ConfigErrors(err)[0].Path != "clk" {
		t.Errorf("nil clock: got %v", err)
	}
}

func TestMarshalJSONWritesEverySetting(t *testing.T) { // S-3
	got, err := json.Marshal(config(retry.Budget(0.2, 1), retry.MaxDuration(5*time.Second), retry.Reserve(10*time.Millisecond), retry.On(errBoom)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"maxAttempts":3,"backoff":"exponential","delay":"100ms","factor":2,"maxDelay":"30s","jitter":0,"fullJitter":false,` +
		`"maxDuration":"5s","reserve":"10ms","budget":{"ratio":0.2,"minPerSecond":1}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got, err = json.Marshal(retry.Config{MaxAttempts: -1})
	if err != nil {
		t.Fatal(err)
	}
	want = `{"maxAttempts":-1,"backoff":"","delay":"0s","factor":0,"maxDelay":"0s","jitter":0,"fullJitter":false,"maxDuration":"0s","reserve":"0s"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestApply(t *testing.T) { // G-2
	never := func(error) bool { return false }
	c := retry.Default()
	keys := c.Apply(
		retry.MaxAttempts(7), retry.Constant(time.Second), retry.Exponential(2*time.Second, 3), nil, retry.MaxAttempts(5),
		retry.MaxDelay(time.Minute), retry.Jitter(0.5), retry.MaxDuration(time.Hour), retry.Reserve(time.Millisecond),
		retry.On(errBoom), retry.On(errOther), retry.If(never), retry.AbortOn(errOther), retry.AbortIf(never),
		retry.DelayFunc(func(int, error) (time.Duration, bool) { return 0, true }), retry.Rand(func() float64 { return 0 }),
		retry.Budget(0.1, 2), retry.Name("shared"),
	)
	wantKeys := []string{
		"maxAttempts", "backoff", "delay", "factor", "maxDelay", "jitter", "maxDuration", "reserve",
		"on", "if", "abortOn", "abortIf", "delayFunc", "rand", "budget",
	}
	if diff := cmp.Diff(wantKeys, keys); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	want := retry.Config{
		MaxAttempts: 5, Backoff: retry.BackoffExponential, Delay: 2 * time.Second, Factor: 3, MaxDelay: time.Minute, Jitter: 0.5,
		MaxDuration: time.Hour, Reserve: time.Millisecond, Budget: &retry.BudgetConfig{Ratio: 0.1, MinPerSecond: 2},
		On: []error{errBoom, errOther}, AbortOn: []error{errOther},
	}
	functions := cmpopts.IgnoreFields(retry.Config{}, "If", "AbortIf", "DelayFunc", "Rand")
	if diff := cmp.Diff(want, c, functions, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c.If == nil || c.AbortIf == nil || c.DelayFunc == nil || c.Rand == nil {
		t.Error("a function was lost")
	}
	if id, ok := retry.NameOf(retry.Name("a"), retry.Jitter(0), retry.Name("b")); id != "b" || !ok {
		t.Errorf("NameOf = %q %v, want the last one", id, ok)
	}
	if id, ok := retry.NameOf(retry.Jitter(0)); id != "" || ok {
		t.Errorf("NameOf without a name = %q %v", id, ok)
	}
	if keys := c.Apply(retry.FullJitter(), retry.Linear(0), retry.Unlimited()); cmp.Diff([]string{"fullJitter", "backoff", "delay", "maxAttempts"}, keys) != "" {
		t.Errorf("keys %v", keys)
	}
}

func TestDerivingNeverChangesTheBase(t *testing.T) { // G-10
	list := make([]error, 1, 8)
	list[0] = errBoom
	base := retry.Default()
	base.Apply(retry.On(list...), retry.Budget(1, 1))
	list[0] = errOther
	a, b := base, base
	a.Apply(retry.On(errOther), retry.Budget(2, 2))
	b.Apply(retry.On(errSentinel))
	if len(base.On) != 1 || base.On[0] != errBoom || a.On[1] != errOther || b.On[1] != errSentinel || base.Budget.Ratio != 1 { //nolint:errorlint // identity
		t.Errorf("base %v, a %v, b %v", base.On, a.On, b.On)
	}
}

func TestOptionsPrintAsTheyAreWritten(t *testing.T) {
	for _, tc := range []struct {
		o    retry.Option
		want string
	}{
		{retry.MaxAttempts(3), "MaxAttempts(3)"},
		{retry.Unlimited(), "Unlimited()"},
		{retry.Constant(time.Second), "Constant(1s)"},
		{retry.Linear(time.Second), "Linear(1s)"},
		{retry.Exponential(time.Second, 1.5), "Exponential(1s, 1.5)"},
		{retry.DelayFunc(nil), "DelayFunc(…)"},
		{retry.MaxDelay(time.Second), "MaxDelay(1s)"},
		{retry.Jitter(0.25), "Jitter(0.25)"},
		{retry.FullJitter(), "FullJitter()"},
		{retry.MaxDuration(time.Second), "MaxDuration(1s)"},
		{retry.Reserve(time.Second), "Reserve(1s)"},
		{retry.On(errBoom, errOther), "On(boom, other)"},
		{retry.If(nil), "If(…)"},
		{retry.AbortOn(errBoom), "AbortOn(boom)"},
		{retry.AbortIf(nil), "AbortIf(…)"},
		{retry.Budget(0.2, 1), "Budget(0.2, 1)"},
		{retry.Rand(nil), "Rand(…)"},
		{retry.Name("a"), `Name("a")`},
	} {
		if got := fmt.Sprint(tc.o); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
