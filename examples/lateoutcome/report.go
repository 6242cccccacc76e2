package main

import (
	"errors"
	"fmt"

	"resilience4cata.dev/go/policy/timeout"
)

// report keeps apart what a single "success" would mix up: what the caller got,
// whether the work had ended then, how it ended, and what it left behind.
type report struct {
	TimeoutOutcome        string   `json:"timeoutOutcome"`        // what the caller got
	OriginalDoneAtTimeout bool     `json:"originalDoneAtTimeout"` // had the work ended when the caller got it?
	AbandonedAtTimeout    int64    `json:"abandonedAtTimeout"`    // the gauge in the snapshot at that moment
	LateOutcome           string   `json:"lateOutcome"`           // how the work ended
	WorkerTerminated      bool     `json:"workerTerminated"`      // the worker's goroutine has left the task
	Order                 []string `json:"order"`                 // of the events

	CooperativeTimeoutOutcome string `json:"cooperativeTimeoutOutcome"`
	CooperativeTerminal       string `json:"cooperativeTerminal"`
	CooperativeSideEffects    int64  `json:"cooperativeSideEffects"`

	CheckBehindEffect struct {
		Terminal    string `json:"cooperativeTerminal"`
		SideEffects int64  `json:"cooperativeSideEffects"`
	} `json:"checkBehindEffect"`

	WrappedTwice waits `json:"wrappedTwice"` // one stage behind two timeouts
	WrappedViews waits `json:"wrappedViews"` // the same with a view for each

	Retry []retryRow `json:"retry"`
}

// waits is what came of one task that two callers waited for.
type waits struct {
	Timeouts        int    `json:"timeouts"`
	Cancellations   int64  `json:"cancellations"`   // how often the task was told to stop
	ResultAccepted  bool   `json:"resultAccepted"`  // whether the task's later result found a pending future
	OriginalOutcome string `json:"originalOutcome"` // of the future that the two share
}

// retryRow is a line of the table of retries. Limit and attempts count the first
// call.
type retryRow struct {
	Input    string `json:"input"`
	Limit    int    `json:"limit"`
	Attempts int    `json:"attempts"`
	Outcome  string `json:"outcome"`
}

// outcome names the result of a call.
func outcome(v string, err error) string {
	var exceeded *timeout.Error
	switch {
	case err == nil:
		return v
	case errors.As(err, &exceeded):
		return fmt.Sprintf("%T", exceeded)
	default:
		return err.Error()
	}
}
