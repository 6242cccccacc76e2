package registry

import (
	"errors"
	"log/slog"
	"strconv"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// The codes of this package's mistakes; docs/errors.md lists them.
const (
	codeArgument  = "R4C-REG-009" // an option or an argument is nil
	codeSettings  = "R4C-REG-010" // other settings than those of what exists
	codeFunctions = "R4C-REG-011" // functions for what exists
	codeListed    = "R4C-REG-012" // the configuration does not list the id or the layer
	codeShape     = "R4C-REG-013" // a reload that changes layers
	codeBase      = "R4C-REG-004" // as in package config: unknown config referenced
	codeID        = "R4C-ATR-004" // as everywhere
)

// Option is an option of [New].
type Option interface{ apply(*options) }

type options struct {
	config    *config.Config
	clock     clock.Clock
	listeners []policy.Listener
	mistakes  mistakes
}

type option func(*options)

func (f option) apply(o *options) { f(o) }

// WithConfig gives the registry its configuration; see [Registry.Reload] to
// change it. Without one it is empty. The last one wins.
func WithConfig(c *config.Config) Option {
	return option(func(o *options) {
		if o.config = c; c == nil {
			o.missing("WithConfig", 0)
		}
	})
}

// WithClock gives the registry its clock; without one it is the system's. The
// last one wins.
func WithClock(c clock.Clock) Option {
	return option(func(o *options) {
		if o.clock = c; setting.Clock("registry", "", c) != nil {
			o.missing("WithClock", 0)
		}
	})
}

// WithListener makes l hear all events of the registry's pipelines and policies.
// It may be given several times: all listeners hear all events, in the order in
// which they were given, also if one of them panics.
func WithListener(l policy.Listener) Option {
	return option(func(o *options) {
		if l == nil {
			o.missing("WithListener", 0)
			return
		}
		o.listeners = append(o.listeners, l)
	})
}

// WithLogger writes the events to l as structured records, with the context of
// the call: a breaker that opens, timeouts, calls that were given up and late
// outcomes at the level Warn; other changes of a breaker's state at Info; retries,
// fallbacks and refusals at Debug; panics of callbacks at Error.
//
// Of the refusals of one instance within a second only the first is written. The
// next one after that second is written with the number of those that were not, as
// "more". Nothing is written when refusals end: the last of them may be in the
// counters of the snapshot alone.
func WithLogger(l *slog.Logger) Option {
	return option(func(o *options) {
		if l == nil {
			o.missing("WithLogger", 0)
			return
		}
		o.listeners = append(o.listeners, newLogger(l).listen)
	})
}

// missing notes that what the named option was given, or the option with a
// number, is nil.
func (o *options) missing(name string, number int) {
	e := policy.ConfigError{
		Code: codeArgument, Policy: "registry", Path: name,
		Got: "the argument is nil", Hint: "leave the option out if there is nothing to give",
	}
	if number > 0 {
		e.Got = "option " + strconv.Itoa(number) + " is nil"
	}
	o.mistakes.add(e)
}

func (m *mistakes) join() error { return errors.Join(*m...) }
