package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

type layers = func(*pipeline.Builder[int]) *pipeline.Builder[int]

// retrying is a pipeline with a retry and nothing else.
func retrying(opts ...retry.Option) layers {
	return func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Retry(opts...) }
}

func TestRetry_R1_Seed1_Conform_1_2_AttemptsCountTheFirstCall(t *testing.T) {
	permanent := retry.Permanent(errors.New("permanent failure"))
	for _, c := range []struct {
		name     string
		max      int
		plan     func(a *arena) *work
		attempts int
		want     []error // none: 7
	}{
		{"Seed1 two failures, then ok", 3, func(a *arena) *work { return a.fails(2) }, 3, nil},
		{"Seed1 failures only", 3, func(a *arena) *work { return a.plan(step{err: errBoom}) }, 3, []error{errBoom, retry.ErrExhausted}},
		{"Seed1 permanent at once", 3, func(a *arena) *work { return a.plan(step{err: permanent}) }, 1, []error{permanent}},
		{"Conform 1", 6, func(a *arena) *work { return a.plan(step{err: errBoom}) }, 6, []error{errBoom, retry.ErrExhausted}},
		{"Conform 1, second form", 3, func(a *arena) *work { return a.plan(step{err: errBoom}) }, 3, []error{errBoom, retry.ErrExhausted}},
		{"Conform 2, k=0", 4, func(a *arena) *work { return a.fails(0) }, 1, nil},
		{"Conform 2, k=2", 4, func(a *arena) *work { return a.fails(2) }, 3, nil},
		{"Conform 2, k=3", 4, func(a *arena) *work { return a.fails(3) }, 4, nil},
		{"Conform 2, k=4", 4, func(a *arena) *work { return a.fails(4) }, 4, []error{errBoom, retry.ErrExhausted}},
		{"one attempt", 1, func(a *arena) *work { return a.plan(step{err: errBoom}) }, 1, []error{errBoom, retry.ErrExhausted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", retrying(retry.MaxAttempts(c.max), retry.Constant(10*ms)))
				fn := c.plan(a)
				v, err := a.call(a.Context(), p, fn.run)
				if n := fn.calls(); n != c.attempts {
					a.Errorf("%d calls, want %d", n, c.attempts)
				}
				if want := time.Duration(c.attempts-1) * 10 * ms; a.at() != want {
					a.Errorf("R-5: it took %v, want %v", a.at(), want)
				}
				if c.want == nil {
					if v != 7 || err != nil {
						a.Errorf("got %d, %v", v, err)
					}
					return
				}
				a.is(err, c.want...)
				var re *retry.Error
				if exhausted := errors.Is(err, retry.ErrExhausted); exhausted != errors.As(err, &re) {
					a.Errorf("R-13: got %#v", err)
				} else if exhausted && (re.Attempts != c.attempts || re.Last != errBoom || !re.Started() || re.Instance != "x") { //nolint:errorlint // unchanged
					a.Errorf("R-13: got %#v", re)
				}
			})
		})
	}
}

func TestConform_3_AnAbortErrorAfterRetryableOnes(t *testing.T) {
	abort := errors.New("abort")
	for _, c := range []struct{ failures, calls int }{{2, 3}, {3, 4}, {4, 4}} {
		t.Run(strconv.Itoa(c.failures), func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", retrying(retry.MaxAttempts(4), retry.Constant(0), retry.AbortOn(abort)))
				fn := a.fails(c.failures)
				fn.steps[c.failures] = step{err: abort}
				_, err := a.call(a.Context(), p, fn.run)
				if n := fn.calls(); n != c.calls {
					a.Errorf("%d calls, want %d", n, c.calls)
				}
				if c.failures < 4 {
					if err != abort { //nolint:errorlint // R-13: unchanged
						a.Errorf("got %v, want the function's own error unchanged", err)
					}
				} else {
					a.is(err, errBoom, retry.ErrExhausted)
					a.isNot(err, abort)
				}
			})
		})
	}
}

func TestRetry_R3_Conform_4_TheRules(t *testing.T) {
	parent, other := errors.New("parent"), errors.New("other")
	child := fmt.Errorf("child: %w", parent)
	isParent := func(err error) bool { return errors.Is(err, parent) }
	for _, c := range []struct {
		name  string
		opts  []retry.Option
		err   error
		calls int
	}{
		{"default", nil, other, 4},
		{"default, a driver's own deadline", nil, fmt.Errorf("driver: %w", context.DeadlineExceeded), 4},
		{"default, a driver's own cancellation", nil, context.Canceled, 4},
		{"On, match", []retry.Option{retry.On(parent)}, parent, 4},
		{"On, no match", []retry.Option{retry.On(parent)}, other, 1},
		{"On, child of a kind", []retry.Option{retry.On(parent)}, child, 4},
		{"On, joined", []retry.Option{retry.On(parent)}, errors.Join(other, child), 4},
		{"If, match", []retry.Option{retry.If(isParent)}, child, 4},
		{"If, no match", []retry.Option{retry.If(isParent)}, other, 1},
		{"On or If", []retry.Option{retry.On(other), retry.If(isParent)}, child, 4},
		{"AbortOn wins over On", []retry.Option{retry.On(parent), retry.AbortOn(child)}, child, 1},
		{"AbortOn wins over On, joined", []retry.Option{retry.On(parent), retry.AbortOn(other)}, errors.Join(parent, other), 1},
		{"AbortIf wins over If", []retry.Option{retry.If(isParent), retry.AbortIf(isParent)}, parent, 1},
		{"Permanent wins over On", []retry.Option{retry.On(parent)}, retry.Permanent(parent), 1},
		{"Permanent, wrapped", nil, fmt.Errorf("w: %w", retry.Permanent(parent)), 1},
		{"Permanent, joined", nil, errors.Join(other, retry.Permanent(parent)), 1},
		{"an inner budget", nil, fmt.Errorf("inner: %w", retry.ErrBudget), 1},
		{"an inner registry that is closed", nil, fmt.Errorf("inner: %w", errClosed), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				opts := append([]retry.Option{retry.MaxAttempts(4), retry.Constant(0)}, c.opts...)
				p := build(a.world, "x", retrying(opts...))
				fn := a.plan(step{err: c.err})
				_, err := a.call(a.Context(), p, fn.run)
				if n := fn.calls(); n != c.calls {
					a.Errorf("%d calls, want %d", n, c.calls)
				}
				a.is(err, c.err)
				var re *retry.Error
				if errors.As(err, &re) != (c.calls == 4) {
					a.Errorf("R-13: got %#v", err)
				}
				if n := a.calls("x"); n.Failed != 1 {
					a.Errorf("S-5: %+v", n)
				}
			})
		})
	}
}

func TestRetry_R3_RetryIfReplacesTheFourRulesAndNeverTheExceptions(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  []retry.Option
		steps []step
		yes   func(v int, err error) bool
		calls int
		v     int
		want  error
	}{
		{"a value", nil, []step{{v: 1}, {v: 2}, {v: 3}}, func(v int, _ error) bool { return v < 2 }, 2, 2, nil},
		{"an error that On excludes", []retry.Option{retry.On(errors.New("no other"))}, []step{{err: errBoom}, {v: 3}}, func(_ int, err error) bool { return err != nil }, 2, 3, nil},
		{"an error that AbortOn names", []retry.Option{retry.AbortOn(errBoom)}, []step{{err: errBoom}, {v: 3}}, func(_ int, err error) bool { return err != nil }, 2, 3, nil},
		{"no", nil, []step{{err: errBoom}}, func(int, error) bool { return false }, 1, 0, errBoom},
		{"Permanent", nil, []step{{err: retry.Permanent(errBoom)}}, func(int, error) bool { return true }, 1, 0, errBoom},
		{"an inner budget", nil, []step{{err: retry.ErrBudget}}, func(int, error) bool { return true }, 1, 0, retry.ErrBudget},
		{"closed", nil, []step{{err: errClosed}}, func(int, error) bool { return true }, 1, 0, errClosed},
		{"a panic of the hook says no", nil, []step{{err: errBoom}}, func(int, error) bool { panic("hook") }, 1, 0, errBoom},
		{"R-13 the last value comes back", nil, []step{{v: 1}, {v: 2}, {v: 3}}, func(int, error) bool { return true }, 3, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				opts := append([]retry.Option{retry.MaxAttempts(3), retry.Constant(0)}, c.opts...)
				p := build(a.world, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Retry(opts...).RetryIf(c.yes) })
				fn := a.plan(c.steps...)
				v, err := a.call(a.Context(), p, fn.run)
				if n := fn.calls(); n != c.calls || v != c.v {
					a.Errorf("%d calls, value %d; want %d, %d", n, v, c.calls, c.v)
				}
				if (err == nil) != (c.want == nil) || !errors.Is(err, c.want) {
					a.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestRetry_R3_APanicIsNotRetried(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		if a.form == staged {
			return // there the panic is the producer's own
		}
		p := build(a.world, "x", retrying(retry.MaxAttempts(3), retry.Constant(0)))
		fn := a.plan(step{panics: errBoom})
		r := a.start(a.Context(), p, fn.run)
		_, err := r.end()
		if a.form == inline && r.panicked != errBoom { //nolint:errorlint // that very value
			a.Errorf("panicked with %v", r.panicked)
		}
		var pe *pipeline.PanicError
		if a.form == async && !errors.As(err, &pe) {
			a.Errorf("got %v", err)
		}
		if n := fn.calls(); n != 1 {
			a.Errorf("%d calls", n)
		}
		if n := a.calls("x"); n.Panicked != 1 {
			a.Errorf("S-5: %+v", n)
		}
	})
}

func TestField_RE12_R4_PermanentStopsOnePipelineOnly(t *testing.T) {
	errY := retry.Permanent(errors.New("y"))
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprintf("inner MaxAttempts %d", most), func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				outer := build(a.world, "outer", retrying(retry.MaxAttempts(3), retry.Constant(0)))
				inner := build(a.world, "inner", retrying(retry.MaxAttempts(most), retry.Constant(0)))
				errX := errors.New("x")
				for _, c := range []struct{ returned, want error }{
					{retry.Permanent(errX), errX}, {errY, errY}, {fmt.Errorf("wrapped: %w", errY), errY},
				} {
					fn := a.plan(step{err: c.returned})
					_, err := a.call(a.Context(), outer, func(ctx context.Context) (int, error) { return inner.Execute(ctx, fn.run) })
					if n := fn.calls(); n != 3 {
						a.Errorf("%v: %d calls, want one for each outer attempt", c.returned, n)
					}
					a.is(err, c.want, retry.ErrExhausted)

					fn = a.plan(step{err: err}) // the mark is spent for every pipeline outside, too
					_, _ = a.call(a.Context(), inner, fn.run)
					if n := fn.calls(); n != most {
						a.Errorf("%v: %d calls of what came out, want %d", c.returned, n, most)
					}
				}
			})
		})
	}
}

func TestField_RE04_R5_SleepsOnlyBetweenAttempts(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  []retry.Option
		slept []time.Duration
	}{
		{"constant", []retry.Option{retry.MaxAttempts(3), retry.Constant(s)}, []time.Duration{s, s}},
		{"exponential", []retry.Option{retry.MaxAttempts(3), retry.Exponential(s, 2)}, []time.Duration{s, 2 * s}},
		{"linear", []retry.Option{retry.MaxAttempts(4), retry.Linear(s)}, []time.Duration{s, 2 * s, 3 * s}},
		{"one attempt", []retry.Option{retry.MaxAttempts(1), retry.Constant(s)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				p := build(a.world, "x", retrying(c.opts...))
				fn := a.plan(step{err: errBoom})
				_, err := a.call(a.Context(), p, fn.run)
				var slept []time.Duration
				var total time.Duration
				for _, e := range heard[retry.Retrying](a.world) {
					slept = append(slept, e.Delay)
					total += e.Delay
				}
				if diff := cmp.Diff(c.slept, slept); diff != "" {
					a.Error(diff)
				}
				if a.at() != total {
					a.Errorf("returned at %v, want %v", a.at(), total)
				}
				var re *retry.Error
				if !errors.As(err, &re) || re.Attempts != len(c.slept)+1 || re.Elapsed != total {
					a.Errorf("R-13: %#v", re)
				}
				if e := heard[retry.GaveUp](a.world); len(e) != 1 || e[0].Attempts != len(c.slept)+1 {
					a.Errorf("events %+v", e)
				}
			})
		})
	}
}

func TestRetry_R15_AttemptAndIdempotencyKey(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		outer := build(a.world, "outer", retrying(retry.MaxAttempts(2), retry.Constant(0)))
		inner := build(a.world, "inner", retrying(retry.MaxAttempts(2), retry.Constant(0)))
		plain := build(a.world, "plain", twoSeconds)
		var attempts []int
		keys := map[string]int{}
		_, _ = a.call(a.Context(), outer, func(ctx context.Context) (int, error) {
			attempts = append(attempts, retry.Attempt(ctx))
			keys[retry.IdempotencyKey(ctx)]++
			_, _ = inner.Execute(ctx, func(ctx context.Context) (int, error) {
				attempts = append(attempts, 10*retry.Attempt(ctx))
				keys[retry.IdempotencyKey(ctx)]++
				return plain.Execute(ctx, func(ctx context.Context) (int, error) {
					attempts = append(attempts, 100*retry.Attempt(ctx)) // a pipeline without a retry is none
					return 0, errBoom
				})
			})
			return 0, errBoom
		})
		if diff := cmp.Diff([]int{1, 10, 100, 20, 200, 2, 10, 100, 20, 200}, attempts); diff != "" {
			a.Error(diff)
		}
		var counts []int
		for key, n := range keys {
			if key == "" {
				a.Error("an empty key inside")
			}
			counts = append(counts, n)
		}
		if len(keys) != 3 { // the outer call's, and one for each call of the inner
			a.Errorf("%d keys, used %v times", len(keys), counts)
		}
		if retry.Attempt(a.Context()) != 0 || retry.IdempotencyKey(a.Context()) != "" {
			a.Error("not empty outside")
		}
		_, _ = a.call(retry.WithIdempotencyKey(a.Context(), "k"), outer, func(ctx context.Context) (int, error) {
			return inner.Execute(ctx, func(ctx context.Context) (int, error) {
				if key := retry.IdempotencyKey(ctx); key != "k" {
					a.Errorf("key %q, want the one that was set outside", key)
				}
				return 0, nil
			})
		})
	})
}

func TestRetry_R14_BudgetSharedByName(t *testing.T) {
	inEveryForm(t, func(a *arena) {
		shared := retrying(retry.MaxAttempts(2), retry.Constant(0), retry.Budget(0, 5), retry.Name("shared"))
		one, two := build(a.world, "one", shared), build(a.world, "two", shared)
		denied, granted := 0, 0
		for i := range 12 {
			fn := a.plan(step{err: errBoom})
			_, err := a.call(a.Context(), []*pipeline.Pipeline[int]{one, two}[i%2], fn.run)
			a.is(err, errBoom)
			if errors.Is(err, retry.ErrBudget) {
				denied++
				if fn.calls() != 1 || !policy.Started(err) {
					a.Errorf("%d calls, %v", fn.calls(), err)
				}
			} else {
				granted++
			}
		}
		if granted != 5 || denied != 7 {
			a.Errorf("granted %d, denied %d; want exactly 5 at one instant", granted, denied)
		}
		if r := a.reg.Snapshot().Retries; len(r) != 1 || r[0].BudgetDenied != 7 || r[0].Retries != 5 || r[0].ID != "shared" {
			a.Errorf("%+v", r)
		}
	})
}
