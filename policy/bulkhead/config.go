package bulkhead

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

const kind = "bulkhead"

// Unbounded is the value of [Config].Queue and [Config].MaxWait for no bound of
// this kind.
const Unbounded = -1

// Config is the settings of a bulkhead. It is plain data: compare it, copy it,
// print it. In it a zero Queue or MaxWait means no waiting at all, so a Config
// written out by hand that wants waiting must give both; the options [Queue] and
// [MaxWait] do so.
//
//nolint:recvcheck // Apply writes to its receiver, the others belong to a value
type Config struct {
	// MaxConcurrent is how many calls may be inside at once, at least 1. It has
	// no default. Values above 33,554,431 bound as that.
	MaxConcurrent int `json:"maxConcurrent"`

	// Queue is how many calls may wait for a slot: 0 means none, -1 any number.
	Queue int `json:"queue"`

	// MaxWait is how long a call may wait for a slot: 0 means not at all, -1
	// (Unbounded) as long as its context allows. JSON has that as "-1ns", a
	// configuration file as "unlimited".
	MaxWait time.Duration `json:"maxWait"`

	// FreeOnTimeout frees the slot of an asynchronous call at any early end of
	// its future, although its function still runs. Then MaxConcurrent bounds the
	// calls that somebody waits for, and no longer the running work.
	FreeOnTimeout bool `json:"freeOnTimeout,omitempty"`
}

// Default returns the settings before any option: no waiting, and a
// MaxConcurrent of 0, which is invalid: there is no number that suits everybody.
func Default() Config { return Config{} }

// Validate reports all settings that are out of range, each as a
// [policy.ConfigError], joined; nil if there are none.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, got, hint string) {
		errs = append(errs, &policy.ConfigError{Code: "R4C-ATR-003", Policy: kind, Path: path, Got: got, Hint: hint})
	}
	switch n := c.MaxConcurrent; {
	case n == 0:
		bad("maxConcurrent", "0 lets no call in", "give the number of calls that may run at once, at least 1")
	case n < 0:
		bad("maxConcurrent", strconv.Itoa(n)+" is negative", "give the number of calls that may run at once, at least 1")
	}
	if c.Queue < Unbounded {
		bad("queue", strconv.Itoa(c.Queue)+" is negative", "give how many calls may wait: 0 for none, -1 for any number")
	}
	if c.MaxWait < Unbounded {
		bad("maxWait", c.MaxWait.String()+" is negative", "give how long a call may wait: 0s for not at all, -1ns for as long as its context allows")
	}
	return errors.Join(errs...)
}

// MarshalJSON writes MaxWait as Go duration text ("100ms"; "-1ns" is no bound).
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config // without this method
	return json.Marshal(struct {
		plain
		MaxWait string `json:"maxWait"` // shadows plain's
	}{plain(c), c.MaxWait.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config // without this method
	text := struct {
		*plain
		MaxWait *setting.Duration `json:"maxWait"`
	}{(*plain)(c), (*setting.Duration)(&c.MaxWait)}
	return json.Unmarshal(data, &text)
}
