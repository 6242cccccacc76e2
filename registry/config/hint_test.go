package config_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// wrongValues are values, as YAML has them, of which each is wrong for some of the
// attributes.
var wrongValues = []string{
	"ten", "expo", "e", "fixed", "x", `""`, `" "`, `" a"`, `"a\u0007"`, "forever", "unlimitd", "none", "all", "*", "50%", "150%", "x%",
	".nan", ".inf", "-.inf", "+.inf", "3.0", "3.5", "1e999", "-1e999", "0x1F", "0o17", "010", "1_000", "0b1", "-0", "+3", `"3"`, `"0.5"`, `"true"`,
	"-1", "-2", "-0.5", "99999999999999999999", "-99999999999999999999", "30", "250", "-30", "1.5",
	"-1s", "-1ns", "-0s", "5 s", "5S", "1d", "xd", "PT2S", "2026-11-29", "12:30:00", "3000000h", "0s", "s",
	"true", "yes", "off", "flase", "maybe", "~", "", "null", "[]", "[3]", "{}", "{a: 1}", "!!str 3", "! 3", "{<<: 3}", "{~: 3}", "{a: 1, a: 2}",
}

// G-4: whatever somebody writes as the value of an attribute, each mistake says
// where it is and what is wrong, and has a way out. A value that the way out names
// is legal.
func TestMistakes_G4_EachHasAWayOut(t *testing.T) {
	suggested := regexp.MustCompile(`did you mean "?([^"?]+)"?\?|such as ([0-9a-z.]+)|^write (unlimited)$`)
	refused := 0
	try := func(path, text string, parse func(value string) error, value string) {
		for _, e := range policy.ConfigErrors(parse(value)) {
			refused++
			if e.Hint == "" || e.Got == "" || e.Code == "" || e.File == "" {
				t.Errorf("%s: %s: %q: %+v", text, path, value, *e)
			}
			if !strings.HasSuffix(e.Path, path) {
				continue // about what is inside the value
			}
			for _, m := range suggested.FindAllStringSubmatch(e.Hint, -1) {
				if way := m[1] + m[2] + m[3]; way != "" && !strings.Contains(way, " or ") && parse(way) != nil {
					t.Errorf("%s: %s: %q: the hint %q is wrong too: %v", text, path, value, e.Hint, parse(way))
				}
			}
		}
	}
	for _, a := range config.Table() {
		group, key, nested := strings.Cut(a.Key, ".")
		for _, value := range wrongValues {
			try("."+a.Section+"."+a.Key, "file", func(value string) error {
				line := a.Key + ": " + value
				if nested {
					line = group + ": {" + key + ": " + value + "}"
				}
				_, err := config.Parse("f", []byte("instances: {i: {"+a.Section+": {"+line+"}}}"))
				return err
			}, value)
			try("."+a.Section+"."+a.Key, "environment", func(value string) error {
				_, err := (*config.Config)(nil).WithEnv([]string{config.EnvVariable + "=instances.i." + a.Section + "." + a.Key + "=" + value})
				return err
			}, value)
		}
	}
	for _, key := range []string{"config", "critical"} {
		for _, value := range wrongValues {
			try("."+key, "file", func(value string) error {
				_, err := config.Parse("f", []byte("configs: {other: {}}\ninstances: {i: {"+key+": "+value+"}}"))
				return err
			}, value)
		}
	}
	for _, value := range wrongValues {
		for _, text := range []string{"%", "instances: %", "instances: {i: %}", "instances: {i: {retry: %}}", "instances: {i: {retry: {budget: %}}}", "instances: {%: {}}"} {
			if strings.Contains(text, "{%") && strings.HasPrefix(value, "{") {
				continue
			}
			try("no path", strconv.Quote(text), func(value string) error {
				_, err := config.Parse("f", []byte(strings.ReplaceAll(text, "%", value)))
				return err
			}, value)
		}
	}
	if refused < 3000 {
		t.Errorf("%d mistakes: the list is shorter than it was", refused)
	}
}
