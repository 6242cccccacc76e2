package policy_test

import (
	"errors"
	"fmt"

	"resilience4cata.dev/go/policy"
)

// A refusal proves that nothing happened, so another place may be asked.
func ExampleNotStarted() {
	refusal := fmt.Errorf("calling the primary: %w", &fakeError{started: false})
	fmt.Println(policy.NotStarted(refusal))
	fmt.Println(policy.NotStarted(errors.New("connection reset")))
	// Output:
	// true
	// false
}

// All mistakes of a configuration come out at once; list them one by one.
func ExampleConfigErrors() {
	err := errors.Join(
		&policy.ConfigError{Policy: "timeout", ID: "reports", Path: "value", Got: "-1s is negative", Hint: "give a duration above 0", Code: "R4C-ATR-002"},
		&policy.ConfigError{Policy: "bulkhead", ID: "reports", Path: "maxConcurrent", Got: "0", Hint: "give at least 1", Code: "R4C-ATR-003"},
	)
	for _, e := range policy.ConfigErrors(err) {
		fmt.Println(e.Code, e.Path)
	}
	// Output:
	// R4C-ATR-002 value
	// R4C-ATR-003 maxConcurrent
}
