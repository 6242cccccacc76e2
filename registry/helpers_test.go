package registry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
)

var (
	start   = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	errBoom = errors.New("boom")
)

// parse returns the configuration of a text that is right.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("resilience.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newRegistry makes a registry on a manual clock.
func newRegistry(t *testing.T, opts ...registry.Option) (*registry.Registry, *clock.Manual) {
	t.Helper()
	m := clock.NewManual(start)
	r, err := registry.New(append([]registry.Option{registry.WithClock(m)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

// built builds a pipeline that is right.
func built[T any](t *testing.T, b *pipeline.Builder[T]) *pipeline.Pipeline[T] {
	t.Helper()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mistake is what a ConfigError says that does not depend on a line of a test.
type mistake struct{ Code, Policy, ID, Path string }

// mistakes lists those of err, in their order.
func mistakes(err error) (all []mistake) {
	for _, e := range policy.ConfigErrors(err) {
		all = append(all, mistake{e.Code, e.Policy, e.ID, e.Path})
	}
	return all
}

// fail is a function that fails.
func fail(context.Context) (int, error) { return 0, errBoom }

// succeed is one that does not.
func succeed(context.Context) (int, error) { return 1, nil }

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []policy.Event
}

func (r *recorder) listen(_ context.Context, e policy.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) all() []policy.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]policy.Event(nil), r.events...)
}
