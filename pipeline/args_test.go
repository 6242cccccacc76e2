package pipeline_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
)

// Mistakes of the program panic at once, on the caller's goroutine, before
// anything is taken, in every form, with a text that names the argument.
func TestField_TO14_NilArguments(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Retry(retry.MaxAttempts(3)).RateLimit(ratelimit.Per(1, time.Hour)).Timeout(s).Bulkhead(bulkhead.MaxConcurrent(1)).CircuitBreaker()
	})
	plain := build(w, "plain", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b })
	var none *pipeline.Pipeline[int]
	var zero pipeline.Pipeline[int]
	fn := func(context.Context) (int, error) { t.Error("the function ran"); return 0, nil }
	run := func(context.Context) error { t.Error("the function ran"); return nil }
	stage := func(context.Context) *pipeline.Future[int] { t.Error("the function ran"); return nil }
	arg := func(context.Context, string) (int, error) { t.Error("the function ran"); return 0, nil }
	ctx := t.Context()
	var noCtx context.Context

	type form struct {
		name string
		call func(*pipeline.Pipeline[int])
		want string // in the text
	}
	withPipeline := []form{
		{"Execute", func(p *pipeline.Pipeline[int]) { _, _ = p.Execute(noCtx, fn) }, "ctx is nil"},
		{"Run", func(p *pipeline.Pipeline[int]) { _ = p.Run(noCtx, run) }, "ctx is nil"},
		{"ExecuteAsync", func(p *pipeline.Pipeline[int]) { p.ExecuteAsync(noCtx, fn) }, "ctx is nil"},
		{"ExecuteFuture", func(p *pipeline.Pipeline[int]) { p.ExecuteFuture(noCtx, stage) }, "ctx is nil"},
		{"Wrap", func(p *pipeline.Pipeline[int]) { _, _ = pipeline.Wrap(p, arg)(noCtx, "") }, "ctx is nil"},
		{"WrapAsync", func(p *pipeline.Pipeline[int]) { pipeline.WrapAsync(p, arg)(noCtx, "") }, "ctx is nil"},
		{"Execute", func(p *pipeline.Pipeline[int]) { _, _ = p.Execute(ctx, nil) }, "fn is nil"},
		{"Run", func(p *pipeline.Pipeline[int]) { _ = p.Run(ctx, nil) }, "fn is nil"},
		{"ExecuteAsync", func(p *pipeline.Pipeline[int]) { p.ExecuteAsync(ctx, nil) }, "fn is nil"},
		{"ExecuteFuture", func(p *pipeline.Pipeline[int]) { p.ExecuteFuture(ctx, nil) }, "fn is nil"},
		{"Wrap", func(p *pipeline.Pipeline[int]) { pipeline.Wrap[string](p, nil) }, "fn is nil"},
		{"WrapAsync", func(p *pipeline.Pipeline[int]) { pipeline.WrapAsync[string](p, nil) }, "fn is nil"},
	}
	withoutPipeline := []form{
		{"Execute", func(p *pipeline.Pipeline[int]) { _, _ = p.Execute(ctx, fn) }, "nil or zero Pipeline"},
		{"Run", func(p *pipeline.Pipeline[int]) { _ = p.Run(ctx, run) }, "nil or zero Pipeline"},
		{"ExecuteAsync", func(p *pipeline.Pipeline[int]) { p.ExecuteAsync(ctx, fn) }, "nil or zero Pipeline"},
		{"ExecuteFuture", func(p *pipeline.Pipeline[int]) { p.ExecuteFuture(ctx, stage) }, "nil or zero Pipeline"},
		{"Wrap", func(p *pipeline.Pipeline[int]) { pipeline.Wrap(p, arg) }, "nil or zero Pipeline"},
		{"WrapAsync", func(p *pipeline.Pipeline[int]) { pipeline.WrapAsync(p, arg) }, "nil or zero Pipeline"},
		{"As", func(p *pipeline.Pipeline[int]) { pipeline.As[string](p) }, "nil or zero Pipeline"},
		{"Bound", func(p *pipeline.Pipeline[int]) { p.Bound() }, "nil or zero Pipeline"},
	}
	before := w.reg.Snapshot()
	check := func(f form, p *pipeline.Pipeline[int]) {
		t.Helper()
		defer func() {
			t.Helper()
			text, ok := recover().(string)
			if !ok || !strings.HasPrefix(text, "pipeline: ") || !strings.Contains(text, f.want) {
				t.Errorf("%s: panicked with %q, want a text about %q", f.name, text, f.want)
			}
		}()
		f.call(p)
	}
	for _, f := range withPipeline {
		check(f, p)
		check(f, plain)
	}
	for _, f := range withoutPipeline {
		check(f, none)
		check(f, &zero)
	}
	if none.String() == "" || zero.String() != none.String() {
		t.Errorf("String: %q, %q", none, &zero)
	}
	if diff := cmp.Diff(before, w.reg.Snapshot(), ignoreFuncs); diff != "" {
		t.Errorf("something was taken or counted: %s", diff)
	}
}

// ignoreFuncs leaves out the functions of settings, which cannot be compared.
var ignoreFuncs = cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().Type().Kind() == reflect.Func
}, cmp.Ignore())

func TestField_TO14_TheTextNamesTheMethod(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", twoSeconds)
	for name, call := range map[string]func(){
		"Execute":       func() { _, _ = p.Execute(t.Context(), nil) },
		"Run":           func() { _ = p.Run(t.Context(), nil) },
		"ExecuteAsync":  func() { p.ExecuteAsync(t.Context(), nil) },
		"ExecuteFuture": func() { p.ExecuteFuture(t.Context(), nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) {
					t.Errorf("%s: %q", name, text)
				}
			}()
			call()
		}()
	}
	f := p.ExecuteAsync(t.Context(), returns(7, nil))
	for name, call := range map[string]func(){
		"Get":        func() { _, _ = f.Get(nil) }, //nolint:staticcheck // that is the mistake
		"OnComplete": func() { f.OnComplete(nil) },
		"OnCancel":   func() { pipeline.NewPromise[int]().OnCancel(nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) {
					t.Errorf("%s: %q", name, text)
				}
			}()
			call()
		}()
	}
	if v, err := f.Get(t.Context()); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

// An option that is nil says nothing: code that puts options together need not
// leave it out.
func TestBuilder_O1_NilOptionsAreSkipped(t *testing.T) {
	for name, l := range map[string]layers{
		"Fallback": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Fallback(func(context.Context, error) (int, error) { return 0, nil }, nil)
		},
		"CircuitBreaker": func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.CircuitBreaker(nil) },
		"Retry":          func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Retry(nil) },
		"RateLimit":      func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.RateLimit(ratelimit.Per(1, s), nil) },
		"Timeout":        func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Timeout(s, nil) },
		"Bulkhead": func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.Bulkhead(bulkhead.MaxConcurrent(1), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if v, err := build(w, "x", l).Execute(t.Context(), returns(7, nil)); v != 7 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
		})
	}
}

// What does not come along with As is not in its text either.
func TestAs_ItsTextHasNoFallback(t *testing.T) {
	w := newWorld(t)
	p := build(w, "x", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
		return b.Timeout(2 * s).Fallback(func(context.Context, error) (int, error) { return 9, nil })
	})
	as := pipeline.As[string](p)
	if got, want := as.String(), "x: timeout(2s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := p.String(), "x: fallback > timeout(2s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := as.Execute(t.Context(), func(context.Context) (string, error) { return "", errBoom }); err != errBoom { //nolint:errorlint // the very error
		t.Errorf("got %v", err)
	}
}

func TestBuild_G4_ANilRegistryHidesNoOtherMistake(t *testing.T) {
	_, err := pipeline.New[int](nil, "x").Timeout(time.Second).RetryIf(func(int, error) bool { return true }).Build()
	var paths []string
	for _, e := range policy.ConfigErrors(err) {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff([]string{"reg", "RetryIf"}, paths); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
