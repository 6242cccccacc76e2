package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/retry"
)

// gaps returns what lies between the beginnings of the attempts.
func (w *work) gaps() (gaps []time.Duration) {
	began := w.began()
	for i := range began[1:] {
		gaps = append(gaps, began[i+1]-began[i])
	}
	return gaps
}

// draws is a source of randomness that gives these numbers in turn: one for each
// delay of a case, which several forms use one after the other.
func draws(xs ...float64) func() float64 {
	i := 0
	return func() float64 { x := xs[i%len(xs)]; i++; return x }
}

func TestRetry_R6_R7_Conform_11_12_14_15_18_TheDelays(t *testing.T) {
	const day = 24 * time.Hour
	byAttempt := func(n int, _ error) (time.Duration, bool) { return time.Duration(n) * 100 * ms, true }
	for _, c := range []struct {
		name string
		max  int
		opts []retry.Option
		want []time.Duration
	}{
		{"11 constant", 4, []retry.Option{retry.Constant(s)}, []time.Duration{s, s, s}},
		{"11 linear", 4, []retry.Option{retry.Linear(s)}, []time.Duration{s, 2 * s, 3 * s}},
		{"11 exponential", 4, []retry.Option{retry.Exponential(s, 2)}, []time.Duration{s, 2 * s, 4 * s}},
		{"11 base 0", 4, []retry.Option{retry.Exponential(0, 2)}, []time.Duration{0, 0, 0}},
		{"RE01 100 ms doubled to 30 s", 13, []retry.Option{retry.Exponential(100*ms, 2), retry.MaxDelay(30 * s)}, []time.Duration{
			100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30 * s, 30 * s, 30 * s,
		}},
		{"12 constant, a quarter of jitter", 5, []retry.Option{retry.Constant(s), retry.Jitter(.25), retry.Rand(draws(0, .4, .6, 1))}, []time.Duration{750 * ms, 950 * ms, 1050 * ms, 1250 * ms}},
		{"12 linear, a quarter of jitter", 4, []retry.Option{retry.Linear(s), retry.Jitter(.25), retry.Rand(draws(.5, .5, .4))}, []time.Duration{s, 2 * s, 2850 * ms}},
		{"R-7 jitter is capped", 4, []retry.Option{retry.Constant(s), retry.Jitter(.25), retry.MaxDelay(1100 * ms), retry.Rand(draws(0, 1, 0))}, []time.Duration{750 * ms, 1100 * ms, 750 * ms}},
		{"R-7 full jitter", 4, []retry.Option{retry.Constant(s), retry.FullJitter(), retry.Rand(draws(0, .5, 1))}, []time.Duration{0, 500 * ms, s}},
		{"R-7, 10 no jitter asks nobody", 3, []retry.Option{retry.Constant(s), retry.Jitter(0), retry.Rand(func() float64 { panic("asked") })}, []time.Duration{s, s}},
		{"13 a day, to the longest there is", 3, []retry.Option{retry.Exponential(day, 1e308), retry.MaxDelay(2 * day)}, []time.Duration{day, 2 * day}},
		{"14 capped", 4, []retry.Option{retry.Linear(2 * s), retry.MaxDelay(123 * ms)}, []time.Duration{123 * ms, 123 * ms, 123 * ms}},
		{"14 uncapped", 4, []retry.Option{retry.Linear(2 * s), retry.MaxDelay(0)}, []time.Duration{2 * s, 4 * s, 6 * s}},
		{"15 no answer", 3, []retry.Option{retry.Constant(2 * ms), retry.DelayFunc(func(int, error) (time.Duration, bool) { return time.Hour, false })}, []time.Duration{2 * ms, 2 * ms}},
		{"15 zero", 4, []retry.Option{retry.Constant(2 * ms), retry.DelayFunc(func(int, error) (time.Duration, bool) { return 0, true })}, []time.Duration{0, 0, 0}},
		{"15 less than zero", 3, []retry.Option{retry.DelayFunc(func(int, error) (time.Duration, bool) { return math.MinInt64, true })}, []time.Duration{0, 0}},
		{"18 fixed", 3, []retry.Option{retry.Constant(500 * ms)}, []time.Duration{500 * ms, 500 * ms}},
		{"18 exponential", 3, []retry.Option{retry.Exponential(500*ms, 2)}, []time.Duration{500 * ms, s}},
		{"18 by attempt", 3, []retry.Option{retry.DelayFunc(byAttempt)}, []time.Duration{100 * ms, 200 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", retrying(append(c.opts, retry.MaxAttempts(c.max))...))
				fn := a.plan(step{err: errBoom})
				r := a.start(a.Context(), p, fn.run)
				if c.name == "15 zero" && (!r.ended() || a.manual != nil && a.manual.Pending() != 0) {
					a.Error("a timer was made for a delay of 0")
				}
				_, err := r.end()
				a.is(err, retry.ErrExhausted)
				if diff := cmp.Diff(c.want, fn.gaps()); diff != "" {
					a.Error(diff)
				}
				events := heard[retry.Retrying](a.world)
				if len(events) != c.max-1 {
					a.Fatalf("%d events", len(events))
				}
				for i, e := range events {
					if e.Attempt != i+1 || e.Err != errBoom || e.Delay != c.want[i] { //nolint:errorlint // unchanged
						a.Errorf("event %d: %+v", i, e)
					}
				}
			})
		})
	}
}

func TestConform_8_13_RE13_JitterStaysInItsRange(t *testing.T) {
	for _, c := range []struct {
		name        string
		opts        []retry.Option
		max         int
		least, most time.Duration
		more        int           // attempts
		upTo        time.Duration // 0: to the last attempt
		bothHalves  bool
	}{
		{"8", []retry.Option{retry.Constant(400 * ms), retry.Jitter(1), retry.MaxDuration(3200 * ms)}, 11, 0, 800 * ms, 4, 3200 * ms, false},
		{"RE13", []retry.Option{retry.Constant(100 * ms), retry.Jitter(1), retry.MaxDelay(150 * ms)}, 300, 0, 150 * ms, 299, 0, true},
		{"13 with a cap", []retry.Option{retry.Exponential(2*s, 2), retry.Jitter(.5), retry.MaxDelay(30 * s)}, 200, 1, 30 * s, 199, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				var sequences [2][]time.Duration
				for i := range sequences {
					rnd := rand.New(rand.NewPCG(1, 2))
					p := build(a.world, fmt.Sprint("x", i), retrying(append(c.opts, retry.MaxAttempts(c.max), retry.Rand(rnd.Float64))...))
					from := a.at()
					fn := a.plan(step{err: errBoom})
					_, err := a.call(a.Context(), p, fn.run)
					a.is(err, errBoom)
					if fn.calls() <= c.more || c.upTo > 0 && a.at()-from >= c.upTo {
						a.Errorf("%d calls until %v", fn.calls(), a.at()-from)
					}
					low, high := 0, 0
					for _, gap := range fn.gaps() {
						if gap < c.least || gap > c.most {
							a.Fatalf("a gap of %v", gap)
						}
						if gap < (c.least+c.most)/2 {
							low++
						} else {
							high++
						}
					}
					if c.bothHalves && (low == 0 || high == 0) {
						a.Errorf("%d in the lower half, %d in the upper", low, high)
					}
					sequences[i] = fn.gaps()
				}
				if diff := cmp.Diff(sequences[0], sequences[1]); diff != "" {
					a.Errorf("the same Rand, another sequence: %s", diff)
				}
			})
		})
	}
}

// Attempts that fail at once are iterated: neither the stack nor a goroutine
// grows with their number.
func TestRetry_A4_ManyAttemptsAtOnce(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		const n = 2000
		p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Retry(retry.MaxAttempts(n), retry.Constant(0)).Timeout(s)
		})
		calls := 0
		fn := func() (int, error) { calls++; return 0, errBoom }
		var err error
		switch a.form {
		case staged:
			failed := pipeline.NewPromise[int]()
			failed.Complete(0, errBoom)
			_, err = p.ExecuteFuture(a.Context(), func(context.Context) *pipeline.Future[int] { _, _ = fn(); return failed.Future() }).Get(a.Context())
		case async:
			_, err = p.ExecuteAsync(a.Context(), func(context.Context) (int, error) { return fn() }).Get(a.Context())
		case inline:
			_, err = p.Execute(a.Context(), func(context.Context) (int, error) { return fn() })
		}
		var re *retry.Error
		if calls != n || !errors.As(err, &re) || re.Attempts != n {
			a.Errorf("%d calls, %v", calls, err)
		}
	})
}
