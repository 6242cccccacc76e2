package pipeline

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"resilience4cata.dev/go/internal/stack"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

// Builder collects the layers of a pipeline. Each layer may be asked for once;
// the order of the calls never matters, since the order of the layers is fixed.
// Mistakes are collected and come out of Build, all of them, joined. A Builder
// belongs to one goroutine; make it with [New] or [Configured].
type Builder[T any] struct {
	reg      *registry.Registry
	spec     stack.Spec
	hooks    hooks[T]
	mistakes []error
	built    bool
}

// New begins a pipeline with the given id in reg. It has the layers that code
// asks for; the configuration may change their settings and switch them off,
// and never adds one. Ids live as long as the registry: never make one per user
// or request.
func New[T any](reg *registry.Registry, id string) *Builder[T] {
	return &Builder[T]{reg: reg, spec: stack.Spec{ID: id}}
}

// Configured begins a pipeline that has the layers that the registry's
// configuration lists for id. Code may add options and hooks to them, and no
// layers. An id that the configuration does not have is an error of Build.
func Configured[T any](reg *registry.Registry, id string) *Builder[T] {
	return &Builder[T]{reg: reg, spec: stack.Spec{ID: id, Configured: true}}
}

// Must returns p, and panics if err is not nil. It is for pipelines in package
// variables and in main.
func Must[T any](p *Pipeline[T], err error) *Pipeline[T] {
	if err != nil {
		panic(err)
	}
	return p
}

// Fallback adds the outermost layer: f is asked once for a value in place of
// the call's final error, after the last attempt, for errors that the options
// match; never for a closed registry, and for the caller's own end only if an
// option asks for it. It gets the caller's context and is not bounded by the
// timeout. If it fails too, the caller's error matches both.
func (b *Builder[T]) Fallback(f func(ctx context.Context, err error) (T, error), opts ...fallback.Option) *Builder[T] {
	b.once("fallback", b.spec.Fallback)
	if f == nil {
		b.mistake("fallback", "f", "the function is nil", "give a function, or leave the layer out")
	}
	b.spec.Fallback = true
	b.hooks.fallback = f
	b.hooks.asked.Apply(opts...)
	return b
}

// Retry adds a retry around all layers but the fallback. Without options it makes
// three attempts, see [retry.Default].
func (b *Builder[T]) Retry(opts ...retry.Option) *Builder[T] {
	b.once("retry", b.spec.Retry != nil)
	l := &stack.Layer[retry.Config]{}
	l.Keys = l.Config.Apply(opts...)
	name, given := retry.NameOf(opts...)
	l.Name = b.name("retry", name, given)
	b.spec.Retry = l
	return b
}

// RetryIf lets f decide, after each attempt, whether it is retried: it sees
// values as well as errors, those of a refused attempt included. It replaces the
// options On, If, AbortOn and AbortIf, and needs Retry. What may never be
// retried is not, and an attempt that MaxDuration has ended is the last. A panic
// of f says no.
func (b *Builder[T]) RetryIf(f func(v T, err error) bool) *Builder[T] {
	b.hook("RetryIf", b.hooks.retryIf != nil, f == nil)
	b.hooks.retryIf = f
	return b
}

// CircuitBreaker adds a circuit breaker, asked once per attempt. Without options
// it is that of [circuitbreaker.Default].
func (b *Builder[T]) CircuitBreaker(opts ...circuitbreaker.Option) *Builder[T] {
	b.once("circuitbreaker", b.spec.Breaker != nil)
	l := &stack.Layer[circuitbreaker.Config]{}
	l.Keys = l.Config.Apply(opts...)
	name, given := circuitbreaker.NameOf(opts...)
	l.Name = b.name("circuitbreaker", name, given)
	b.spec.Breaker = l
	return b
}

// FailIf lets f decide what the breaker counts as a failure: it sees values as
// well as errors. It needs CircuitBreaker. A panic of f counts as the error
// says.
func (b *Builder[T]) FailIf(f func(v T, err error) bool) *Builder[T] {
	b.hook("FailIf", b.hooks.failIf != nil, f == nil)
	b.hooks.failIf = f
	return b
}

// RateLimit adds a rate limiter, asked once per attempt, outside the timeout. It
// needs a rate, such as [ratelimit.PerSecond], from an option, the configuration
// or the instance that [ratelimit.Name] names; see [ratelimit.Default] for the
// rest.
func (b *Builder[T]) RateLimit(opts ...ratelimit.Option) *Builder[T] {
	b.once("ratelimit", b.spec.Limiter != nil)
	l := &stack.Layer[ratelimit.Config]{}
	l.Keys = l.Config.Apply(opts...)
	name, given := ratelimit.NameOf(opts...)
	l.Name = b.name("ratelimit", name, given)
	b.spec.Limiter = l
	return b
}

// Timeout adds a timeout of d per attempt; 0 means that the configuration must
// give the value. It bounds the wait for a bulkhead slot as well, and not the
// wait for a rate permit.
func (b *Builder[T]) Timeout(d time.Duration, opts ...timeout.Option) *Builder[T] {
	b.once("timeout", b.spec.Timeout != nil)
	l := &stack.Layer[timeout.Config]{}
	l.Keys = l.Config.Apply(opts...)
	if d != 0 {
		l.Config.Value = d
		l.Keys = append(l.Keys, "value")
	}
	b.spec.Timeout = l
	return b
}

// Bulkhead adds a bulkhead, the innermost layer. It needs a limit,
// [bulkhead.MaxConcurrent], from an option, the configuration or the instance that
// [bulkhead.Name] names; see [bulkhead.Default] for the rest.
func (b *Builder[T]) Bulkhead(opts ...bulkhead.Option) *Builder[T] {
	b.once("bulkhead", b.spec.Bulkhead != nil)
	l := &stack.Layer[bulkhead.Config]{}
	l.Keys = l.Config.Apply(opts...)
	name, given := bulkhead.NameOf(opts...)
	l.Name = b.name("bulkhead", name, given)
	b.spec.Bulkhead = l
	return b
}

// OnDiscard gets, at most once each, the values that no caller will get: late
// ones, and those of superseded attempts. Set it where values belong to the
// call, to close them. A panic of f is contained.
func (b *Builder[T]) OnDiscard(f func(v T)) *Builder[T] {
	b.hook("OnDiscard", b.hooks.onDiscard != nil, f == nil)
	b.hooks.onDiscard = f
	return b
}

// Config names configs.<name> of the configuration as the base that the code's
// options stand on.
func (b *Builder[T]) Config(name string) *Builder[T] {
	if b.spec.Base != "" {
		b.mistake(kind, "Config", "asked for twice", "call Config once")
	}
	if name == "" {
		b.mistake(kind, "Config", "the name is empty", "give the name of an entry of configs")
	}
	b.spec.Base = name
	return b
}

// Build makes the pipeline, or returns all mistakes, joined, each a
// [policy.ConfigError]; then nothing is registered. On a closed registry the error
// is registry.ErrClosed. An id may be built again, also with another result type:
// equal settings join one record, others are an error. A Builder builds once.
func (b *Builder[T]) Build() (*Pipeline[T], error) {
	_, file, line, _ := runtime.Caller(1)
	b.spec.Place = filepath.Base(file) + ":" + strconv.Itoa(line)
	if b.built {
		b.mistake(kind, "Build", "called twice on one builder", "begin a new one with pipeline.New")
	}
	b.built = true
	if b.reg == nil {
		b.mistake(kind, "reg", "the registry is nil", "make one with registry.New")
		_ = b.checkHooks(b.spec.Retry != nil, b.spec.Breaker != nil) // appends to b.mistakes
		return nil, errors.Join(b.mistakes...)
	}
	s, err := b.reg.Build(b.spec, b.checkHooks) // appends to b.mistakes
	if err = errors.Join(append(b.mistakes, err)...); err != nil {
		return nil, err
	}
	return &Pipeline[T]{stack: s, hooks: b.hooks}, nil
}

// checkHooks looks whether the layers that the hooks need are there, once the
// registry knows them. It returns all mistakes that the builder has collected:
// where there are any, nothing is registered.
func (b *Builder[T]) checkHooks(hasRetry, hasBreaker bool) error {
	if b.hooks.retryIf != nil && !hasRetry {
		b.mistake("retry", "RetryIf", "set without a retry layer", "add Retry, or leave RetryIf out")
	}
	if b.hooks.failIf != nil && !hasBreaker {
		b.mistake("circuitbreaker", "FailIf", "set without a circuit breaker", "add CircuitBreaker, or leave FailIf out")
	}
	if err := b.hooks.asked.Validate(); err != nil {
		for _, e := range policy.ConfigErrors(err) {
			e.ID = b.spec.ID
		}
		b.mistakes = append(b.mistakes, err)
	}
	if len(b.mistakes) == 0 {
		return nil
	}
	return stack.ErrBuilder
}

// name takes what NameOf says: an empty name that was given is a mistake.
func (b *Builder[T]) name(layer, id string, given bool) string {
	if given && id == "" {
		b.mistakes = append(b.mistakes, &policy.ConfigError{
			Code: "R4C-ATR-004", Policy: layer, ID: b.spec.ID, Path: "name",
			Got: "the name is empty", Hint: "give the shared instance's id, or leave Name out",
		})
	}
	return id
}

func (b *Builder[T]) once(layer string, again bool) {
	if again {
		b.mistake(layer, "", "the layer was asked for twice", "give all options in one call")
	}
}

func (b *Builder[T]) hook(name string, again, isNil bool) {
	if again {
		b.mistake(kind, name, "set twice", "set it once")
	}
	if isNil {
		b.mistake(kind, name, "the function is nil", "give a function, or leave it out")
	}
}

func (b *Builder[T]) mistake(layer, path, got, hint string) {
	b.mistakes = append(b.mistakes, &policy.ConfigError{
		Code: "R4C-BLD-001", Policy: layer, ID: b.spec.ID, Path: path, Got: got, Hint: hint,
	})
}
