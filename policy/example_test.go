package policy_test

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// A call that was entered may have had its effect, whatever came of it.
func ExampleStarted() {
	fmt.Println(policy.Started(fmt.Errorf("saving: %w", &fakeError{started: true})))
	fmt.Println(policy.Started(&fakeError{started: false}))
	// Output:
	// true
	// false
}

// Every event says which policy and which instance it is of; a type switch tells the rest.
func ExampleListener() {
	var listen policy.Listener = func(_ context.Context, e policy.Event) {
		fmt.Println(e.Policy(), e.ID(), e.At().Format(time.TimeOnly))
		if p, ok := e.(policy.CallbackPanic); ok {
			fmt.Println("a callback panicked:", p.Value)
		}
	}
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	listen(context.Background(), policy.CallbackPanic{Meta: policy.NewMeta("retry", "reports", at), Value: "boom"})
	// Output:
	// retry reports 12:00:00
	// a callback panicked: boom
}
