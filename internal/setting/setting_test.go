package setting_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

func TestID_G1_PaddingAndUnprintablesAreRefused(t *testing.T) {
	for _, id := range []string{"a", "com.acme/Report.Build#x()", "ä ö", "a  b"} {
		if err := setting.ID("retry", id, "id"); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", " ", " a", "a ", "a\t", "\n", "a\x00b", "a\xff"} {
		err := setting.ID("retry", id, "id")
		var e *policy.ConfigError
		if !errors.As(err, &e) || e.Code != "R4C-ATR-004" || e.Policy != "retry" || e.Got == "" || e.Hint == "" {
			t.Errorf("%q: %#v", id, err)
		}
	}
}

type someClock struct{}

func TestClock_K1_ANilPointerIsNone(t *testing.T) {
	for _, clk := range []any{nil, (*someClock)(nil)} {
		var e *policy.ConfigError
		if err := setting.Clock("retry", "a", clk); !errors.As(err, &e) || e.Code != "R4C-ATR-003" || e.Policy != "retry" || e.ID != "a" || e.Hint == "" {
			t.Errorf("%T: %#v", clk, err)
		}
	}
	for _, clk := range []any{someClock{}, &someClock{}} {
		if err := setting.Clock("retry", "a", clk); err != nil {
			t.Errorf("%T: %v", clk, err)
		}
	}
}

func TestNamedReachesEveryMistake(t *testing.T) {
	a, b := &policy.ConfigError{}, &policy.ConfigError{ID: "old"}
	if err := setting.Named(errors.Join(a, b), "new"); err == nil || a.ID != "new" || b.ID != "new" {
		t.Errorf("%v %q %q", err, a.ID, b.ID)
	}
	if setting.Named(nil, "x") != nil {
		t.Error("no error became one")
	}
}

func TestDurationRoundTrip(t *testing.T) {
	for _, d := range []time.Duration{0, 1, -1, time.Second, 90 * time.Minute, math.MaxInt64, math.MinInt64 + 1} {
		data, err := json.Marshal(setting.Duration(d))
		if err != nil {
			t.Fatal(err)
		}
		var back setting.Duration
		if err := json.Unmarshal(data, &back); err != nil || time.Duration(back) != d {
			t.Errorf("%v: %s, %v, %v", d, data, time.Duration(back), err)
		}
	}
	for _, bad := range []string{`5`, `"5"`, `"x"`, `{}`} {
		if err := json.Unmarshal([]byte(bad), new(setting.Duration)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
