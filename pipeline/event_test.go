package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// eventCase makes calls, all with ctx, that lead to events.
type eventCase struct {
	want   string // the types, in the order in which they come
	forms  []form
	layers layers
	run    func(a *arena, ctx context.Context, p *pipeline.Pipeline[int])
}

// calls is one call after the other, each with one attempt's plan; errors do not
// matter.
func calls(steps ...step) func(*arena, context.Context, *pipeline.Pipeline[int]) {
	return func(a *arena, ctx context.Context, p *pipeline.Pipeline[int]) {
		for _, s := range steps {
			_, _ = a.call(ctx, p, a.plan(s).run)
		}
	}
}

// late is a call whose work ends after its deadline.
func late(last step) func(*arena, context.Context, *pipeline.Pipeline[int]) {
	return func(a *arena, ctx context.Context, p *pipeline.Pipeline[int]) {
		last.takes, last.deaf = 5*time.Second, true
		_, _ = a.call(ctx, p, a.plan(last).run)
		a.advance(5 * time.Second)
	}
}

func slotTaken(then func(*arena, context.Context, *pipeline.Pipeline[int])) func(*arena, context.Context, *pipeline.Pipeline[int]) {
	return func(a *arena, ctx context.Context, p *pipeline.Pipeline[int]) {
		b, _ := a.reg.Bulkhead("x")
		b.TryAcquire()
		defer b.Release()
		then(a, ctx, p)
	}
}

var (
	good = step{v: 7}
	bad  = step{err: errBoom}
	slow = step{takes: time.Hour}
)

// callbackPanics is a panic of each function that the user may give.
func callbackPanic(f layers, run func(*arena, context.Context, *pipeline.Pipeline[int])) eventCase {
	return eventCase{want: "policy.CallbackPanic", forms: forms, layers: f, run: run}
}

type builder = *pipeline.Builder[int]

// watched is a timeout whose first one opens the breaker.
func watched(b builder) builder { return twoSeconds(b).CircuitBreaker(oneSample()...) }

var eventCases = []eventCase{
	{
		"circuitbreaker.StateChanged circuitbreaker.Rejected circuitbreaker.StateChanged circuitbreaker.StateChanged", forms, broken(),
		func(a *arena, ctx context.Context, p *pipeline.Pipeline[int]) {
			calls(bad, good)(a, ctx, p)
			a.advance(5 * time.Second)
			calls(good)(a, ctx, p)
		},
	},
	{"circuitbreaker.StateChanged timeout.Exceeded pipeline.LateSuccess", forms, watched, late(good)},
	{"ratelimit.Limited", forms, func(b builder) builder { return b.RateLimit(ratelimit.Per(1, time.Hour)) }, calls(good, good)},
	{
		"ratelimit.Limited", forms, func(b builder) builder {
			return b.RateLimit(ratelimit.Per(1, time.Hour), ratelimit.MaxWait(2*time.Hour))
		},
		func(a *arena, ctx context.Context, p *pipeline.Pipeline[int]) { // told by somebody else's goroutine
			l, _ := a.reg.RateLimiter("x")
			l.TryAcquire()
			r := a.start(ctx, p, returns(7, nil))
			if err := l.SetRate(1, 10*time.Hour, 1); err != nil {
				a.Error(err)
			}
			_, err := r.end()
			a.is(err, ratelimit.ErrLimited)
		},
	},
	{"bulkhead.Full", forms, func(b builder) builder { return b.Bulkhead(bulkhead.MaxConcurrent(1)) }, slotTaken(calls(good))},
	{"bulkhead.Full", forms, func(b builder) builder { return b.Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.MaxWait(time.Second)) }, slotTaken(calls(good))},
	{"timeout.Exceeded", []form{inline}, twoSeconds, calls(slow)},
	{"timeout.Exceeded", forms, func(b builder) builder { return twoSeconds(b).Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)) }, slotTaken(calls(good))},
	{"retry.Retrying retry.Retrying retry.GaveUp", forms, retrying(), calls(bad)},
	{"retry.Retrying", forms, retrying(), func(a *arena, ctx context.Context, p *pipeline.Pipeline[int]) {
		_, _ = a.call(ctx, p, a.fails(1).run)
	}},
	{"retry.GaveUp", forms, retrying(retry.Budget(0, 0)), calls(bad)},
	{"fallback.Applied", forms, func(b builder) builder {
		return b.Fallback(func(context.Context, error) (int, error) { return 9, nil })
	}, calls(bad)},
	{"timeout.Exceeded pipeline.LateSuccess", forms, twoSeconds, late(good)},
	{"timeout.Exceeded pipeline.LateFailure", []form{async, staged}, twoSeconds, late(bad)},
	{"timeout.Exceeded pipeline.LatePanic", []form{async}, twoSeconds, late(step{panics: "late"})},

	callbackPanic(func(b builder) builder { return b.Retry().RetryIf(func(int, error) bool { panic("RetryIf") }) }, calls(bad)),
	callbackPanic(func(b builder) builder {
		return retrying(retry.AbortIf(func(error) bool { panic("AbortIf") }), retry.MaxAttempts(1))(b)
	}, nil),
	callbackPanic(func(b builder) builder { return b.CircuitBreaker().FailIf(func(int, error) bool { panic("FailIf") }) }, calls(good)),
	callbackPanic(func(b builder) builder {
		return b.CircuitBreaker(circuitbreaker.FailIf(func(error) bool { panic("FailIf") }))
	}, calls(bad)),
	callbackPanic(func(b builder) builder {
		return b.Timeout(time.Second, timeout.Func(func(context.Context) time.Duration { panic("Func") }))
	}, calls(good)),
	callbackPanic(func(b builder) builder {
		return b.Fallback(func(context.Context, error) (int, error) { return 9, nil }, fallback.If(func(error) bool { panic("If") }))
	}, calls(bad)),
}

func init() {
	// A rule that has no answer is as none: the call is given up all the same.
	for i := range eventCases {
		if c := &eventCases[i]; c.run == nil {
			c.want, c.run = "policy.CallbackPanic retry.GaveUp", calls(bad)
		}
	}
}

type listened struct{ testkit.Journal }

func (l *listened) types() string {
	var names []string
	for _, e := range l.Events() {
		names = append(names, fmt.Sprintf("%T", e))
	}
	return strings.Join(names, " ")
}

type callersKey struct{}

// inEventCases runs each case with a listener of the test's own, which is called
// after the event was noted.
func inEventCases(t *testing.T, listener func(a *arena, p *pipeline.Pipeline[int], e policy.Event), check func(a *arena, c *eventCase, l *listened, p *pipeline.Pipeline[int])) {
	t.Helper()
	for i := range eventCases {
		c := &eventCases[i]
		t.Run(c.want, func(t *testing.T) {
			inForms(t, c.forms, func(a *arena) {
				var l listened
				var p *pipeline.Pipeline[int]
				reg, err := registry.New(registry.WithClock(a.clock), registry.WithListener(func(ctx context.Context, e policy.Event) {
					l.Listen(ctx, e)
					listener(a, p, e)
				}))
				if err != nil {
					a.Fatal(err)
				}
				a.reg = reg
				p = build(a.world, "x", c.layers)
				c.run(a, context.WithValue(a.Context(), callersKey{}, "caller"), p)
				synctest.Wait()
				check(a, c, &l, p)
			})
		})
	}
}

func TestEvents_EachIsPublishedWithTheCallsContext(t *testing.T) {
	seen := map[string]bool{}
	inEventCases(t, func(*arena, *pipeline.Pipeline[int], policy.Event) {},
		func(a *arena, c *eventCase, l *listened, _ *pipeline.Pipeline[int]) {
			if got := l.types(); got != c.want {
				a.Errorf("heard %s, want %s", got, c.want)
			}
			for i, e := range l.Events() {
				seen[fmt.Sprintf("%T", e)] = true
				if l.Contexts()[i].Value(callersKey{}) != "caller" {
					a.Errorf("%T: not the call's context", e)
				}
				if e.ID() != "x" || e.At().Before(a.begun) || e.At().After(a.clock.Now()) {
					a.Errorf("%T of %q at %v", e, e.ID(), e.At())
				}
				if kind, _, _ := strings.Cut(fmt.Sprintf("%T", e), "."); kind != "policy" && e.Policy() != kind {
					a.Errorf("%T says that it is of %q", e, e.Policy())
				}
			}
		})
	if len(seen) != 12 {
		t.Errorf("%d types of events, want all 12: %v", len(seen), seen)
	}
}

// C-4 and X-3: no lock is held while a listener runs.
func TestEvents_X3_ListenersMayCallBack(t *testing.T) {
	var deep sync.Map // pipelines whose listener is inside of itself
	inEventCases(t, func(a *arena, p *pipeline.Pipeline[int], _ policy.Event) {
		if _, again := deep.LoadOrStore(p, true); again {
			return
		}
		defer deep.Delete(p)
		if b, ok := a.reg.CircuitBreaker("x"); ok {
			b.State()
			b.Snapshot()
			if permit, err := b.Allow(); err == nil {
				permit.Ignored()
			}
		}
		if l, ok := a.reg.RateLimiter("x"); ok {
			l.TryAcquire()
		}
		if b, ok := a.reg.Bulkhead("x"); ok && b.TryAcquire() {
			b.Release()
		}
		if len(a.reg.Snapshot().Pipelines) != 1 {
			a.Error("no snapshot")
		}
		a.reg.Check()
		// The form of the call that the event is of, and another.
		ctx, cancel := context.WithCancel(a.Context())
		cancel()
		_, err := p.Execute(ctx, returns(7, nil))
		a.is(err, context.Canceled)
		f := p.ExecuteFuture(a.Context(), func(context.Context) *pipeline.Future[int] {
			promise := pipeline.NewPromise[int]()
			promise.Complete(7, nil)
			return promise.Future()
		})
		f.Cancel()
	}, func(a *arena, c *eventCase, l *listened, _ *pipeline.Pipeline[int]) {
		if got := strings.Fields(l.types()); !slices.Contains(got, strings.Fields(c.want)[0]) {
			a.Errorf("heard %s, want %s among others", got, c.want)
		}
	})
}

func TestField_TO16_APanickingListenerIsContainedAndReportedOnce(t *testing.T) {
	for name, always := range map[string]bool{"once": false, "also on the report": true} {
		t.Run(name, func(t *testing.T) {
			inEventCases(t, func(_ *arena, _ *pipeline.Pipeline[int], e policy.Event) {
				if _, report := e.(policy.CallbackPanic); !report || always {
					panic("listener")
				}
			}, func(a *arena, c *eventCase, l *listened, p *pipeline.Pipeline[int]) {
				events, reports, want := 0, 0, 0
				for _, e := range l.Events() {
					r, isReport := e.(policy.CallbackPanic)
					switch {
					case isReport && r.Value == "listener":
						reports++
						if len(r.Stack) == 0 || r.ID() != "x" {
							a.Errorf("%+v", r)
						}
					case isReport:
						events++ // of another callback; its report is reported only if the listener panics on that
						if always {
							want++
						}
					default:
						events++
						want++
					}
				}
				if events != len(strings.Fields(c.want)) || reports != want {
					a.Errorf("%d events, %d reports, want %d: %s", events, reports, want, l.types())
				}
				// The next call is healthy, once what the first ones used up is back.
				a.advance(100 * time.Hour)
				if v, err := a.call(a.Context(), p, returns(7, nil)); v != 7 || err != nil {
					a.Errorf("the next call: %d, %v", v, err)
				}
				if b, ok := a.reg.Bulkhead("x"); ok && b.Snapshot().Available != 1 {
					a.Errorf("%+v", b.Snapshot())
				}
			})
		})
	}
}

// TO-16, with X-1: a listener may even close the registry.
func TestEvents_X1_AListenerMayCloseTheRegistry(t *testing.T) {
	inEventCases(t, func(a *arena, _ *pipeline.Pipeline[int], _ policy.Event) {
		if err := a.reg.Close(); err != nil {
			a.Error(err)
		}
	}, func(a *arena, c *eventCase, l *listened, p *pipeline.Pipeline[int]) {
		if l.Len() == 0 {
			a.Errorf("heard nothing, want %s", c.want)
		}
		if _, err := p.Execute(a.Context(), returns(7, nil)); !errors.Is(err, registry.ErrClosed) {
			a.Errorf("%v", err)
		}
	})
}
