package timeout

import (
	"context"
	"encoding/json"
	"time"

	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

const kind = "timeout" // in errors, events and files

// Config is the settings of a timeout. The zero value is not valid: a timeout
// needs a limit.
type Config struct { //nolint:recvcheck // Apply and UnmarshalJSON change it, the rest only reads
	// Value is how long an attempt may take. It must be above 0. Values up to
	// the largest Duration are legal and never overflow.
	Value time.Duration `json:"value"`

	// Func, if set, is asked once per attempt, with the caller's context, and
	// wins over Value; what is not above 0 means no timeout for this attempt.
	// If it panics, Value holds.
	Func func(ctx context.Context) time.Duration `json:"-"`
}

// Default returns the built-in defaults: there are none, so a limit must come
// from code or from the configuration.
func Default() Config { return Config{} }

// Validate returns nil or the joined [policy.ConfigError] values of all
// mistakes.
func (c Config) Validate() error {
	if c.Value <= 0 {
		return &policy.ConfigError{
			Code: "R4C-ATR-002", Policy: kind, Path: "value",
			Got:  c.Value.String() + " is not a positive duration",
			Hint: "give a duration above 0, such as 2s, or leave the timeout out",
		}
	}
	return nil
}

// Apply applies the options in order, the last one wins, and returns the names of
// the settings that they set: nil or "func", which has no name in a
// configuration file. A nil Option is none.
func (c *Config) Apply(opts ...Option) (keys []string) {
	for _, o := range opts {
		if o != nil {
			o.apply(c)
			keys = []string{"func"} // there is no other
		}
	}
	return keys
}

// MarshalJSON writes the limit as Go duration text.
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Value setting.Duration `json:"value"`
	}{setting.Duration(c.Value)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Config) UnmarshalJSON(data []byte) error {
	text := struct {
		Value *setting.Duration `json:"value"`
	}{(*setting.Duration)(&c.Value)}
	return json.Unmarshal(data, &text)
}

// Option is an optional setting of a timeout.
type Option interface{ apply(*Config) }

type funcOption func(ctx context.Context) time.Duration

func (f funcOption) apply(c *Config) { c.Func = f }
func (funcOption) String() string    { return "Func" }

// Func asks f for the limit of each attempt, with the caller's context. What is
// not above 0 means no timeout for this attempt: a function that looks for an
// override and finds none has to return the usual value. The configured value holds if f
// panics. With a nil f nobody is asked. f must be safe for concurrent use.
func Func(f func(ctx context.Context) time.Duration) Option { return funcOption(f) }
