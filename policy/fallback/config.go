package fallback

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/policy"
)

const (
	kind      = "fallback"
	codeRange = "R4C-ATR-003" // see docs/errors.md
)

// Config says which errors a fallback is for. The zero Config is valid: every
// error but the caller's own end. It has no settings for a configuration file:
// errors and functions exist in code alone.
//
//nolint:recvcheck // Apply writes to its receiver, the others belong to a value
type Config struct {
	// On lists errors, compared with errors.Is. With On or If given, one of
	// them must match.
	On []error `json:"-"`

	// If looks at the error itself. It must be safe for concurrent use; a panic
	// is published and is no match.
	If func(error) bool `json:"-"`

	// SkipOn lists errors, compared with errors.Is, for which the fallback is
	// never asked. It wins over On and If.
	SkipOn []error `json:"-"`
}

// Default is the zero Config.
func Default() Config { return Config{} }

// Apply applies opts to c in order and returns the names of what they touched
// ("on", "if", "skipOn"), each once. [On] and [SkipOn] add to what is there,
// without writing to a list that c shares with another Config; of two [If] the
// last one wins.
func (c *Config) Apply(opts ...Option) (keys []string) {
	for _, o := range opts {
		if o == nil {
			continue
		}
		o.apply(c)
		if key := o.key(); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Validate returns all mistakes in c, joined, each as a [policy.ConfigError];
// nil if there is none. A nil error in a list is one: it can't match anything.
func (c Config) Validate() error {
	var mistakes []error
	check := func(path string, errs []error) {
		for i, err := range errs {
			if err == nil {
				mistakes = append(mistakes, &policy.ConfigError{
					Code: codeRange, Policy: kind, Path: fmt.Sprintf("%s[%d]", path, i),
					Got: "nil is no error", Hint: "give the error to compare with",
				})
			}
		}
	}
	check("on", c.On)
	check("skipOn", c.SkipOn)
	return errors.Join(mistakes...)
}

// Matches reports whether the fallback is to be asked in place of err, the
// final error of a call of the pipeline id. callerEnded says that the call
// ended because its caller's context did; then only an On or an If that matches
// counts. A closed registry never matches. It is for package pipeline, which
// knows better than any error why a call ended.
func (c *Config) Matches(s *scope.Scope, ctx context.Context, id string, err error, callerEnded bool) bool { //nolint:revive // the scope is as good as a receiver
	if err == nil || errors.Is(err, scope.ErrClosed) || matchesAny(err, c.SkipOn) {
		return false
	}
	if c.If == nil && len(c.On) == 0 {
		return !callerEnded
	}
	return matchesAny(err, c.On) || c.If != nil && c.ask(s, ctx, id, err)
}

func (c *Config) ask(s *scope.Scope, ctx context.Context, id string, err error) (matches bool) { //nolint:revive // as Matches
	s.Guard(ctx, kind, id, func() { matches = c.If(err) })
	return matches
}

func matchesAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
