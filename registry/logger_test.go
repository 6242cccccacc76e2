package registry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// logged makes a registry that logs from the level on; its lines come without
// the time.
func logged(t *testing.T, level slog.Level) (*registry.Registry, *clock.Manual, func() []string) {
	t.Helper()
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	r, m := newRegistry(t, registry.WithLogger(log))
	return r, m, func() []string {
		defer b.Reset()
		return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
}

func TestLogger_StateChangesAndRefusals(t *testing.T) {
	r, m, lines := logged(t, slog.LevelDebug)
	p := built(t, pipeline.New[int](r, "p").CircuitBreaker(circuitbreaker.CountWindow(1), circuitbreaker.MinCalls(1)))
	_, _ = p.Execute(t.Context(), fail)
	for range 1000 { // an open breaker does not flood
		_, _ = p.Execute(t.Context(), succeed)
	}
	m.Advance(2 * time.Second)
	_, _ = p.Execute(t.Context(), succeed)
	m.Advance(3 * time.Second)
	_, _ = p.Execute(t.Context(), succeed)
	want := []string{
		`level=WARN msg="circuitbreaker state changed" policy=circuitbreaker id=p from=closed to=open`,
		`level=DEBUG msg="circuitbreaker rejected" policy=circuitbreaker id=p`,
		`level=DEBUG msg="circuitbreaker rejected" policy=circuitbreaker id=p more=999`,
		`level=INFO msg="circuitbreaker state changed" policy=circuitbreaker id=p from=open to=half-open`,
		`level=INFO msg="circuitbreaker state changed" policy=circuitbreaker id=p from=half-open to=closed`,
	}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLogger_TimeoutsRetriesAndLateOutcomes(t *testing.T) {
	r, m, lines := logged(t, slog.LevelDebug)
	p := built(t, pipeline.New[int](r, "p").Retry(retry.MaxAttempts(2), retry.Constant(time.Second)).Timeout(2*time.Second).
		Fallback(func(context.Context, error) (int, error) { return 0, nil }))
	_, _ = p.Execute(t.Context(), func(context.Context) (int, error) {
		m.Advance(5 * time.Second) // ignores its context
		return 1, nil
	})
	late := `level=WARN msg="pipeline late success" policy=pipeline id=p attempt=`
	timeout := `level=WARN msg="timeout exceeded" policy=timeout id=p limit=2s workDone=true`
	want := []string{
		late + "1 late=3s", timeout,
		`level=DEBUG msg="retry retrying" policy=retry id=p attempt=1 delay=1s err="timeout \"p\": exceeded 2s"`,
		late + "2 late=3s", timeout,
		`level=WARN msg="retry gave up" policy=retry id=p attempts=2 reason="retry: attempts exhausted" err="timeout \"p\": exceeded 2s"`,
	}
	got := lines()
	if len(got) != 7 || !strings.HasPrefix(got[6], `level=DEBUG msg="fallback applied" policy=fallback id=p err=`) {
		t.Fatalf("%d lines: %s", len(got), strings.Join(got, "\n"))
	}
	// Which of the two an attempt tells first is for package pipeline to prove.
	slices.Sort(got[0:2])
	slices.Sort(got[3:5])
	if diff := cmp.Diff(want, got[:6]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLogger_WritesWhatIsEnabledOnly(t *testing.T) {
	r, _, lines := logged(t, slog.LevelWarn)
	p := built(t, pipeline.New[int](r, "p").RateLimit(ratelimit.Per(1, time.Hour)).Bulkhead(bulkhead.MaxConcurrent(1)))
	for range 5 {
		_, _ = p.Execute(t.Context(), succeed)
	}
	if got := lines(); len(got) != 1 || got[0] != "" {
		t.Errorf("%q", got)
	}
}

func TestLogger_ABurstEndsWithItsSecondAlsoIfTheClockGoesBack(t *testing.T) {
	r, m, lines := logged(t, slog.LevelDebug)
	p := built(t, pipeline.New[int](r, "p").RateLimit(ratelimit.Per(1, 1000*time.Hour)))
	q := built(t, pipeline.New[int](r, "q").RateLimit(ratelimit.Per(1, 1000*time.Hour)))
	refuse := func(p *pipeline.Pipeline[int], n int) {
		for range n {
			_, _ = p.Execute(t.Context(), succeed)
		}
	}
	refuse(p, 11)
	refuse(q, 2) // has a burst of its own
	m.Advance(999 * time.Millisecond)
	refuse(p, 1)
	m.Advance(time.Millisecond)
	refuse(p, 2)
	want := []string{
		`level=DEBUG msg="ratelimit limited" policy=ratelimit id=p`,
		`level=DEBUG msg="ratelimit limited" policy=ratelimit id=q`,
		`level=DEBUG msg="ratelimit limited" policy=ratelimit id=p more=10`,
	}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestListeners_X3_AllHearAllEventsAlsoIfOnePanics(t *testing.T) {
	var a, b recorder
	r, _ := newRegistry(t, registry.WithListener(a.listen),
		registry.WithListener(func(_ context.Context, e policy.Event) {
			if _, ok := e.(policy.CallbackPanic); !ok {
				panic("listener")
			}
		}),
		registry.WithListener(b.listen))
	p := built(t, pipeline.New[int](r, "p").RateLimit(ratelimit.Per(1, time.Hour)))
	_, _ = p.Execute(t.Context(), succeed)
	if _, err := p.Execute(t.Context(), succeed); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("the caller's result: %v", err)
	}
	for name, heard := range map[string][]policy.Event{"first": a.all(), "last": b.all()} {
		if len(heard) != 2 {
			t.Fatalf("%s: %v", name, heard)
		}
		if e, ok := heard[0].(ratelimit.Limited); !ok || e.ID() != "p" || !e.At().Equal(start) {
			t.Errorf("%s: %v", name, heard[0])
		}
		if e, ok := heard[1].(policy.CallbackPanic); !ok || e.Value != "listener" || e.Policy() != "ratelimit" || len(e.Stack) == 0 {
			t.Errorf("%s: %v", name, heard[1])
		}
	}
}
