package registry_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// journal is a slog handler that keeps what it is given.
type journal struct {
	level slog.Leveler

	mu      sync.Mutex
	entries []entry
}

type entry struct {
	ctx   context.Context
	level slog.Level
	text  string
	attrs map[string]string
}

func (j *journal) Enabled(_ context.Context, l slog.Level) bool { return l >= j.level.Level() }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler           { return j }
func (j *journal) WithGroup(string) slog.Handler                { return j }

func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	e := entry{ctx, r.Level, r.Message, map[string]string{}}
	r.Attrs(func(a slog.Attr) bool {
		e.attrs[a.Key] = a.Value.String()
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	return nil
}

func (j *journal) all() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]entry(nil), j.entries...)
}

// levels is which text was written at which levels, in the order in which they
// came.
func (j *journal) levels() map[string][]slog.Level {
	m := map[string][]slog.Level{}
	for _, e := range j.all() {
		m[e.text] = append(m[e.text], e.level)
	}
	return m
}

type requestKey struct{}

func TestLogger_EveryEventAtItsLevelWithTheCallsContext(t *testing.T) {
	j := &journal{level: slog.LevelDebug}
	r, m := newRegistry(t, registry.WithLogger(slog.New(j)))
	ctx := context.WithValue(t.Context(), requestKey{}, "r-1")
	call := func(p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) { _, _ = p.Execute(ctx, fn) }
	late := func(v int, err error, value any) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			m.Advance(3 * time.Second)
			if value != nil {
				panic(value)
			}
			return v, err
		}
	}

	b := built(t, pipeline.New[int](r, "breaker").CircuitBreaker(circuitbreaker.CountWindow(1), circuitbreaker.MinCalls(1)))
	call(b, fail)
	call(b, succeed)
	m.Advance(5 * time.Second)
	call(b, succeed)
	l := built(t, pipeline.New[int](r, "limiter").RateLimit(ratelimit.Per(1, time.Hour)))
	call(l, succeed)
	call(l, succeed)
	f := built(t, pipeline.New[int](r, "bulkhead").Bulkhead(bulkhead.MaxConcurrent(1)))
	slots, _ := r.Bulkhead("bulkhead")
	slots.TryAcquire()
	call(f, succeed)
	call(built(t, pipeline.New[int](r, "retry").Retry(retry.MaxAttempts(2))), fail)
	call(built(t, pipeline.New[int](r, "fallback").Fallback(func(context.Context, error) (int, error) { return 0, nil }, fallback.On(errBoom))), fail)
	call(built(t, pipeline.New[int](r, "hook").CircuitBreaker().FailIf(func(int, error) bool { panic("hook") })), succeed)
	p := built(t, pipeline.New[int](r, "timeout").Timeout(2*time.Second))
	call(p, late(1, nil, nil))
	for _, fn := range []func(context.Context) (int, error){late(0, errBoom, nil), late(0, nil, "late")} {
		<-p.ExecuteAsync(ctx, fn).Work().Done()
	}

	const debug, info, warn, fault = slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError
	want := map[string][]slog.Level{
		"circuitbreaker state changed":  {warn, info, info}, // opens, is half-open, closes
		"circuitbreaker rejected":       {debug},
		"ratelimit limited":             {debug},
		"bulkhead full":                 {debug},
		"retry retrying":                {debug},
		"retry gave up":                 {warn},
		"fallback applied":              {debug},
		"circuitbreaker callback panic": {fault},
		"timeout exceeded":              {warn, warn, warn},
		"pipeline late success":         {warn},
		"pipeline late failure":         {warn},
		"pipeline late panic":           {warn},
	}
	if diff := cmp.Diff(want, j.levels()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, e := range j.all() {
		if e.ctx.Value(requestKey{}) != "r-1" {
			t.Errorf("%s: not with the call's context", e.text)
		}
		if e.attrs["id"] == "" || e.attrs["policy"] == "" {
			t.Errorf("%s: %v", e.text, e.attrs)
		}
	}
}

// A rush on one instance is one line and then a number, however many goroutines
// make it; nothing is lost, and instances do not share it, nor kinds of policy.
func TestLogger_ARushOfRefusalsIsOneLineAndThenACount(t *testing.T) {
	j := &journal{level: slog.LevelDebug}
	r, m := newRegistry(t, registry.WithLogger(slog.New(j)))
	open := built(t, pipeline.New[int](r, "x").CircuitBreaker())
	breaker, _ := r.CircuitBreaker("x")
	breaker.ForceOpen()
	full := built(t, pipeline.New[int](r, "y").Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Name("x")))
	slots, _ := r.Bulkhead("x")
	slots.TryAcquire()

	const callers, each = 8, 500
	rush := func() {
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range each {
					_, _ = open.Execute(t.Context(), succeed)
					_, _ = full.Execute(t.Context(), succeed)
				}
			})
		}
		wg.Wait()
	}
	written := func() (lines []string) {
		for _, e := range j.all() {
			if e.level == slog.LevelDebug {
				lines = append(lines, e.text+" "+e.attrs["more"])
			}
		}
		return lines
	}
	sorted := cmp.Transformer("sort", func(lines []string) map[string]int {
		m := map[string]int{}
		for _, l := range lines {
			m[l]++
		}
		return m
	})
	rush()
	want := []string{"circuitbreaker rejected ", "bulkhead full "}
	if diff := cmp.Diff(want, written(), sorted); diff != "" {
		t.Errorf("the first of a burst (-want +got)\n%s", diff)
	}
	m.Advance(time.Second - 1)
	rush() // the same burst
	if diff := cmp.Diff(want, written(), sorted); diff != "" {
		t.Errorf("within the second (-want +got)\n%s", diff)
	}
	m.Advance(1)
	rush() // the next one: its first tells how many were not written
	want = append(want, "circuitbreaker rejected 7999", "bulkhead full 7999")
	if diff := cmp.Diff(want, written(), sorted); diff != "" {
		t.Errorf("after the second (-want +got)\n%s", diff)
	}
	// A burst that goes on is one line a second: a minute of it is sixty.
	for range 60 {
		m.Advance(time.Second)
		_, _ = open.Execute(t.Context(), succeed)
		_, _ = open.Execute(t.Context(), succeed)
	}
	if got := j.levels()["circuitbreaker rejected"]; len(got) != 2+60 {
		t.Errorf("%d lines", len(got))
	}
}

// What changes is told each time, also in the midst of refusals.
func TestLogger_ChangesOfStateAreNotHeldBack(t *testing.T) {
	j := &journal{level: slog.LevelInfo}
	r, _ := newRegistry(t, registry.WithLogger(slog.New(j)))
	p := built(t, pipeline.New[int](r, "x").CircuitBreaker(circuitbreaker.CountWindow(1), circuitbreaker.MinCalls(1)))
	breaker, _ := r.CircuitBreaker("x")
	for range 100 {
		_, _ = p.Execute(t.Context(), fail)
		_, _ = p.Execute(t.Context(), succeed)
		breaker.Reset()
	}
	if got := j.levels(); len(got) != 1 || len(got["circuitbreaker state changed"]) != 200 {
		t.Errorf("%v", got)
	}
}

// Refusals that nobody wanted to read are not held against those that follow.
func TestLogger_WhatIsNotEnabledIsNotCounted(t *testing.T) {
	var level slog.LevelVar
	level.Set(slog.LevelInfo)
	j := &journal{level: &level}
	r, _ := newRegistry(t, registry.WithLogger(slog.New(j)))
	p := built(t, pipeline.New[int](r, "x").RateLimit(ratelimit.Per(1, time.Hour)))
	for range 10 {
		_, _ = p.Execute(t.Context(), succeed)
	}
	level.Set(slog.LevelDebug)
	_, _ = p.Execute(t.Context(), succeed)
	got := j.all()
	if len(got) != 1 || got[0].attrs["more"] != "" {
		t.Errorf("%+v", got)
	}
}

// panicking is a handler that fails its program.
type panicking struct{ *journal }

func (panicking) Handle(context.Context, slog.Record) error { panic("handler") }

func TestLogger_X3_AHandlerThatPanicsIsContainedAndToldOnce(t *testing.T) {
	var others recorder
	r, _ := newRegistry(t, registry.WithLogger(slog.New(panicking{&journal{level: slog.LevelDebug}})), registry.WithListener(others.listen))
	p := built(t, pipeline.New[int](r, "x").Retry(retry.MaxAttempts(2)))
	calls := 0
	v, err := p.Execute(t.Context(), func(context.Context) (int, error) {
		if calls++; calls < 2 {
			return 0, errBoom
		}
		return 7, nil
	})
	if v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	var reports int
	for _, e := range others.all() {
		if e, ok := e.(policy.CallbackPanic); ok && e.Value == "handler" {
			reports++
		}
	}
	if reports != 1 || len(others.all()) != 2 {
		t.Errorf("%v", others.all())
	}
}

// A logger that writes less than refusals makes them no dearer than a listener
// that does nothing.
func TestLogger_ALineThatIsNotWrittenIsNotMade(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	cost := func(o registry.Option) float64 {
		r, err := registry.New(registry.WithClock(clock.NewManual(start)), o)
		if err != nil {
			t.Fatal(err)
		}
		p := built(t, pipeline.New[int](r, "x").RateLimit(ratelimit.Per(1, time.Hour)))
		ctx := t.Context()
		return testing.AllocsPerRun(100, func() { _, _ = p.Execute(ctx, succeed) })
	}
	listener := cost(registry.WithListener(func(context.Context, policy.Event) {}))
	logger := cost(registry.WithLogger(slog.New(&journal{level: slog.LevelWarn})))
	if logger != listener {
		t.Errorf("%v allocations, with a listener %v", logger, listener)
	}
}
