package retry

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

const policyName = "retry" // in errors, events and files

// unlimited is Config.MaxAttempts without a bound.
const unlimited = -1

// Backoff is the shape of the delays between attempts. The empty text means
// [BackoffConstant]; New puts the name in.
type Backoff string

// The shapes, where n is the number of the attempt that has just ended, from 1.
const (
	BackoffConstant    Backoff = "constant"    // Delay
	BackoffLinear      Backoff = "linear"      // Delay × n
	BackoffExponential Backoff = "exponential" // Delay × Factor^(n−1)
)

// BudgetConfig bounds how many retries all calls of an instance may make
// together: over the last ten seconds, Ratio × calls, plus a floor for times of
// little traffic, a bucket that refills at MinPerSecond tokens a second and
// holds max(1, MinPerSecond). Both zero: no retry at all.
type BudgetConfig struct {
	Ratio        float64 `json:"ratio"`        // retries per call; 0: only the floor
	MinPerSecond float64 `json:"minPerSecond"` // tokens per second; 0: no floor
}

// Config holds the settings of a retry. It is plain data: copy it, compare it.
// Start from [Default] and [Config.Apply] options, or fill it in; what a zero
// field means is said with each.
type Config struct { //nolint:recvcheck // Apply changes it, the rest only reads
	// MaxAttempts counts the first call. −1 is unlimited; 0 is a mistake.
	MaxAttempts int `json:"maxAttempts"`
	// Backoff is the shape of the delays.
	Backoff Backoff `json:"backoff"`
	// Delay is the base of the delays. 0: attempts follow each other at once.
	Delay time.Duration `json:"delay"`
	// Factor is what an exponential delay grows by, at least 1; other shapes
	// ignore it.
	Factor float64 `json:"factor"`
	// MaxDelay caps every delay, a server's hint included. 0: no cap but the
	// longest duration there is.
	MaxDelay time.Duration `json:"maxDelay"`
	// Jitter spreads a delay evenly over [1−Jitter, 1+Jitter] of itself; 0 to
	// 1, where 0 means exactly the delay.
	Jitter float64 `json:"jitter"`
	// FullJitter spreads a delay evenly over [0, delay]. It excludes Jitter.
	FullJitter bool `json:"fullJitter"`
	// MaxDuration bounds the whole call: attempts, waits and delays. 0: no
	// bound of its own.
	MaxDuration time.Duration `json:"maxDuration"`
	// Reserve is kept back from MaxDuration and from the caller's deadline, for
	// what the caller does after the call.
	Reserve time.Duration `json:"reserve"`
	// Budget bounds the retries of all calls together. nil: no bound.
	Budget *BudgetConfig `json:"budget,omitempty"`

	// On and If narrow what is retried: if either is given, an error must match
	// one of them.
	On []error              `json:"-"`
	If func(err error) bool `json:"-"`
	// AbortOn and AbortIf are never retried; they win over On and If.
	AbortOn []error              `json:"-"`
	AbortIf func(err error) bool `json:"-"`
	// DelayFunc gives the delay after the given attempt, which ended with err;
	// not ok: the configured one.
	DelayFunc func(attempt int, err error) (d time.Duration, ok bool) `json:"-"`
	// Rand gives the numbers in [0, 1] that jitter uses. nil: math/rand/v2.
	Rand func() float64 `json:"-"`
}

// Default returns the settings of a retry that names none: three attempts,
// exponential delays from 100 ms by a factor of 2 up to 30 s, without jitter,
// bound or budget.
func Default() Config {
	return Config{
		MaxAttempts: 3,
		Backoff:     BackoffExponential,
		Delay:       100 * time.Millisecond,
		Factor:      2,
		MaxDelay:    30 * time.Second,
	}
}

// Validate returns every mistake in c, joined, each a [*policy.ConfigError].
func (c Config) Validate() error {
	var v validation
	if c.MaxAttempts == 0 || c.MaxAttempts < unlimited {
		v.add("R4C-ATR-003", "maxAttempts", strconv.Itoa(c.MaxAttempts)+" is no number of attempts",
			"the first call counts: give at least 1, or -1 for unlimited")
	}
	switch c.Backoff {
	case "", BackoffConstant, BackoffLinear, BackoffExponential:
	default:
		v.add("R4C-ATR-003", "backoff", strconv.Quote(string(c.Backoff))+" is no backoff",
			`give "constant", "linear" or "exponential"`)
	}
	v.duration("delay", c.Delay)
	v.duration("maxDelay", c.MaxDelay)
	v.duration("maxDuration", c.MaxDuration)
	v.duration("reserve", c.Reserve)
	least := 0.0
	if c.Backoff == BackoffExponential {
		least = 1
	}
	v.number("factor", c.Factor, least, math.MaxFloat64)
	v.number("jitter", c.Jitter, 0, 1)
	if c.FullJitter && c.Jitter != 0 {
		v.add("R4C-ATR-007", "fullJitter", "given together with a jitter of "+text(c.Jitter),
			"full jitter spreads over [0, delay], jitter around the delay: drop one")
	}
	if c.MaxDuration > 0 && c.Reserve >= c.MaxDuration {
		v.add("R4C-ATR-007", "reserve", c.Reserve.String()+" leaves nothing of a maxDuration of "+c.MaxDuration.String(),
			"give a reserve below maxDuration")
	}
	if c.Budget != nil {
		v.number("budget.ratio", c.Budget.Ratio, 0, math.MaxFloat64)
		v.number("budget.minPerSecond", c.Budget.MinPerSecond, 0, math.MaxFloat64)
	}
	v.listed("on", c.On)
	v.listed("abortOn", c.AbortOn)
	return errors.Join(v...)
}

// validation collects mistakes.
type validation []error

func (v *validation) add(code, path, got, hint string) {
	*v = append(*v, &policy.ConfigError{Code: code, Policy: policyName, Path: path, Got: got, Hint: hint})
}

func (v *validation) duration(path string, d time.Duration) {
	if d < 0 {
		v.add("R4C-ATR-003", path, d.String()+" is negative", "give 0 or more")
	}
}

// number wants x in [least, most], neither NaN nor infinite.
func (v *validation) number(path string, x, least, most float64) {
	if x >= least && x <= most {
		return
	}
	hint := "give a finite number of at least " + text(least)
	if most < math.MaxFloat64 {
		hint = "give a number from " + text(least) + " to " + text(most)
	}
	v.add("R4C-ATR-003", path, text(x)+" is out of range", hint)
}

func (v *validation) listed(path string, errs []error) {
	if slices.Contains(errs, nil) {
		v.add("R4C-ATR-003", path, "a nil error is in the list", "nothing matches nil: leave it out")
	}
}

func text(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// MarshalJSON writes c as the configuration file would have it: durations as Go
// duration text, explicit zeros included. Unlimited attempts are −1; without a
// budget there is no such key; lists of errors and functions have no text.
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		MaxAttempts int           `json:"maxAttempts"`
		Backoff     Backoff       `json:"backoff"`
		Delay       string        `json:"delay"`
		Factor      float64       `json:"factor"`
		MaxDelay    string        `json:"maxDelay"`
		Jitter      float64       `json:"jitter"`
		FullJitter  bool          `json:"fullJitter"`
		MaxDuration string        `json:"maxDuration"`
		Reserve     string        `json:"reserve"`
		Budget      *BudgetConfig `json:"budget,omitempty"`
	}{
		c.MaxAttempts, c.Backoff, c.Delay.String(), c.Factor, c.MaxDelay.String(), c.Jitter, c.FullJitter,
		c.MaxDuration.String(), c.Reserve.String(), c.Budget,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config // without this method
	text := struct {
		*plain
		Delay       *setting.Duration `json:"delay"`
		MaxDelay    *setting.Duration `json:"maxDelay"`
		MaxDuration *setting.Duration `json:"maxDuration"`
		Reserve     *setting.Duration `json:"reserve"`
	}{
		(*plain)(c), (*setting.Duration)(&c.Delay), (*setting.Duration)(&c.MaxDelay),
		(*setting.Duration)(&c.MaxDuration), (*setting.Duration)(&c.Reserve),
	}
	return json.Unmarshal(data, &text)
}

// clone returns a copy that shares no slice and no pointer with c.
func (c Config) clone() Config {
	c.On, c.AbortOn = slices.Clone(c.On), slices.Clone(c.AbortOn)
	if c.Budget != nil {
		b := *c.Budget
		c.Budget = &b
	}
	return c
}
