package retry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option changes settings of a [Config]. Options are values; those that carry
// no function or list are comparable.
type Option interface{ apply(*Config) }

// keyed is an option that says which settings it sets.
type keyed interface{ keys() []string }

// Apply applies opts to c in order, so that the last one wins; On and AbortOn
// append. It returns the names of the settings that were set, as a
// configuration file has them ("maxAttempts"), each once, in the order in which
// they were first set. Those that a file cannot express are named after their
// options: "on", "if", "abortOn", "abortIf", "delayFunc", "rand".
func (c *Config) Apply(opts ...Option) (keys []string) {
	for _, o := range opts {
		if o == nil {
			continue
		}
		o.apply(c)
		if k, ok := o.(keyed); ok {
			for _, key := range k.keys() {
				if !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys
}

// MaxAttempts bounds the number of calls, the first one included. It answers
// "how often may it be repeated", never "may it be repeated": see the package
// comment. Default 3.
func MaxAttempts(n int) Option { return attempts(n) }

// Unlimited retries until an attempt succeeds, the rules say no, or the time or
// the budget is over. Give it a MaxDuration or a deadline.
func Unlimited() Option { return attempts(unlimited) }

type attempts int

func (o attempts) apply(c *Config) { c.MaxAttempts = int(o) }
func (o attempts) keys() []string  { return []string{"maxAttempts"} }
func (o attempts) String() string {
	if o == unlimited {
		return "Unlimited()"
	}
	return "MaxAttempts(" + strconv.Itoa(int(o)) + ")"
}

// Constant waits d after every failed attempt; 0 does not wait.
func Constant(d time.Duration) Option { return backoff{shape: BackoffConstant, delay: d} }

// Linear waits d, 2d, 3d, …
func Linear(d time.Duration) Option { return backoff{shape: BackoffLinear, delay: d} }

// Exponential waits base, base × factor, base × factor², …; factor is at least
// 1. Default: 100 ms and 2.
func Exponential(base time.Duration, factor float64) Option {
	return backoff{BackoffExponential, base, factor}
}

type backoff struct {
	shape  Backoff
	delay  time.Duration
	factor float64
}

func (o backoff) apply(c *Config) {
	c.Backoff, c.Delay = o.shape, o.delay
	if o.shape == BackoffExponential {
		c.Factor = o.factor
	}
}

func (o backoff) keys() []string {
	if o.shape == BackoffExponential {
		return []string{"backoff", "delay", "factor"}
	}
	return []string{"backoff", "delay"}
}

func (o backoff) String() string {
	switch o.shape {
	case BackoffExponential:
		return fmt.Sprintf("Exponential(%v, %v)", o.delay, o.factor)
	case BackoffLinear:
		return fmt.Sprintf("Linear(%v)", o.delay)
	case BackoffConstant:
	}
	return fmt.Sprintf("Constant(%v)", o.delay)
}

// DelayFunc gives the delay after attempt (from 1), which ended with err. Not
// ok: the configured delay. Its answer gets no jitter; below zero is zero;
// MaxDelay caps it; a longer hint of the server wins. err is nil where a value
// is retried. It must be safe for concurrent use; a panic counts as not ok.
func DelayFunc(f func(attempt int, err error) (d time.Duration, ok bool)) Option {
	return delayFunc(f)
}

type delayFunc func(int, error) (time.Duration, bool)

func (o delayFunc) apply(c *Config) { c.DelayFunc = o }
func (o delayFunc) keys() []string  { return []string{"delayFunc"} }
func (o delayFunc) String() string  { return "DelayFunc(…)" }

// MaxDelay caps every delay: the backoff with its jitter, a DelayFunc's answer
// and a server's hint. 0: no cap. Default 30 s.
func MaxDelay(d time.Duration) Option { return maxDelay(d) }

type maxDelay time.Duration

func (o maxDelay) apply(c *Config) { c.MaxDelay = time.Duration(o) }
func (o maxDelay) keys() []string  { return []string{"maxDelay"} }
func (o maxDelay) String() string  { return fmt.Sprintf("MaxDelay(%v)", time.Duration(o)) }

// Jitter spreads a delay evenly over [1−fraction, 1+fraction] of itself, so that
// callers who failed together do not come back together. 0 to 1; default 0.
func Jitter(fraction float64) Option { return jitter(fraction) }

type jitter float64

func (o jitter) apply(c *Config) { c.Jitter = float64(o) }
func (o jitter) keys() []string  { return []string{"jitter"} }
func (o jitter) String() string  { return "Jitter(" + text(float64(o)) + ")" }

// FullJitter spreads a delay evenly over [0, delay]: the best spread, at the
// price of some retries at once. It excludes [Jitter].
func FullJitter() Option { return fullJitter{} }

type fullJitter struct{}

func (fullJitter) apply(c *Config) { c.FullJitter = true }
func (fullJitter) keys() []string  { return []string{"fullJitter"} }
func (fullJitter) String() string  { return "FullJitter()" }

// MaxDuration is one deadline for the whole call: attempts, waits and delays. No
// attempt and no delay is begun that cannot fit, and a running attempt's context
// ends with it. 0: none, the default.
func MaxDuration(d time.Duration) Option { return maxDuration(d) }

type maxDuration time.Duration

func (o maxDuration) apply(c *Config) { c.MaxDuration = time.Duration(o) }
func (o maxDuration) keys() []string  { return []string{"maxDuration"} }
func (o maxDuration) String() string  { return fmt.Sprintf("MaxDuration(%v)", time.Duration(o)) }

// Reserve keeps d back from MaxDuration and, where a delay is weighed, from the
// caller's deadline: time for the caller to do something with the outcome.
// Default 0.
func Reserve(d time.Duration) Option { return reserve(d) }

type reserve time.Duration

func (o reserve) apply(c *Config) { c.Reserve = time.Duration(o) }
func (o reserve) keys() []string  { return []string{"reserve"} }
func (o reserve) String() string  { return fmt.Sprintf("Reserve(%v)", time.Duration(o)) }

// On narrows what is retried to errors that match one of errs by [errors.Is],
// or the predicate of [If]. Naming an open breaker's or a full bulkhead's error
// here also asks for what the default rule leaves out. It appends. It answers
// "may be retried"; whether the work may be repeated only its author knows.
func On(errs ...error) Option { return on(slices.Clone(errs)) }

type on []error

func (o on) apply(c *Config) { c.On = append(slices.Clip(c.On), o...) }
func (o on) keys() []string  { return []string{"on"} }
func (o on) String() string  { return list("On", o) }

// If narrows what is retried to errors for which f is true, or that match [On].
// f must be safe for concurrent use; a panic counts as false.
func If(f func(err error) bool) Option { return ifFunc(f) }

type ifFunc func(error) bool

func (o ifFunc) apply(c *Config) { c.If = o }
func (o ifFunc) keys() []string  { return []string{"if"} }
func (o ifFunc) String() string  { return "If(…)" }

// AbortOn never retries errors that match one of errs by [errors.Is]; it wins
// over [On] and [If]. It appends.
func AbortOn(errs ...error) Option { return abortOn(slices.Clone(errs)) }

type abortOn []error

func (o abortOn) apply(c *Config) { c.AbortOn = append(slices.Clip(c.AbortOn), o...) }
func (o abortOn) keys() []string  { return []string{"abortOn"} }
func (o abortOn) String() string  { return list("AbortOn", o) }

// AbortIf never retries errors for which f is true; it wins over [On] and [If].
// f must be safe for concurrent use; a panic counts as false.
func AbortIf(f func(err error) bool) Option { return abortIf(f) }

type abortIf func(error) bool

func (o abortIf) apply(c *Config) { c.AbortIf = o }
func (o abortIf) keys() []string  { return []string{"abortIf"} }
func (o abortIf) String() string  { return "AbortIf(…)" }

// Budget bounds the retries of all calls of the instance together, so that they
// cannot multiply the load on something that is down already: ratio retries per
// call over the last ten seconds, plus a floor of minPerSecond. See
// [BudgetConfig]. It costs each call a reading of the clock. Default: none.
func Budget(ratio, minPerSecond float64) Option { return budgetOption{ratio, minPerSecond} }

type budgetOption BudgetConfig

func (o budgetOption) apply(c *Config) { c.Budget = &BudgetConfig{o.Ratio, o.MinPerSecond} }
func (o budgetOption) keys() []string  { return []string{"budget"} }
func (o budgetOption) String() string {
	return "Budget(" + text(o.Ratio) + ", " + text(o.MinPerSecond) + ")"
}

// Rand gives the random numbers for jitter, in [0, 1]; others are clamped, and
// NaN or a panic counts as 0.5. The same sequence gives the same delays. f must
// be safe for concurrent use. Default: math/rand/v2.
func Rand(f func() float64) Option { return randFunc(f) }

type randFunc func() float64

func (o randFunc) apply(c *Config) { c.Rand = o }
func (o randFunc) keys() []string  { return []string{"rand"} }
func (o randFunc) String() string  { return "Rand(…)" }

// Name shares one instance, with its budget and its counters, between pipelines.
// It changes no setting; builders read it with [NameOf]. Without it the instance
// has the pipeline's id.
func Name(id string) Option { return name(id) }

type name string

func (o name) apply(*Config)  {}
func (o name) String() string { return "Name(" + strconv.Quote(string(o)) + ")" }

// NameOf returns the id that the last [Name] in opts gives. It is for builders.
func NameOf(opts ...Option) (id string, ok bool) {
	for _, o := range opts {
		if n, is := o.(name); is {
			id, ok = string(n), true
		}
	}
	return id, ok
}

func list(option string, errs []error) string {
	var b strings.Builder
	b.WriteString(option + "(")
	for i, err := range errs {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, err)
	}
	b.WriteString(")")
	return b.String()
}
