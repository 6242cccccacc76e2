package config_test

import (
	"testing"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// G-4: a share is often written as a percentage.
func TestSharesThatAreWrittenAsPercent_G4(t *testing.T) {
	for value, want := range map[string]string{
		"{retry: {jitter: 25%}}":                "did you mean 0.25?",
		"{retry: {jitter: 20}}":                 "give a value from 0 to 1; did you mean 0.2?",
		"{circuitBreaker: {failureRatio: 50}}":  "give a value above 0, at most 1; did you mean 0.5?",
		"{circuitBreaker: {failureRatio: 200}}": "give a value above 0, at most 1",
		"{retry: {jitter: x%}}":                 "write decimal digits, such as 0.5",
	} {
		_, err := config.Parse("f", []byte("instances: {a: "+value+"}"))
		mistakes := policy.ConfigErrors(err)
		if len(mistakes) != 1 || mistakes[0].Hint != want {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}
