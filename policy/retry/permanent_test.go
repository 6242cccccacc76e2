package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

var errSentinel = retry.Permanent(errors.New("unknown report"))

func TestField_RE12_PermanentStopsAtTheEdge(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		is   error
	}{
		{"marked", retry.Permanent(errBoom), errBoom},
		{"wrapped", fmt.Errorf("query: %w", retry.Permanent(errBoom)), errBoom},
		{"joined", errors.Join(errOther, retry.Permanent(errBoom)), errBoom},
		{"twice", retry.Permanent(retry.Permanent(errBoom)), errBoom},
		{"sentinel", errSentinel, errSentinel},
		{"wrapped sentinel", fmt.Errorf("query: %w", errSentinel), errSentinel},
	} {
		for _, innerAttempts := range []int{1, 3} {
			clk := clock.NewManual(start)
			inner, outer := on(t, clk, retry.MaxAttempts(innerAttempts)), on(t, clk, retry.MaxAttempts(3))
			calls := 0
			var between error
			err := outer.Do(t.Context(), func(ctx context.Context) error {
				between = inner.Do(ctx, func(context.Context) error { calls++; return tc.err })
				return between
			})
			if calls != 3 {
				t.Errorf("%s, inner %d: %d calls, want one for each outer attempt", tc.name, innerAttempts, calls)
			}
			for where, err := range map[string]error{"between": between, "at the end": err} {
				if !errors.Is(err, tc.is) || retry.Marked(err) {
					t.Errorf("%s, inner %d, %s: %v: matches %v, marked %v", tc.name, innerAttempts, where, err, errors.Is(err, tc.is), retry.Marked(err))
				}
			}
			if between.Error() != tc.err.Error() {
				t.Errorf("%s: the text became %q", tc.name, between)
			}
			if errors.As(between, new(*retry.Error)) {
				t.Errorf("%s: got %v, want the function's own error", tc.name, between)
			}
		}
	}
	if !errors.Is(fmt.Errorf("again: %w", retry.Permanent(errBoom)), errBoom) {
		t.Error("the mark hides what it marks")
	}
}

func TestPermanentOfNilIsNil(t *testing.T) {
	if err := retry.Permanent(nil); err != nil {
		t.Errorf("got %v", err)
	}
	if err := on(t, clock.NewManual(start)).Do(t.Context(), func(context.Context) error { return retry.Permanent(nil) }); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAMarkInALastErrorIsTakenOff(t *testing.T) {
	p := on(t, clock.NewManual(start))
	ctx, cancel := context.WithCancel(t.Context())
	err := p.Do(ctx, func(context.Context) error { cancel(); return retry.Permanent(errBoom) })
	wantIs(t, err, context.Canceled, errBoom)
	if retry.Marked(err) {
		t.Errorf("%v is still marked", err)
	}
	again := retry.Permanent(err) // whoever marks it anew means it
	if !retry.Marked(again) || !retry.Marked(fmt.Errorf("outer: %w", again)) {
		t.Error("a new mark is not seen")
	}
}

func TestPermanentOnALaterAttempt(t *testing.T) {
	clk := clock.NewManual(start)
	f := &script{clk: clk, ends: []error{errOther, retry.Permanent(errBoom)}}
	err := on(t, clk, retry.MaxAttempts(5)).Do(t.Context(), f.call)
	if len(f.at) != 2 || !errors.Is(err, errBoom) || errors.As(err, new(*retry.Error)) {
		t.Errorf("%d calls, %#v; want 2 and the error itself", len(f.at), err)
	}
}
