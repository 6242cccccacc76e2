package fallback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/fallback"
)

var (
	epoch     = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	errE      = errors.New("E")
	errF      = errors.New("F")
	errParent = errors.New("parent")
	errChild  = fmt.Errorf("child of %w", errParent)
)

func matches(t *testing.T, err error, callerEnded bool, opts ...fallback.Option) bool {
	t.Helper()
	c := fallback.Default()
	c.Apply(opts...)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c.Matches(scope.New(clock.NewManual(epoch), nil), t.Context(), "reports", err, callerEnded)
}

// O-7, and what conformance 68 and 69 need of it: any final error is an occasion,
// one that is skipped is not.
func TestWhichErrorsAFallbackIsFor(t *testing.T) {
	isF := fallback.If(func(err error) bool { return errors.Is(err, errF) })
	for _, tc := range []struct {
		name        string
		err         error
		callerEnded bool
		opts        []fallback.Option
		want        bool
	}{
		{"any error by default", errE, false, nil, true},
		{"no error", nil, false, nil, false},
		{"On matches", errE, false, []fallback.Option{fallback.On(errF, errE)}, true},
		{"On matches what is wrapped", fmt.Errorf("x: %w", errE), false, []fallback.Option{fallback.On(errE)}, true},
		{"On matches what is joined", errors.Join(errF, errE), false, []fallback.Option{fallback.On(errE)}, true},
		{"On does not match", errE, false, []fallback.Option{fallback.On(errF)}, false},
		{"an empty On is none", errE, false, []fallback.Option{fallback.On()}, true},
		{"If matches", errF, false, []fallback.Option{isF}, true},
		{"If does not match", errE, false, []fallback.Option{isF}, false},
		{"On or If", errE, false, []fallback.Option{isF, fallback.On(errE)}, true},
		{"two On add up", errE, false, []fallback.Option{fallback.On(errE), fallback.On(errF)}, true},
		{"the last If wins", errF, false, []fallback.Option{isF, fallback.If(func(error) bool { return false })}, false},
		{"SkipOn", errE, false, []fallback.Option{fallback.SkipOn(errE)}, false},
		{"SkipOn of another", errE, false, []fallback.Option{fallback.SkipOn(errF)}, true},
		{"SkipOn wins over On", errE, false, []fallback.Option{fallback.On(errE), fallback.SkipOn(errE)}, false},
		{"SkipOn wins over If", errF, false, []fallback.Option{isF, fallback.SkipOn(errF)}, false},
		{"child skipped, parent on", errChild, false, []fallback.Option{fallback.On(errParent), fallback.SkipOn(errChild)}, false},
		{"parent on, another child", fmt.Errorf("c: %w", errParent), false, []fallback.Option{fallback.On(errParent), fallback.SkipOn(errChild)}, true},
		{"a deadline that is not the caller's", context.DeadlineExceeded, false, nil, true},
		{"a cancellation that is not the caller's", context.Canceled, false, nil, true},
		{"the caller's end", context.Canceled, true, nil, false},
		{"the caller's end, not skipped", context.Canceled, true, []fallback.Option{fallback.SkipOn(errE)}, false},
		{"the caller's end, asked for by On", context.Canceled, true, []fallback.Option{fallback.On(context.Canceled)}, true},
		{"the caller's end, another On", context.Canceled, true, []fallback.Option{fallback.On(context.DeadlineExceeded)}, false},
		{"the caller's end, asked for by If", context.Canceled, true, []fallback.Option{fallback.If(func(error) bool { return true })}, true},
		{"the caller's end, on and skipped", context.Canceled, true, []fallback.Option{fallback.On(context.Canceled), fallback.SkipOn(context.Canceled)}, false},
	} {
		if got := matches(t, tc.err, tc.callerEnded, tc.opts...); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// O-7.
func TestClosedRegistryIsNeverAnOccasion(t *testing.T) {
	for _, opts := range [][]fallback.Option{
		nil,
		{fallback.On(scope.ErrClosed)},
		{fallback.If(func(error) bool { return true })},
	} {
		for _, err := range []error{scope.ErrClosed, fmt.Errorf("x: %w", scope.ErrClosed), errors.Join(errE, scope.ErrClosed)} {
			if matches(t, err, false, opts...) {
				t.Errorf("%v: %v matches", opts, err)
			}
		}
	}
}

//
func TestPanickingIfIsNoMatchAndIsToldOnce(t *testing.T) {
	var events []policy.Event
	s := scope.New(clock.NewManual(epoch), func(_ context.Context, e policy.Event) { events = append(events, e) })
	var c fallback.Config
	c.Apply(fallback.If(func(error) bool { panic("boom") }))
	if c.Matches(s, t.Context(), "reports", errE, false) {
		t.Error("a panic is taken for a match")
	}
	if len(events) != 1 {
		t.Fatalf("%d events, want 1", len(events))
	}
	if e, ok := events[0].(policy.CallbackPanic); !ok || e.Value != "boom" || e.Policy() != "fallback" || e.ID() != "reports" {
		t.Errorf("got %+v", events[0])
	}
}

// An If that ends the goroutine ends it: there is nothing to hold.
func TestGoexitInIfGoesOn(t *testing.T) {
	s := scope.New(clock.NewManual(epoch), nil)
	c := fallback.Config{If: func(error) bool { runtime.Goexit(); return true }}
	returned := false
	var wg sync.WaitGroup
	wg.Go(func() {
		c.Matches(s, t.Context(), "reports", errE, false)
		returned = true
	})
	wg.Wait()
	if returned {
		t.Error("Matches returned after Goexit")
	}
}

// O-7, and the third line of conformance 69: the fallback's own error comes
// first.
func TestJoinKeepsBothErrorsReachable(t *testing.T) {
	err := fallback.Join(errE, errF)
	if !errors.Is(err, errE) || !errors.Is(err, errF) {
		t.Errorf("%v does not match both", err)
	}
	if got, want := err.Error(), "fallback failed: F (asked because of: E)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var both *fallback.FailedError
	if !errors.As(err, &both) || !slices.Equal(both.Unwrap(), []error{errF, errE}) {
		t.Errorf("got %+v", both)
	}
	asked, failed := &policy.ConfigError{Got: "asked"}, &policy.ConfigError{Got: "failed"}
	var first *policy.ConfigError
	if !errors.As(fallback.Join(asked, failed), &first) || first != failed {
		t.Errorf("errors.As finds %v first, want the fallback's own", first)
	}
}

func TestJoinOfWhatIsJoinedAlreadyChangesNothing(t *testing.T) {
	wrapped := fmt.Errorf("no cached report: %w", errE)
	for _, tc := range []struct{ asked, failed, want error }{
		{errE, errE, errE},
		{errE, wrapped, wrapped},
		{errE, nil, nil},
		{nil, errE, errE},
		{nil, nil, nil},
	} {
		got := fallback.Join(tc.asked, tc.failed)
		if !slices.Equal([]error{got}, []error{tc.want}) { // the very same
			t.Errorf("Join(%v, %v) = %v, want %v", tc.asked, tc.failed, got, tc.want)
		}
	}
}

// One that nobody has filled in is still an error with a text.
func TestTheZeroFailedErrorHasAText(t *testing.T) { // O-7
	var e fallback.FailedError
	if text := e.Error(); !strings.HasPrefix(text, "fallback failed: ") {
		t.Errorf("got %q", text)
	}
	if errors.Is(&e, errE) {
		t.Error("it matches E")
	}
}

func TestApplySkipsNilOptions(t *testing.T) {
	var c fallback.Config
	keys := c.Apply(nil, fallback.On(errE), nil)
	if diff := cmp.Diff([]string{"on"}, keys); diff != "" || !slices.Equal(c.On, []error{errE}) {
		t.Errorf("On %v, keys (-want +got)\n%s", c.On, diff)
	}
}

func TestValidateNamesNilErrors(t *testing.T) {
	var c fallback.Config
	c.Apply(fallback.On(errE, nil), fallback.SkipOn(nil))
	var got []string
	for _, e := range policy.ConfigErrors(c.Validate()) {
		got = append(got, e.Policy+" "+e.Code+" "+e.Path)
	}
	want := []string{"fallback R4C-ATR-003 on[1]", "fallback R4C-ATR-003 skipOn[0]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// G-10.
func TestApplyAppendsWithoutWritingToTheBase(t *testing.T) {
	base := fallback.Config{On: append(make([]error, 0, 8), errE), SkipOn: append(make([]error, 0, 8), errE)}
	one, two := base, base
	keys := one.Apply(fallback.SkipOn(errF), fallback.On(errF), fallback.If(nil), fallback.On(errChild))
	two.Apply(fallback.On(errParent), fallback.SkipOn(errParent))
	if diff := cmp.Diff([]string{"skipOn", "on", "if"}, keys); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	if !slices.Equal(one.On, []error{errE, errF, errChild}) || !slices.Equal(two.On, []error{errE, errParent}) {
		t.Errorf("On: %v and %v", one.On, two.On)
	}
	if !slices.Equal(one.SkipOn, []error{errE, errF}) || !slices.Equal(two.SkipOn, []error{errE, errParent}) {
		t.Errorf("SkipOn: %v and %v", one.SkipOn, two.SkipOn)
	}
	mine := []error{errE}
	opts := []fallback.Option{fallback.On(mine...), fallback.SkipOn(mine...)}
	mine[0] = errF
	var c fallback.Config
	c.Apply(opts...)
	if !slices.Equal(c.On, []error{errE}) || !slices.Equal(c.SkipOn, []error{errE}) {
		t.Error("the options saw the caller's change of its slice")
	}
}

func TestOptionsPrintAsTheyAreWritten(t *testing.T) {
	got := fmt.Sprint([]fallback.Option{fallback.On(errE, errF), fallback.If(nil), fallback.SkipOn(errE)})
	if want := `[on["E" "F"] if(func) skipOn["E"]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLogValues(t *testing.T) {
	var b bytes.Buffer
	e := fallback.Applied{Meta: policy.NewMeta("fallback", "reports", epoch), Err: errE}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "event", e, "error", fallback.Join(errE, errF))
	for _, want := range []string{"event.id=reports", "event.err=E", "error.failed=F", "error.asked=E"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in %s", want, b.String())
		}
	}
}

func TestMatchesDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations differ under the race detector")
	}
	s := scope.New(clock.NewManual(epoch), nil)
	var c fallback.Config
	c.Apply(fallback.On(errF), fallback.SkipOn(errParent), fallback.If(func(err error) bool { return errors.Is(err, errE) }))
	ctx := t.Context()
	if n := testing.AllocsPerRun(200, func() { c.Matches(s, ctx, "reports", errE, false) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

//
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fallback.Default()
		c.Apply(fallback.On(errE), fallback.If(func(error) bool { return false }), fallback.SkipOn(errF))
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		s := scope.New(clock.System(), nil)
		if !c.Matches(s, t.Context(), "reports", errE, false) || c.Matches(s, t.Context(), "reports", errF, false) {
			t.Error("wrong match")
		}
		if !errors.Is(fallback.Join(errE, errF), errE) {
			t.Error("E is lost")
		}
	})
}
