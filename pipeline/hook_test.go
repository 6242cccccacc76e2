package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// hooked makes a pipeline with one hook, and a plan that has it called.
type hooked struct {
	name  string
	build func(b *pipeline.Builder[int], hook func())
	step  step
	v     int
	err   error
}

func hooks() []hooked {
	twice := func(b *pipeline.Builder[int], o ...retry.Option) {
		b.Retry(append(o, retry.MaxAttempts(2), retry.Constant(0))...)
	}
	return []hooked{
		{"OnDiscard", func(b *pipeline.Builder[int], hook func()) { b.OnDiscard(func(int) { hook() }) }, step{takes: 2 * s, deaf: true, v: 7}, 0, timeout.ErrExceeded},
		{"RetryIf", func(b *pipeline.Builder[int], hook func()) {
			twice(b)
			b.RetryIf(func(int, error) bool { hook(); return false })
		}, step{err: errBoom}, 0, errBoom},
		{"If", func(b *pipeline.Builder[int], hook func()) {
			twice(b, retry.If(func(error) bool { hook(); return false }))
		}, step{err: errBoom}, 0, errBoom},
		{"AbortIf", func(b *pipeline.Builder[int], hook func()) {
			twice(b, retry.AbortIf(func(error) bool { hook(); return false }))
		}, step{err: errBoom}, 0, errBoom},
		{"DelayFunc", func(b *pipeline.Builder[int], hook func()) {
			twice(b, retry.DelayFunc(func(int, error) (time.Duration, bool) { hook(); return 0, true }))
		}, step{err: errBoom}, 0, errBoom},
		{"FailIf", func(b *pipeline.Builder[int], hook func()) {
			b.CircuitBreaker().FailIf(func(int, error) bool { hook(); return true })
		}, step{v: 7}, 7, nil},
		{"the fallback's If", func(b *pipeline.Builder[int], hook func()) {
			b.Fallback(func(context.Context, error) (int, error) { return 9, nil }, fallback.If(func(error) bool { hook(); return false }))
		}, step{err: errBoom}, 0, errBoom},
		{"timeout.Func", func(b *pipeline.Builder[int], hook func()) {
			b.Timeout(s, timeout.Func(func(context.Context) time.Duration { hook(); return s }))
		}, step{v: 7}, 7, nil},
	}
}

func (h *hooked) layers(hook func()) layers {
	return func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		h.build(b, hook)
		if h.name != "timeout.Func" {
			b.Timeout(s)
		}
		return b.Bulkhead(bulkhead.MaxConcurrent(1))
	}
}

func TestField_TO16_X3_AHookThatPanics(t *testing.T) {
	for _, h := range hooks() {
		t.Run(h.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				bad, asked := true, 0
				p := build(a.world, "x", h.layers(func() {
					asked++
					if bad {
						panic(h.name)
					}
				}))
				fn := a.plan(h.step)
				v, err := a.call(a.Context(), p, fn.run)
				a.advance(5 * s)
				if v != h.v || !errors.Is(err, h.err) || (err == nil) != (h.err == nil) {
					a.Errorf("got %d, %v; want %d, %v", v, err, h.v, h.err)
				}
				if h.name == "OnDiscard" && a.form == staged {
					return // the value stays the producer's
				}
				panics := heard[policy.CallbackPanic](a.world)
				if asked == 0 || len(panics) != asked || panics[0].Value != h.name || len(panics[0].Stack) == 0 {
					a.Errorf("asked %d times, panics %+v", asked, panics)
				}
				if b := a.bulkhead(); b.Available != 1 {
					a.Errorf("%+v", b)
				}
				bad = false
				if v, err := a.call(a.Context(), p, a.plan(step{v: 3}).run); v != 3 || err != nil {
					a.Errorf("the next call: %d, %v", v, err)
				}
			})
		})
	}
}

// No lock is held in a hook: it may take a snapshot and call the pipeline again.
func TestField_TO16_X3_AHookThatCallsBack(t *testing.T) {
	for _, h := range hooks() {
		t.Run(h.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				depth := 0
				var p *pipeline.Pipeline[int]
				var inner error
				p = build(a.world, "x", h.layers(func() {
					if depth++; depth > 1 {
						return
					}
					if n := len(a.reg.Snapshot().Pipelines); n != 1 {
						a.Errorf("snapshot with %d pipelines", n)
					}
					_, inner = p.Execute(a.Context(), returns(3, nil))
				}))
				_, _ = a.call(a.Context(), p, a.plan(h.step).run)
				a.advance(5 * s)
				if depth == 0 && !(h.name == "OnDiscard" && a.form == staged) {
					a.Error("not asked")
				}
				if inner != nil {
					a.Errorf("called from the hook: %v", inner)
				}
				if b := a.bulkhead(); b.Available != 1 {
					a.Errorf("%+v", b)
				}
			})
		})
	}
}
