package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// Whoever waits gets a timeout, and what the work did is a fact of its own: the
// expectations are about order and ends, and none is about time. In a bubble, so
// that the bound of the whole program is none for a slow machine.
func TestLab_PrintsOneObjectWithBothEvents(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
	})
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	var got report
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("after the object there is more: %v", err)
	}

	want := report{
		TimeoutOutcome:        "*timeout.Error",
		OriginalDoneAtTimeout: false,
		AbandonedAtTimeout:    1,
		LateOutcome:           "late-success",
		WorkerTerminated:      true,
		Order:                 []string{"entered", "timeout", "release", "late-success"},

		CooperativeTimeoutOutcome: "*timeout.Error",
		CooperativeTerminal:       "cooperatively-cancelled",
		CooperativeSideEffects:    0,

		WrappedTwice: waits{Timeouts: 2, Cancellations: 1, ResultAccepted: false, OriginalOutcome: "context canceled"},
		WrappedViews: waits{Timeouts: 2, Cancellations: 0, ResultAccepted: true, OriginalOutcome: "late-success"},

		Retry: []retryRow{
			{"two transient failures, then success", 3, 3, "ok"},
			{"transient failures without end", 3, 3, "failed"},
			{"a permanent failure at once", 3, 1, "failed"},
		},
	}
	want.CheckBehindEffect.Terminal = "cooperatively-cancelled"
	want.CheckBehindEffect.SideEffects = 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The names of the keys are what other programs read.
func TestLab_KeysOfTheReport(t *testing.T) {
	text, err := json.Marshal(report{})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"timeoutOutcome", "originalDoneAtTimeout", "lateOutcome", "workerTerminated",
		"cooperativeTimeoutOutcome", "cooperativeTerminal", "cooperativeSideEffects",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
}
