package policy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy"
)

type fakeError struct {
	started bool
	cause   error
}

func (e *fakeError) Error() string  { return "fake" }
func (e *fakeError) Policy() string { return "fake" }
func (e *fakeError) ID() string     { return "id" }
func (e *fakeError) Started() bool  { return e.started }
func (e *fakeError) Unwrap() error  { return e.cause }

func TestNotStartedWalksTheWholeTree(t *testing.T) {
	refused, entered := &fakeError{}, &fakeError{started: true}
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"foreign", errors.New("x"), false},
		{"refused", refused, true},
		{"entered", entered, false},
		{"wrapped refusal", fmt.Errorf("a: %w", refused), true},
		{"joined with a foreign one", errors.Join(errors.New("x"), refused), true},
		{"joined, one entered", errors.Join(refused, entered), false},
		{"refused, but its cause entered", &fakeError{cause: entered}, false},
		{"entered around a refusal", &fakeError{started: true, cause: refused}, false},
		{"deep", fmt.Errorf("a: %w", errors.Join(refused, fmt.Errorf("b: %w", errors.Join(entered)))), false},
	} {
		if got := policy.NotStarted(tc.err); got != tc.want {
			t.Errorf("%s: NotStarted = %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestConfigErrorsFindsAllThatWereJoined(t *testing.T) {
	a, b, c := &policy.ConfigError{Path: "a"}, &policy.ConfigError{Path: "b"}, &policy.ConfigError{Path: "c"}
	err := fmt.Errorf("start-up: %w", errors.Join(a, errors.Join(errors.New("other"), b), fmt.Errorf("x: %w", c)))
	if diff := cmp.Diff([]*policy.ConfigError{a, b, c}, policy.ConfigErrors(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := policy.ConfigErrors(errors.New("none")); got != nil {
		t.Errorf("ConfigErrors of a foreign error = %v, want nil", got)
	}
	if got := policy.ConfigErrors(nil); got != nil {
		t.Errorf("ConfigErrors(nil) = %v, want nil", got)
	}
}

func TestConfigErrorText(t *testing.T) {
	for _, tc := range []struct {
		err  policy.ConfigError
		want string
	}{
		{
			policy.ConfigError{
				Code: "R4C-REG-002", File: "resilience.yaml", Line: 8, Col: 5, ID: "reports", Policy: "timeout",
				Path: `instances."reports"`, Got: `unknown policy "tiemout"`, Hint: `did you mean "timeout"?`,
			},
			`resilience.yaml:8:5: instances."reports": unknown policy "tiemout" (did you mean "timeout"?) [R4C-REG-002]`,
		},
		{
			policy.ConfigError{Policy: "timeout", ID: "reports", Path: "value", Got: "-1s is negative", Hint: "give a duration above 0", Code: "R4C-ATR-002"},
			`timeout "reports": value: -1s is negative (give a duration above 0) [R4C-ATR-002]`,
		},
		{policy.ConfigError{ID: " x", Got: "the id begins with a space"}, `" x": the id begins with a space`},
		{policy.ConfigError{File: "RESILIENCE4CATA_SET", Path: "a", Got: "b"}, `RESILIENCE4CATA_SET: a: b`},
		{policy.ConfigError{File: "f", Line: 3, Got: "b"}, `f:3: b`},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestMetaAnswersWhatItWasMadeWith(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var e policy.Event = policy.CallbackPanic{Meta: policy.NewMeta("retry", "reports", at), Value: "boom"}
	if e.Policy() != "retry" || e.ID() != "reports" || !e.At().Equal(at) {
		t.Errorf("got %q %q %v", e.Policy(), e.ID(), e.At())
	}
}
