package scope_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
)

type happened struct{ policy.Meta }

func TestPublishGivesTheContextAndTheEvent(t *testing.T) {
	type key struct{}
	var got []policy.Event
	m := clock.NewManual(start)
	s := scope.New(m, func(ctx context.Context, e policy.Event) {
		if ctx == nil || len(got) == 0 && ctx.Value(key{}) != "v" {
			t.Errorf("context %v", ctx)
		}
		got = append(got, e)
	})
	m.Advance(time.Second)
	e := happened{s.Meta("retry", "reports")}
	s.Publish(context.WithValue(t.Context(), key{}, "v"), e)
	s.Publish(t.Context(), e)
	if !s.Listening() || len(got) != 2 || got[0] != e || !e.At().Equal(start.Add(time.Second)) || e.Policy() != "retry" || e.ID() != "reports" {
		t.Errorf("got %v", got)
	}
	deaf := scope.New(m, nil)
	deaf.Publish(t.Context(), e)
	if deaf.Listening() {
		t.Error("listening without a listener")
	}
}

func TestPublishContainsAPanickingListener(t *testing.T) { // X-3, TO-16
	for name, tc := range map[string]struct {
		panics int // how many times
		value  any
		seen   []string // how often each kind of event was begun
	}{
		"once":         {1, "boom", []string{"happened", "panic"}},
		"every time":   {2, errors.New("boom"), []string{"happened", "panic"}},
		"with nothing": {1, nil, []string{"happened", "panic"}},
	} {
		var seen []string
		var reported policy.CallbackPanic
		s := scope.New(nil, func(_ context.Context, e policy.Event) {
			switch e := e.(type) {
			case happened:
				seen = append(seen, "happened")
			case policy.CallbackPanic:
				seen = append(seen, "panic")
				reported = e
			}
			if len(seen) <= tc.panics {
				panic(tc.value)
			}
		})
		s.Publish(t.Context(), happened{s.Meta("bulkhead", "x")})
		if len(seen) != len(tc.seen) || seen[1] != tc.seen[1] {
			t.Errorf("%s: seen %v, want %v", name, seen, tc.seen)
		}
		if reported.Policy() != "bulkhead" || reported.ID() != "x" || len(reported.Stack) == 0 {
			t.Errorf("%s: reported %v", name, reported)
		}
		if tc.value != nil && reported.Value != tc.value || reported.Value == nil {
			t.Errorf("%s: value %v", name, reported.Value)
		}
	}
}

func TestGuardContainsAPanic(t *testing.T) {
	var events []policy.Event
	s := scope.New(nil, func(_ context.Context, e policy.Event) { events = append(events, e) })
	if !s.Guard(t.Context(), "retry", "x", func() {}) || len(events) != 0 {
		t.Error("a function that returns is no panic")
	}
	if s.Guard(t.Context(), "retry", "x", func() { panic("boom") }) {
		t.Error("a panic is no return")
	}
	e, ok := events[0].(policy.CallbackPanic)
	if !ok || len(events) != 1 || e.Value != "boom" || e.Policy() != "retry" || e.ID() != "x" || len(e.Stack) == 0 {
		t.Errorf("events %v", events)
	}
	if scope.New(nil, nil).Guard(t.Context(), "retry", "x", func() { panic("boom") }) {
		t.Error("without a listener")
	}
}

// Goexit ends the goroutine, by the callback's own wish, and runs its defers; it
// is no panic.
func TestGoexitOfACallbackGoesOn(t *testing.T) {
	for name, call := range map[string]func(s *scope.Scope){
		"Guard":   func(s *scope.Scope) { s.Guard(t.Context(), "retry", "x", runtime.Goexit) },
		"Publish": func(s *scope.Scope) { s.Publish(t.Context(), happened{s.Meta("retry", "x")}) },
	} {
		events, left := 0, make(chan bool)
		s := scope.New(nil, func(context.Context, policy.Event) { events++; runtime.Goexit() })
		go func() {
			defer close(left)
			call(s)
			t.Errorf("%s: it has gone on", name)
		}()
		<-left
		if want := map[string]int{"Guard": 0, "Publish": 1}[name]; events != want {
			t.Errorf("%s: %d events, want %d", name, events, want)
		}
	}
}

type uncomparable []error

func (uncomparable) Error() string { return "uncomparable" }

type endedBy struct {
	context.Context
	err error
}

func (c endedBy) Err() error { return c.err }

func TestEndedMatchesErrorAndCause(t *testing.T) { // T-10, TO-03
	own := errors.New("own reason")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	caused, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(own)
	late, cancelLate := context.WithDeadlineCause(t.Context(), start.AddDate(-100, 0, 0), own)
	defer cancelLate()
	for name, tc := range map[string]struct {
		ctx  context.Context
		same error // Ended returns it itself
		text string
		is   []error
	}{
		"fickle":       {ctx: t.Context(), same: context.Canceled, text: "context canceled", is: []error{context.Canceled}}, // it had said that it is done
		"cancelled":    {ctx: cancelled, same: context.Canceled, text: "context canceled", is: []error{context.Canceled}},
		"caused":       {ctx: caused, text: "context canceled: own reason", is: []error{context.Canceled, own}},
		"deadline":     {ctx: late, text: "context deadline exceeded: own reason", is: []error{context.DeadlineExceeded, own}},
		"foreign":      {ctx: endedBy{t.Context(), own}, same: own, text: "own reason", is: []error{own}},
		"uncomparable": {ctx: endedBy{t.Context(), uncomparable{own}}, text: "uncomparable: uncomparable"},
	} {
		err := scope.Ended(tc.ctx)
		if err == nil || err.Error() != tc.text || tc.same != nil && err != tc.same { //nolint:errorlint // that very value
			t.Errorf("%s: %v, want %s", name, err, tc.text)
		}
		for _, target := range tc.is {
			if !errors.Is(err, target) {
				t.Errorf("%s: %v does not match %v", name, err, target)
			}
		}
		if errors.Is(err, context.DeadlineExceeded) && name != "deadline" {
			t.Errorf("%s: %v matches a deadline", name, err)
		}
	}
}
