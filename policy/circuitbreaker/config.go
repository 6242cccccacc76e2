package circuitbreaker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

// Codes of the mistakes that Validate and New report; see docs/errors.md.
const (
	codeRange    = "R4C-ATR-003"
	codeID       = "R4C-ATR-004"
	codeConflict = "R4C-ATR-007"
)

// maxWindow bounds the memory of a count window: a million samples take two
// bits each, a quarter of a megabyte. A window that long should be a
// [TimeWindow], whose size does not depend on the traffic.
const maxWindow = 1 << 20

// Config holds the settings of a breaker as plain data. The zero Config is not
// valid: begin with [Default] and change it with [Config.Apply]. The field
// names are the keys of the configuration file in CamelCase.
//
//nolint:recvcheck // Apply writes to its receiver, the others belong to a value
type Config struct {
	// FailureRatio, above 0 and at most 1, is the share of failures among the
	// samples in the window at and above which the breaker opens. With 1 it
	// opens only when every sample in the window failed.
	FailureRatio float64 `json:"failureRatio"`

	// MinCalls, at least 1, is how many samples the window must hold before a
	// ratio means anything. It can't be above Window.
	MinCalls int `json:"minCalls"`

	// Window is the size of the count window: the last Window samples count,
	// however old. From 1 to 1,048,576; not used while TimeWindow is set.
	Window int `json:"window,omitempty"`

	// TimeWindow, if above 0, replaces the count window: the samples of the
	// last TimeWindow count, however many. The window moves in tenths of its
	// length, so that a sample counts for nine to ten tenths of it.
	TimeWindow time.Duration `json:"timeWindow,omitempty"`

	// OpenFor is how long the breaker stays open before it lets probes through,
	// and how long probes that never come back keep others from being tried.
	// 0: the breaker refuses nobody and only tells its state.
	OpenFor time.Duration `json:"openFor"`

	// HalfOpenCalls, at least 1, is how many probes decide whether the breaker
	// closes again, and how many may be under way at once.
	HalfOpenCalls int `json:"halfOpenCalls"`

	// SlowCall, if above 0, makes every call that takes that long or longer a
	// slow one, whatever its outcome. 0: no call is slow, and no clock is read
	// to find out.
	SlowCall time.Duration `json:"slowCall,omitempty"`

	// SlowRatio, above 0 and at most 1, is the share of slow calls at and above
	// which the breaker opens. It is used, and needed, only with SlowCall.
	SlowRatio float64 `json:"slowRatio,omitempty"`

	// CountRejections makes refusals of the limiter and the bulkhead behind
	// the breaker failures. Package pipeline asks for it; the breaker itself
	// sees only what is recorded.
	CountRejections bool `json:"countRejections,omitempty"`

	// FailIf decides whether an error is a failure. nil: every error is. It is
	// never asked about nil, which is a success, nor about what Ignore lists.
	// It must be safe for concurrent use; if it panics, the error counts as a
	// failure and the panic is published.
	FailIf func(error) bool `json:"-"`

	// Ignore lists errors, compared with errors.Is, that are no sample at all:
	// neither success nor failure. It wins over FailIf.
	Ignore []error `json:"-"`
}

// Default returns the settings that a breaker has where nothing else is said:
// it opens when half of the last 100 calls failed, of which there must be at
// least 20, stays open for 5 s, and closes after one good probe.
func Default() Config {
	return Config{
		FailureRatio:  .5,
		MinCalls:      20,
		Window:        100,
		OpenFor:       5 * time.Second,
		HalfOpenCalls: 1,
	}
}

// Apply applies opts to c in order, so that of two for the same setting the
// last one wins, and returns the keys of the settings that they touched, each
// once, in the order in which they were first touched. [Ignore] adds to what is
// there, without writing to a list that c shares with another Config.
func (c *Config) Apply(opts ...Option) (keys []string) {
	for _, o := range opts {
		if o == nil {
			continue
		}
		o.apply(c)
		for _, key := range o.keys() {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// Validate returns all mistakes in c, joined, each as a [policy.ConfigError];
// nil if there is none.
func (c Config) Validate() error {
	var mistakes []error
	add := func(code, path, got, hint string) {
		mistakes = append(mistakes, &policy.ConfigError{Code: code, Policy: kind, Path: path, Got: got, Hint: hint})
	}
	if !(c.FailureRatio > 0 && c.FailureRatio <= 1) { // NaN fails every comparison
		add(codeRange, "failureRatio", number(c.FailureRatio)+" is not a ratio", "give a number above 0 and at most 1")
	}
	if c.MinCalls < 1 {
		add(codeRange, "minCalls", strconv.Itoa(c.MinCalls)+" is below 1", "give at least 1")
	}
	switch {
	case c.TimeWindow < 0:
		add(codeRange, "timeWindow", c.TimeWindow.String()+" is negative", "give a duration above 0, or 0 for a count window")
	case c.Window < 0, c.Window == 0 && c.TimeWindow == 0:
		add(codeRange, "window", strconv.Itoa(c.Window)+" is below 1", "give at least 1, or a time window")
	case c.Window > maxWindow:
		add(codeRange, "window", strconv.Itoa(c.Window)+" is above "+strconv.Itoa(maxWindow), "give fewer calls, or a time window")
	case c.TimeWindow == 0 && c.MinCalls > c.Window:
		add(codeConflict, "minCalls", fmt.Sprintf("%d is above the window of %d: the breaker could never open", c.MinCalls, c.Window),
			"lower minCalls or give a larger window")
	}
	if c.OpenFor < 0 {
		add(codeRange, "openFor", c.OpenFor.String()+" is negative", "give a duration of 0 or more")
	}
	if c.HalfOpenCalls < 1 {
		add(codeRange, "halfOpenCalls", strconv.Itoa(c.HalfOpenCalls)+" is below 1", "give at least 1")
	} else if c.HalfOpenCalls > math.MaxInt32 {
		add(codeRange, "halfOpenCalls", strconv.Itoa(c.HalfOpenCalls)+" is above "+strconv.Itoa(math.MaxInt32), "give fewer")
	}
	if c.SlowCall < 0 {
		add(codeRange, "slowCall", c.SlowCall.String()+" is negative", "give a duration above 0, or 0 for none")
	}
	switch {
	case !(c.SlowRatio >= 0 && c.SlowRatio <= 1):
		add(codeRange, "slowRatio", number(c.SlowRatio)+" is not a ratio", "give a number above 0 and at most 1")
	case c.SlowCall > 0 && c.SlowRatio == 0:
		add(codeConflict, "slowRatio", "0 with a slowCall of "+c.SlowCall.String(), "give the ratio of slow calls that opens the breaker, above 0 and at most 1")
	}
	for i, err := range c.Ignore {
		if err == nil {
			add(codeRange, fmt.Sprintf("ignore[%d]", i), "nil is no error", "give the error to ignore")
		}
	}
	return errors.Join(mistakes...)
}

// MarshalJSON writes all settings that are in force, explicit zeros included,
// durations as Go writes them ("5s"). While a time window is set, "window" is
// 0. FailIf and Ignore have no text and are left out.
func (c Config) MarshalJSON() ([]byte, error) {
	if c.TimeWindow > 0 {
		c.Window = 0
	}
	return json.Marshal(struct {
		FailureRatio    float64 `json:"failureRatio"`
		MinCalls        int     `json:"minCalls"`
		Window          int     `json:"window"`
		TimeWindow      string  `json:"timeWindow"`
		OpenFor         string  `json:"openFor"`
		HalfOpenCalls   int     `json:"halfOpenCalls"`
		SlowCall        string  `json:"slowCall"`
		SlowRatio       float64 `json:"slowRatio"`
		CountRejections bool    `json:"countRejections"`
	}{
		c.FailureRatio, c.MinCalls, c.Window, c.TimeWindow.String(), c.OpenFor.String(),
		c.HalfOpenCalls, c.SlowCall.String(), c.SlowRatio, c.CountRejections,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config // without this method
	text := struct {
		*plain
		TimeWindow *setting.Duration `json:"timeWindow"`
		OpenFor    *setting.Duration `json:"openFor"`
		SlowCall   *setting.Duration `json:"slowCall"`
	}{(*plain)(c), (*setting.Duration)(&c.TimeWindow), (*setting.Duration)(&c.OpenFor), (*setting.Duration)(&c.SlowCall)}
	return json.Unmarshal(data, &text)
}

// clone returns c with a list of its own.
func (c Config) clone() Config {
	c.Ignore = slices.Clone(c.Ignore)
	return c
}

// reaches reports whether part/whole is at or above limit. It divides instead of
// multiplying the limit: a quotient is rounded once, exactly as the literal 0.1
// was, so that 3 of 30 meet a limit of 0.1, which 0.1 × 30 (a little above 3 in
// binary) would deny.
func reaches(part, whole int64, limit float64) bool {
	return part > 0 && float64(part)/float64(whole) >= limit
}

// trips reports whether t opens a closed breaker.
func (c *Config) trips(t tally) bool {
	return t.samples >= int64(c.MinCalls) &&
		(reaches(t.failed, t.samples, c.FailureRatio) || c.SlowCall > 0 && reaches(t.slow, t.samples, c.SlowRatio))
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
