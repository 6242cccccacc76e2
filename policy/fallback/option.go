package fallback

import (
	"fmt"
	"slices"
)

// Option changes a [Config]. Options are data: they may be printed, kept, and
// given to several pipelines.
type Option interface {
	fmt.Stringer
	apply(*Config)
	key() string
}

// On makes the fallback one for these errors, compared with errors.Is. Two On
// options add up.
func On(errs ...error) Option { return on{slices.Clone(errs)} }

type on struct{ errs []error }

// A fresh list: the one that c has may be another Config's too.
func (o on) apply(c *Config) { c.On = slices.Concat(c.On, o.errs) }
func (o on) key() string     { return "on" }
func (o on) String() string  { return fmt.Sprintf("on%q", o.errs) }

// If makes the fallback one for the errors of which f says so, besides those of
// [On]; nil takes that back. f is never asked about nil, must be safe for
// concurrent use, and says no if it panics.
func If(f func(error) bool) Option { return onlyIf{f} }

type onlyIf struct{ f func(error) bool }

func (o onlyIf) apply(c *Config) { c.If = o.f }
func (o onlyIf) key() string     { return "if" }
func (o onlyIf) String() string  { return "if(func)" }

// SkipOn takes these errors, compared with errors.Is, out of what the fallback
// is for. It wins over [On] and [If]. Two SkipOn options add up.
func SkipOn(errs ...error) Option { return skipOn{slices.Clone(errs)} }

type skipOn struct{ errs []error }

func (o skipOn) apply(c *Config) { c.SkipOn = slices.Concat(c.SkipOn, o.errs) }
func (o skipOn) key() string     { return "skipOn" }
func (o skipOn) String() string  { return fmt.Sprintf("skipOn%q", o.errs) }
