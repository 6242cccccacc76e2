package ratelimit

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

const kind = "ratelimit"

// Config is the settings of a rate limiter: Limit permits per Period, of which
// at most Burst are in store. It is plain data: compare it, copy it, print it.
// The zero value is not valid; start from [Default] and [Config.Apply], or give
// Limit, Period and Burst.
//
//nolint:recvcheck // Apply writes to its receiver, the others belong to a value
type Config struct {
	// Limit is how many permits a Period brings, at least 1. It has no default.
	Limit int `json:"limit"`

	// Period is the time that brings Limit permits, above 0. They come one by
	// one, evenly spaced, and not all at once when a period begins.
	Period time.Duration `json:"period"`

	// Burst is how many permits may be in store, at least 1: so many calls may
	// come at once after an idle spell, and at the start. Options that give none
	// make it the Limit. What takes more than 73 years to fill is cut to that.
	Burst int `json:"burst"`

	// MaxWait is how long a call may wait for its permit; 0 means not at all.
	MaxWait time.Duration `json:"maxWait"`
}

// Default returns the settings before any option: a Period of one second and no
// waiting. Limit and Burst are 0, which is invalid: there is no rate that suits
// everybody.
func Default() Config { return Config{Period: time.Second} }

// Validate reports all settings that are out of range, each as a
// [policy.ConfigError] that names the field, joined; nil if there are none. A
// Burst that merely follows an invalid Limit is not reported once more.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, got, hint string) {
		errs = append(errs, &policy.ConfigError{Code: "R4C-ATR-003", Policy: kind, Path: path, Got: got, Hint: hint})
	}
	if c.Limit < 1 {
		bad("limit", strconv.Itoa(c.Limit)+" is not a positive number", "give how many permits a period brings, at least 1")
	}
	if c.Period <= 0 {
		bad("period", c.Period.String()+" is not a positive duration", "give the time that brings that many permits, such as 1s")
	}
	if c.Burst < 1 && (c.Burst != c.Limit || c.Limit >= 1) {
		bad("burst", strconv.Itoa(c.Burst)+" is not a positive number", "give how many permits may be in store, at least 1")
	}
	if c.MaxWait < 0 {
		bad("maxWait", c.MaxWait.String()+" is negative", "give how long a call may wait, or 0s for not at all")
	}
	return errors.Join(errs...)
}

// MarshalJSON writes Period and MaxWait as Go duration text ("1s").
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Limit   int    `json:"limit"`
		Period  string `json:"period"`
		Burst   int    `json:"burst"`
		MaxWait string `json:"maxWait"`
	}{c.Limit, c.Period.String(), c.Burst, c.MaxWait.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config // without this method
	text := struct {
		*plain
		Period  *setting.Duration `json:"period"`
		MaxWait *setting.Duration `json:"maxWait"`
	}{(*plain)(c), (*setting.Duration)(&c.Period), (*setting.Duration)(&c.MaxWait)}
	return json.Unmarshal(data, &text)
}
