package pipeline_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

var update = flag.Bool("update", false, "write testdata/events.golden anew")

// transcript is one story, told by its calls and the events that they lead to:
// what happens in it is written down line by line, with the time of the manual
// clock, in the order in which it happens.
//
// The test's goroutine moves the clock, from event to event, and waits each time
// until all others have come to rest. What happens then on several goroutines at
// one instant is put in order: call by call, the result after the events.
type transcript struct {
	*arena
	p *pipeline.Pipeline[int]

	mu   sync.Mutex
	out  []string
	step []line // since the last rest
}

type line struct {
	call   string
	result bool
	text   string
}

// callName is the key of the call's name in its context.
type callName struct{}

func (tr *transcript) write(call string, result bool, text string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.step = append(tr.step, line{call, result, fmt.Sprintf("%10v  %-7s %s", tr.at(), call, text)})
}

func (tr *transcript) hear(ctx context.Context, e policy.Event) {
	call, ok := ctx.Value(callName{}).(string)
	if !ok {
		call = "-" // nobody's
	}
	text := fmt.Sprintf("| %T", e)
	if e.ID() != "reports" {
		text += " of " + e.ID()
	}
	var fields strings.Builder
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.Anonymous && f.Name != "Stack" {
			fmt.Fprintf(&fields, " %s=%v", f.Name, v.Field(i).Interface())
		}
	}
	text += fields.String()
	if late := tr.clk.Now().Sub(e.At()); late != 0 {
		text += fmt.Sprintf(" (%v late)", late)
	}
	tr.write(call, false, text)
}

// rest waits until nothing moves.
func (tr *transcript) rest() {
	synctest.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	slices.SortStableFunc(tr.step, func(a, b line) int {
		if c := strings.Compare(a.call, b.call); c != 0 || a.result == b.result {
			return c
		}
		if a.result {
			return 1
		}
		return -1
	})
	for _, l := range tr.step {
		tr.out = append(tr.out, l.text)
	}
	tr.step = nil
}

// act begins a new part of the story, with a breaker and a limiter that have
// forgotten the last one.
func (tr *transcript) act(title string) {
	tr.pass(time.Minute)
	breakerOf(tr.world, "reports").Reset()
	tr.rest()
	tr.out = append(tr.out, "", "# "+title)
}

// pass lets time pass.
func (tr *transcript) pass(d time.Duration) {
	tr.rest()
	until := tr.clk.Now().Add(d)
	for next, ok := tr.clk.Next(); ok && !next.After(until); next, ok = tr.clk.Next() {
		tr.clk.Set(next)
		tr.rest()
	}
	tr.clk.Set(until)
	tr.rest()
}

// begin makes a call with a name, and comes back when that waits or has ended.
func (tr *transcript) begin(ctx context.Context, call string, f form, fn func(context.Context) (int, error)) *running {
	tr.write(call, false, string(f))
	tr.form = f
	r := tr.start(context.WithValue(ctx, callName{}, call), tr.p, fn)
	go func() {
		<-r.done
		switch {
		case r.panicked != nil:
			tr.write(call, true, fmt.Sprintf("= panic: %v", r.panicked))
		case r.err != nil:
			tr.write(call, true, "= "+r.err.Error())
		default:
			tr.write(call, true, fmt.Sprintf("= %d", r.v))
		}
	}()
	tr.rest()
	return r
}

var suffix = map[form]string{inline: "", async: "-async", staged: "-stage"}

// tell makes one call after the other, in the forms that are given, each with a
// name and a breaker of its own, and sees it through.
func (tr *transcript) tell(name string, forms []form, steps ...step) {
	for _, f := range forms {
		breakerOf(tr.world, "reports").Reset()
		tr.begin(tr.Context(), name+suffix[f], f, tr.plan(steps...).run)
		tr.pass(time.Minute)
	}
}

func (tr *transcript) play() {
	takes := func(s step, d time.Duration) step { s.takes = d; return s }
	deaf := func(s step, d time.Duration) step { s.takes, s.deaf = d, true; return s }
	futures := []form{async, staged}

	tr.act("success says nothing")
	tr.tell("a", forms, good)

	tr.act("a failure, then a value; a mark that no retry heals; attempts that run out")
	tr.tell("a", forms, bad, good)
	tr.tell("b", forms, step{err: retry.Permanent(errBoom)})
	tr.tell("c", forms, bad)

	tr.act("timeouts: of a function that looks at its context, of one that does not, and what it does later")
	tr.tell("a", []form{inline}, takes(good, time.Hour), good)
	tr.tell("b", forms, deaf(good, 2500*time.Millisecond), good)
	tr.tell("c", futures, deaf(bad, 2500*time.Millisecond), good)
	tr.tell("d", []form{async}, deaf(step{panics: "late"}, 2500*time.Millisecond), good)

	tr.act("MaxDuration: the delay does not fit; the third attempt is cut")
	tr.tell("a", forms, deaf(bad, 1900*time.Millisecond), deaf(bad, 1900*time.Millisecond), deaf(bad, 1900*time.Millisecond))
	tr.tell("b", []form{inline}, takes(good, time.Hour))

	tr.act("a full bulkhead: one runs, one waits, the next is refused, and tried again")
	for _, f := range forms {
		tr.begin(tr.Context(), "a"+suffix[f], f, tr.plan(takes(good, 1500*time.Millisecond)).run)
		tr.begin(tr.Context(), "b"+suffix[f], f, tr.plan(takes(good, 200*time.Millisecond)).run)
		tr.begin(tr.Context(), "c"+suffix[f], f, tr.plan(good).run)
		tr.pass(time.Minute)
	}
	tr.act("a deadline that passes in the queue")
	tr.begin(tr.Context(), "a", inline, tr.plan(deaf(good, 2500*time.Millisecond), good).run)
	tr.begin(tr.Context(), "b", staged, tr.plan(good).run)

	tr.act("a limiter without permits")
	l, _ := tr.reg.RateLimiter("reports")
	for _, f := range forms {
		for l.TryAcquire() { // all that it has
		}
		if err := l.SetRate(1, 90*time.Second, 1); err != nil {
			tr.Fatal(err)
		}
		tr.begin(tr.Context(), "a"+suffix[f], f, tr.plan(good).run)
		tr.pass(time.Minute)
		if err := l.SetRate(100, time.Second, 100); err != nil {
			tr.Fatal(err)
		}
		tr.pass(time.Minute)
	}

	for _, f := range forms {
		tr.act("the breaker, by " + string(f) + ": open, refusing with a fallback, probed in vain, closed")
		for _, call := range []string{"a", "b"} {
			tr.begin(tr.Context(), call+suffix[f], f, tr.plan(bad).run)
			tr.pass(3 * time.Second)
		}
		tr.begin(tr.Context(), "c"+suffix[f], f, tr.plan(good).run)
		tr.pass(10 * time.Second)
		tr.begin(tr.Context(), "d"+suffix[f], f, tr.plan(bad).run)
		tr.pass(10 * time.Second)
		tr.begin(tr.Context(), "e"+suffix[f], f, tr.plan(step{err: errNotFound}).run) // ignored
		tr.begin(tr.Context(), "f"+suffix[f], f, tr.plan(good).run)
	}
	tr.act("the breaker by hand")
	breakerOf(tr.world, "reports").ForceOpen()
	tr.begin(tr.Context(), "a", inline, tr.plan(good).run)
	breakerOf(tr.world, "reports").ForceClosed()
	tr.begin(tr.Context(), "b", inline, tr.plan(good).run)

	tr.act("the caller gives up: at work, in a backoff; by Cancel")
	for _, f := range forms {
		for _, call := range []string{"a", "b"} {
			s := bad
			if call == "a" { // a future ends before the function does
				s = step{takes: time.Second, deaf: f != inline, v: 7}
			}
			ctx, cancel := context.WithCancel(tr.Context())
			tr.begin(ctx, call+suffix[f], f, tr.plan(s).run)
			cancel()
			tr.pass(time.Minute)
		}
	}
	for _, f := range futures {
		r := tr.begin(tr.Context(), "c", f, tr.plan(deaf(good, time.Second)).run)
		r.future.Cancel()
		tr.pass(time.Minute)
	}

	tr.act("panics: of the function, of a hook")
	tr.tell("a", []form{inline, async}, step{panics: "boom"})
	tr.tell("b", forms, deaf(step{v: 666}, 2500*time.Millisecond), good)

	tr.act("a fallback that fails too")
	tr.tell("a", forms, step{err: errLost})

	tr.act("closed: in a backoff, in the queue, at work")
	tr.begin(tr.Context(), "a", staged, tr.plan(bad).run)
	tr.begin(tr.Context(), "b", inline, tr.plan(takes(good, time.Second)).run)
	tr.begin(tr.Context(), "c", async, tr.plan(good).run)
	if err := tr.reg.Close(); err != nil {
		tr.Error(err)
	}
	tr.pass(time.Minute)
	tr.tell("d", forms, good)
}

var errLost = errors.New("lost")

func TestTranscript_Golden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &transcript{arena: newArena(t, inline, true)}
		reg, err := registry.New(registry.WithClock(tr.clk), registry.WithListener(tr.hear))
		if err != nil {
			t.Fatal(err)
		}
		tr.reg = reg
		tr.p = build(tr.world, "reports", func(b builder) builder {
			return b.
				Fallback(func(_ context.Context, err error) (int, error) {
					if errors.Is(err, circuitbreaker.ErrOpen) {
						return 99, nil
					}
					return 0, errNotFound
				}, fallback.On(circuitbreaker.ErrOpen, errLost)).
				Retry(retry.MaxAttempts(3), retry.Constant(time.Second), retry.MaxDuration(7*time.Second), retry.AbortOn(errLost, errNotFound)).
				CircuitBreaker(circuitbreaker.CountWindow(6), circuitbreaker.MinCalls(6), circuitbreaker.OpenFor(10*time.Second), circuitbreaker.Ignore(errNotFound)).
				RateLimit(ratelimit.PerSecond(100), ratelimit.MaxWait(time.Second)).
				Timeout(2*time.Second).
				Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(1)).
				OnDiscard(func(v int) {
					if v == 666 {
						panic("cannot close it")
					}
					tr.write("-", false, fmt.Sprintf("| discarded %d", v))
				})
		})
		tr.play()
		tr.rest()
		row := tr.pipeline("reports")
		tr.out = append(tr.out, "", "# counted", fmt.Sprintf("calls %+v", row.Calls), fmt.Sprintf("fallback %+v", row.Fallback), fmt.Sprintf("abandoned %+v", row.Abandoned))
		golden(t, "events.golden", tr.p.String()+"\n"+strings.Join(tr.out, "\n")+"\n")
	})
}

// golden compares got with a file in testdata, or writes it there.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the story has changed; if that is right, run go test ./pipeline -run Transcript -update (-want +got)\n%s", diff)
	}
}
