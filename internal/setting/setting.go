// Package setting is what the policies' Configs have in common: how an id is
// checked, how mistakes get the id of their instance, and how a duration is
// written in JSON. Not for users.
//
// # Guarantees
//
//	what                                            proved by
//	ids are compared exactly, so padding is refused TestID_G1_PaddingAndUnprintablesAreRefused
//	a nil pointer is no clock                       TestClock_K1_ANilPointerIsNone
//	a duration survives JSON as text                TestDurationRoundTrip
package setting

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"resilience4cata.dev/go/policy"
)

// ID returns what is wrong with the id of an instance, or nil: any text that can
// be printed is legal, as long as no space begins or ends it. path is where the
// id was given.
func ID(kind, id, path string) error {
	var got string
	switch {
	case id == "":
		got = "the id is empty"
	case strings.TrimSpace(id) != id:
		got = "the id begins or ends with a space"
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsGraphic(r) }):
		got = "the id holds characters that cannot be printed"
	default:
		return nil
	}
	return &policy.ConfigError{
		Code: "R4C-ATR-004", Policy: kind, ID: id, Path: path,
		Got: got, Hint: "give a name that can be printed, without space around it",
	}
}

// Clock returns what is wrong with the clock that an instance was given, or nil:
// it must be there, and no nil pointer.
func Clock(kind, id string, clk any) error {
	if clk != nil {
		if v := reflect.ValueOf(clk); v.Kind() != reflect.Pointer || !v.IsNil() {
			return nil
		}
	}
	return &policy.ConfigError{
		Code: "R4C-ATR-003", Policy: kind, ID: id, Path: "clk",
		Got: "the clock is nil", Hint: "pass clock.System() or a clock.Manual",
	}
}

// Named gives all mistakes in err the id of the instance that they belong to,
// and returns err.
func Named(err error, id string) error {
	for _, e := range policy.ConfigErrors(err) {
		e.ID = id
	}
	return err
}

// Duration is a duration that JSON has as Go duration text: "1.5s".
type Duration time.Duration

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the text.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}
