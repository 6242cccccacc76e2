package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// scenario is a random stack and some calls that meet in it. All durations are
// of different odd lengths, so that no two things happen at one instant, where
// the forms may differ.
type scenario struct {
	layers layers
	calls  []scripted
}

type scripted struct {
	after  time.Duration // the call before it
	steps  []step
	cancel time.Duration // after its start; 0: never
	until  time.Duration // the caller's deadline; 0: none
}

func newScenario(seed uint64) scenario {
	rnd := rand.New(rand.NewPCG(seed, 0))
	odd := func(most time.Duration) time.Duration { return time.Duration(1 + rnd.Int64N(int64(most))) }
	has := func() bool { return rnd.IntN(3) > 0 }
	var add []func(b *pipeline.Builder[int])
	if has() {
		opts := []retry.Option{retry.MaxAttempts(1 + rnd.IntN(4)), retry.Linear(odd(200 * ms)), retry.AbortOn(ratelimit.ErrLimited)} // whose hint would be one instant for all
		if rnd.IntN(2) == 0 {
			opts = append(opts, retry.MaxDuration(600*ms+odd(s)), retry.Reserve(odd(50*ms)))
		}
		if rnd.IntN(4) == 0 {
			opts = append(opts, retry.Budget(.3, 1))
		}
		again := rnd.IntN(3) == 0
		add = append(add, func(b *pipeline.Builder[int]) {
			var mu sync.Mutex
			same := rand.New(rand.NewPCG(seed, 1))
			b.Retry(append(opts, retry.Jitter(.5), retry.Rand(func() float64 { // or delays would be the same for all
				mu.Lock()
				defer mu.Unlock()
				return same.Float64()
			}))...)
			if again {
				b.RetryIf(func(v int, err error) bool {
					return err != nil && !errors.Is(err, ratelimit.ErrLimited) || err == nil && v%3 == 0
				})
			}
		})
	}
	if rnd.IntN(3) == 0 {
		open := odd(300 * ms)
		add = append(add, func(b *pipeline.Builder[int]) {
			b.CircuitBreaker(circuitbreaker.MinCalls(3), circuitbreaker.CountWindow(3), circuitbreaker.OpenFor(open))
		})
	}
	if has() {
		opts := []ratelimit.Option{ratelimit.Per(1+rnd.IntN(3), odd(400*ms)), ratelimit.MaxWait(time.Duration(rnd.IntN(2)) * odd(500*ms))}
		add = append(add, func(b *pipeline.Builder[int]) { b.RateLimit(opts...) })
	}
	if has() {
		d := odd(300 * ms)
		add = append(add, func(b *pipeline.Builder[int]) { b.Timeout(d) })
	}
	if has() {
		opts := []bulkhead.Option{bulkhead.MaxConcurrent(1 + rnd.IntN(2)), bulkhead.Queue(rnd.IntN(3)), bulkhead.MaxWait(odd(200 * ms))}
		add = append(add, func(b *pipeline.Builder[int]) { b.Bulkhead(opts...) })
	}
	if rnd.IntN(4) == 0 {
		add = append(add, func(b *pipeline.Builder[int]) {
			b.Fallback(func(context.Context, error) (int, error) { return -1, nil })
		})
	}
	sc := scenario{layers: func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		for _, f := range add {
			f(b)
		}
		return b
	}}
	for range 2 + rnd.IntN(5) {
		c := scripted{after: odd(150 * ms)}
		for range 1 + rnd.IntN(4) {
			st := step{takes: odd(250 * ms), v: 1 + rnd.IntN(9)}
			switch rnd.IntN(5) {
			case 0, 1:
				st.v, st.err = 0, errBoom
			case 2:
				st.v, st.err = 0, retry.Permanent(errPlain)
			}
			c.steps = append(c.steps, st)
		}
		switch rnd.IntN(4) {
		case 0:
			c.cancel = odd(500 * ms)
		case 1:
			c.until = odd(800 * ms)
		}
		sc.calls = append(sc.calls, c)
	}
	return sc
}

// transcript plays a scenario and tells all that must be the same in every form
// and on every clock.
func (sc *scenario) transcript(a *arena) string {
	p := build(a.world, "x", sc.layers)
	var text strings.Builder
	var calls []*running
	var works []*work
	var ends []time.Duration // by their callers
	for _, c := range sc.calls {
		a.advance(c.after)
		ctx, cancel := context.WithCancel(a.Context())
		if c.until > 0 {
			cancel()
			ctx, cancel = a.withTimeout(c.until)
		}
		defer cancel()
		if c.cancel > 0 {
			a.clock.AfterFunc(c.cancel, cancel)
		}
		w := a.plan(c.steps...)
		ends = append(ends, a.at()+max(c.cancel, c.until))
		works = append(works, w)
		calls = append(calls, a.start(ctx, p, w.run))
	}
	for i, r := range calls {
		v, err := r.end()
		fmt.Fprintf(&text, "call %d: %d at %v, attempts at %v:", i, v, r.over, works[i].began())
		// What a function says that is cut short is the last error of a sync call; an
		// async one does not wait for it, and has the error of the attempt before.
		if r.over == ends[i] {
			text.WriteString(" its caller has ended it\n")
			continue
		}
		if errors.Is(err, retry.ErrOutOfTime) {
			text.WriteString(" out of time\n")
			continue
		}
		for _, target := range []error{
			timeout.ErrExceeded, retry.ErrExhausted, retry.ErrBudget, bulkhead.ErrFull, ratelimit.ErrLimited,
			circuitbreaker.ErrOpen, context.Canceled, errPlain,
		} {
			if errors.Is(err, target) {
				fmt.Fprintf(&text, " %q", target)
			}
		}
		text.WriteString("\n")
	}
	a.advance(5 * s)
	sn := a.reg.Snapshot()
	for _, p := range sn.Pipelines {
		fmt.Fprintf(&text, "%+v %+v\n", p.Calls, p.Fallback)
	}
	for _, t := range sn.Timeouts {
		fmt.Fprintf(&text, "timed out %d\n", t.TimedOut)
	}
	for _, r := range sn.Retries {
		fmt.Fprintf(&text, "retries %d, exhausted %d, out of time %d, no budget %d\n", r.Retries, r.Exhausted, r.OutOfTime, r.BudgetDenied)
	}
	for _, l := range sn.RateLimiters {
		fmt.Fprintf(&text, "permits %d, refused %d\n", l.Admitted, l.Rejected)
	}
	for _, b := range sn.Bulkheads {
		fmt.Fprintf(&text, "slots %d, refused %d\n", b.Admitted, b.Rejected)
	}
	for _, b := range sn.CircuitBreakers {
		fmt.Fprintf(&text, "breaker %v, refused %d\n", b.State, b.Rejected)
	}
	return text.String()
}

// Whatever the stack and the calls, all forms do the same on both clocks, as long
// as functions honor their contexts.
func TestForms_AgreeOnRandomCalls(t *testing.T) {
	n := uint64(300)
	if raceEnabled {
		n = 60
	}
	for seed := range n {
		sc := newScenario(seed)
		first := ""
		for _, manual := range []bool{false, true} {
			for _, f := range forms {
				synctest.Test(t, func(t *testing.T) {
					a := newArena(t, f, manual)
					text := sc.transcript(a)
					if first == "" {
						first = text
					} else if text != first {
						t.Errorf("seed %d: %v, manual clock %v, is not as Execute on the system's: %s", seed, f, manual, cmp.Diff(first, text))
					}
				})
			}
		}
		if t.Failed() {
			return
		}
	}
}
