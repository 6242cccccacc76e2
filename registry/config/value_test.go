package config_test

import (
	stdcmp "cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry/config"
)

// The file at the end of the documented API parses and means what it says.
func TestDocumentedFileMeansWhatItSays(t *testing.T) {
	c := parse(t, documented)
	r, err := config.Retry(c, "reports", config.Code[retryConfig]{})
	if diff := cmp.Diff(retryConfig{
		MaxAttempts: 3, Backoff: retry.BackoffExponential, Delay: 100 * ms, Factor: 2, MaxDelay: 30 * time.Second, Jitter: .25,
		MaxDuration: 5 * time.Second, Reserve: 10 * ms, Budget: &retry.BudgetConfig{Ratio: .2, MinPerSecond: 1},
	}, r.Config); err != nil || diff != "" {
		t.Errorf("retry: %v (-want +got)\n%s", err, diff)
	}
	l, err := config.RateLimit(c, "reports", config.Code[rateConfig]{})
	if diff := cmp.Diff(rateConfig{Limit: 50, Period: time.Second, Burst: 50, MaxWait: 20 * ms}, l.Config); err != nil || diff != "" || l.Name != "backend" {
		t.Errorf("rateLimiter: %v, name %q (-want +got)\n%s", err, l.Name, diff)
	}
	d, err := config.Timeout(c, "reports", config.Code[timeoutConfig]{})
	if err != nil || d.Config.Value != 2*time.Second {
		t.Errorf("timeout: %+v, %v", d.Config, err)
	}
	h, err := config.Bulkhead(c, "reports", config.Code[bulkheadConfig]{})
	if diff := cmp.Diff(bulkheadConfig{MaxConcurrent: 10, Queue: 20, MaxWait: 100 * ms}, h.Config); err != nil || diff != "" || !h.Enabled {
		t.Errorf("bulkhead: %v (-want +got)\n%s", err, diff)
	}
	b, err := config.CircuitBreaker(c, "reports", config.Code[breakerConfig]{})
	if diff := cmp.Diff(breakerConfig{FailureRatio: .5, MinCalls: 20, Window: 100, OpenFor: 5 * time.Second, HalfOpenCalls: 1}, b.Config, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "FailIf" }, cmp.Ignore())); err != nil || diff != "" {
		t.Errorf("circuitBreaker: %v (-want +got)\n%s", err, diff)
	}
	if got := settings(t, c, "com.acme.ReportApi#build(java.lang.String)")[`instances."com.acme.ReportApi#build(java.lang.String)".timeout.value`]; got.Value != "5s" {
		t.Errorf("an id with dots: %+v", got)
	}
	if c.Critical("reports") {
		t.Error("critical: false read as true")
	}
}

const documented = `configs:
  default: {timeout: {value: 1s}}
  slow:    {timeout: {value: 10s}, retry: {maxAttempts: 2}}
instances:
  reports:
    config: slow
    retry:       {maxAttempts: 3, backoff: exponential, delay: 100ms, factor: 2, maxDelay: 30s, jitter: 0.25, maxDuration: 5s, reserve: 10ms, budget: {ratio: 0.2, minPerSecond: 1}}
    rateLimiter: {limit: 50, period: 1s, burst: 50, maxWait: 20ms, name: backend}
    timeout:     {value: 2s}
    bulkhead:    {maxConcurrent: 10, queue: 20, maxWait: 100ms, enabled: true}
    circuitBreaker: {failureRatio: 0.5, minCalls: 20, window: 100, openFor: 5s, halfOpenCalls: 1}
    critical: false
  "com.acme.ReportApi#build(java.lang.String)": {timeout: {value: 5s}}
`

// one parses a file with one value and returns the mistake, or nil.
func one(t *testing.T, section, key, value string) *config.Error {
	t.Helper()
	_, err := config.Parse("f", fmt.Appendf(nil, "instances: {a: {%s: {%s: %s}}}", section, key, value))
	errs := policy.ConfigErrors(err)
	if len(errs) > 1 {
		t.Errorf("%s.%s: %s: more than one mistake: %v", section, key, value, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// Seed 0: duration syntax is R4C-ATR-001, a timeout of 0 R4C-ATR-002, enabled
// R4C-ATR-006. Conformance 72: every illegal value is named with policy and key.
func TestSeed0_Conform_72_EachIllegalValueIsNamed(t *testing.T) {
	for _, tc := range []struct{ section, key, value, code, got, hint string }{
		{"timeout", "value", "30", "R4C-ATR-001", "30 has no unit", "did you mean 30s?"},
		{"timeout", "value", `"30"`, "R4C-ATR-001", "30 has no unit", "did you mean 30s?"},
		{"timeout", "value", "1.5", "R4C-ATR-001", "1.5 has no unit", "did you mean 1.5s?"},
		{"retry", "delay", "99.9", "R4C-ATR-001", "99.9 has no unit", "did you mean 99.9s?"},
		{"retry", "delay", "100", "R4C-ATR-001", "100 has no unit", "did you mean 100ms or 100s?"},
		{"retry", "delay", "+250", "R4C-ATR-001", "+250 has no unit", "did you mean 250ms or 250s?"},
		{"retry", "delay", "-100", "R4C-ATR-001", "-100 has no unit", "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"retry", "maxDelay", "20000000000", "R4C-ATR-001", "20000000000 has no unit", "did you mean 20000000000ms?"},
		{"retry", "maxDelay", "20000000000000", "R4C-ATR-001", "20000000000000 has no unit", "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "1e3", "R4C-ATR-001", "1e3 has no unit", "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "5 s", "R4C-ATR-001", `"5 s" is not a duration`, "did you mean 5s?"},
		{"timeout", "value", "5S", "R4C-ATR-001", `"5S" is not a duration`, "did you mean 5s?"},
		{"timeout", "value", "1d", "R4C-ATR-001", `"1d" is not a duration`, "there is no unit for days: write hours, 24h"},
		{"timeout", "value", "PT2S", "R4C-ATR-001", `"PT2S" is not a duration`, "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "2026-11-29", "R4C-ATR-001", `"2026-11-29" is not a duration`, "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "-0s", "R4C-ATR-001", `"-0s" is not a duration`, "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"retry", "delay", "-0s", "R4C-ATR-001", `"-0s" is not a duration`, "did you mean 0s?"},
		{"timeout", "value", "300000h", "", "", ""},
		{"timeout", "value", "3000000h", "R4C-ATR-001", `"3000000h" is not a duration`, "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "0", "R4C-ATR-002", "0s is not a positive duration", "give a duration above 0, such as 2s, or leave the timeout out"},
		{"timeout", "value", `"0"`, "R4C-ATR-002", "0s is not a positive duration", "give a duration above 0, such as 2s, or leave the timeout out"},
		{"timeout", "value", "-1s", "R4C-ATR-002", "-1s is not a positive duration", "give a duration above 0, such as 2s, or leave the timeout out"},
		{"timeout", "value", "true", "R4C-ATR-005", "true is not a duration", "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "[2s]", "R4C-ATR-005", "a list is not a duration", "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "{a: 2s}", "R4C-ATR-005", "a section is not a duration", "write a number and a unit, such as 250ms, 2s or 1m30s"},
		{"timeout", "value", "!!str 2s", "R4C-REG-001", `the tag "!!str" is not supported`, "write the value without a tag"},
		{"timeout", "enabled", "1", "R4C-ATR-006", "1 is not true or false", "did you mean true?"},
		{"timeout", "enabled", "off", "R4C-ATR-006", `"off" is not true or false`, "did you mean false?"},
		{"timeout", "enabled", "~", "R4C-ATR-006", "null is not true or false", "write true or false"},
		{"timeout", "enabled", "flase", "R4C-ATR-006", `"flase" is not true or false`, "did you mean false?"},
		{"timeout", "enabled", "[]", "R4C-ATR-006", "a list is not true or false", "write true or false"},
		{"retry", "maxAttempts", "0", "R4C-ATR-003", "0 is out of range", "give a value at least 1, or unlimited"},
		{"retry", "maxAttempts", "-1", "R4C-ATR-005", "-1 is not a whole number or unlimited", "write unlimited"},
		{"retry", "maxAttempts", "unlimted", "R4C-ATR-005", `"unlimted" is not a whole number or unlimited`, `did you mean "unlimited"?`},
		{"retry", "maxAttempts", "unlimited", "", "", ""},
		{"retry", "maxAttempts", `"3"`, "R4C-ATR-005", `"3" is not a whole number or unlimited`, "write it without quotes"},
		{"retry", "maxAttempts", "3.0", "R4C-ATR-005", "3.0 is not a whole number or unlimited", "did you mean 3?"},
		{"retry", "maxAttempts", "010", "R4C-ATR-005", "010 is not a whole number or unlimited", "write it in decimal digits"},
		{"retry", "maxAttempts", "0x1F", "R4C-ATR-005", "0x1F is not a whole number or unlimited", "write it in decimal digits"},
		{"retry", "maxAttempts", "9999999999999999999", "R4C-ATR-003", "9999999999999999999 is too large", "give a smaller number"},
		{"retry", "backoff", "exponentail", "R4C-ATR-005", `"exponentail" is not constant, linear or exponential`, `did you mean "exponential"?`},
		{"retry", "jitter", "1.5", "R4C-ATR-003", "1.5 is out of range", "give a value from 0 to 1"},
		{"retry", "jitter", ".nan", "R4C-ATR-005", ".nan is not a number", "write decimal digits, such as 0.5"},
		{"retry", "factor", ".inf", "R4C-ATR-005", ".inf is not a number", "write decimal digits, such as 2"},
		{"retry", "factor", "1e999", "R4C-ATR-003", "1e999 is too large", "give a smaller number"},
		{"retry", "delay", "-1ms", "R4C-ATR-003", "-1ms is out of range", "give a value at least 0"},
		{"retry", "fullJitter", "yes", "R4C-ATR-005", `"yes" is not true or false`, "did you mean true?"},
		{"rateLimiter", "limit", "0", "R4C-ATR-003", "0 is out of range", "give a value at least 1"},
		{"rateLimiter", "period", "0s", "R4C-ATR-003", "0s is out of range", "give a value above 0"},
		{"rateLimiter", "name", `" x"`, "R4C-ATR-004", `" x" begins or ends with a space`, "give a name that can be printed, without space around it"},
		{"rateLimiter", "name", `""`, "R4C-ATR-004", "the id is empty", "give a name that can be printed, without space around it"},
		{"rateLimiter", "name", "5", "R4C-ATR-005", "5 is not the text of an id", "write it in quotes"},
		{"retry", "backoff", "expo", "R4C-ATR-005", `"expo" is not constant, linear or exponential`, `did you mean "exponential"?`},
		{"retry", "backoff", "fixed", "R4C-ATR-005", `"fixed" is not constant, linear or exponential`, "known are constant, linear, exponential"},
		{"retry", "maxAttempts", "-9999999999999999999", "R4C-ATR-003", "-9999999999999999999 is out of range", "give a value at least 1"},
		{"bulkhead", "maxConcurrent", "ten", "R4C-ATR-005", `"ten" is not a whole number`, "write decimal digits, such as 10"},
		{"bulkhead", "queue", "all", "R4C-ATR-005", `"all" is not a whole number or unlimited`, "write decimal digits, such as 10, or unlimited"},
		{"bulkhead", "maxWait", "-1", "R4C-ATR-001", "-1 has no unit", "write unlimited"},
		{"bulkhead", "name", "[a]", "R4C-ATR-005", "a list is not the text of an id", "write one id, as text"},
		{"bulkhead", "queue", "-1", "R4C-ATR-005", "-1 is not a whole number or unlimited", "write unlimited"},
		{"bulkhead", "maxWait", "forever", "R4C-ATR-001", `"forever" is not a duration`, "write a number and a unit, such as 250ms, 2s or 1m30s, or unlimited"},
		{"bulkhead", "maxWait", "unlimited", "", "", ""},
		{"bulkhead", "maxWait", "-1ns", "R4C-ATR-005", "-1ns is not a duration or unlimited", "write unlimited"},
		{"circuitBreaker", "failureRatio", "0", "R4C-ATR-003", "0 is out of range", "give a value above 0, at most 1"},
		{"circuitBreaker", "window", "2000000", "R4C-ATR-003", "2000000 is out of range", "give a value from 1 to 1048576"},
	} {
		e := one(t, tc.section, tc.key, tc.value)
		if e == nil {
			if tc.code != "" {
				t.Errorf("%s.%s: %s was taken", tc.section, tc.key, tc.value)
			}
			continue
		}
		policies := map[string]string{"rateLimiter": "ratelimit", "circuitBreaker": "circuitbreaker"}
		if want := stdcmp.Or(policies[tc.section], tc.section); e.Policy != want {
			t.Errorf("%s.%s: %s: Policy %q, want %q", tc.section, tc.key, tc.value, e.Policy, want)
		}
		path := fmt.Sprintf(`instances."a".%s.%s`, tc.section, tc.key)
		if e.Code != tc.code || e.Got != tc.got || e.Hint != tc.hint || e.Path != path || e.ID != "a" || e.Line != 1 || e.Col == 0 {
			t.Errorf("%s.%s: %s\ngot  %v\nwant %s: %s (%s) [%s]", tc.section, tc.key, tc.value, e, path, tc.got, tc.hint, tc.code)
		}
	}
}

func TestSectionsOfTheWrongTypeSayHowToWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"instances: {a: {timeout: 2s}}":           `"2s" where a section is needed (write timeout: {value: 2s}) [R4C-ATR-005]`,
		"instances: {a: {bulkhead: 10}}":          `"10" where a section is needed (write bulkhead: {maxConcurrent: 10}) [R4C-ATR-005]`,
		"instances: {a: {retry: false}}":          `"false" where a section is needed (write retry: {enabled: false}) [R4C-ATR-005]`,
		"instances: {a: {retry: [3]}}":            `a list where a section is needed (write its keys and values) [R4C-ATR-005]`,
		"instances: {a: {retry: {budget: 0.2}}}":  `"0.2" where a section is needed (give ratio or minPerSecond) [R4C-ATR-005]`,
		"instances: [a]":                          `a list where a section is needed (give each a section of its own, by name) [R4C-ATR-005]`,
		"- a":                                     `a list where a section is needed (a configuration has the sections configs and instances) [R4C-ATR-005]`,
		"instances: {\"\": {}}":                   `the id is empty (give a name that can be printed, without space around it) [R4C-ATR-004]`,
		"instances: {\"a\\u0007\": {}}":           `has characters that cannot be printed (give a name that can be printed, without space around it) [R4C-ATR-004]`,
		"instances: {a: {critical: 1}}":           `1 is not true or false (did you mean true?) [R4C-ATR-005]`,
		"instances: {a: {}, a: {}}":               `duplicate key "a" (the first is in line 1) [R4C-REG-003]`,
		`{"instances": {"a": {}, "\u0061": {}}}`:  `duplicate key "a" (the first is in line 1) [R4C-REG-003]`,
		"configs: {}\ninstances: {}\nconfigs: {}": `duplicate key "configs" (the first is in line 1) [R4C-REG-003]`,
	} {
		if got := refuse(t, text); !strings.HasSuffix(got, want) {
			t.Errorf("%s\ngot  %s\nwant … %s", text, got, want)
		}
	}
}

// Rule G-4: one rule for all formats.
func TestJSONAndYAMLMeanTheSame(t *testing.T) {
	yaml := parse(t, "instances:\n  \"a/b \U0001F600\":\n    timeout: {value: 2s}\n    retry: {maxAttempts: 4, jitter: 0.5, fullJitter: false}\n")
	json := parse(t, "{\n\t\"instances\": {\n\t\t\"a\\/b \\ud83d\\ude00\": {\n\t\t\t\"timeout\": {\"value\": \"2s\"},\n\t\t\t\"retry\": {\"maxAttempts\": 4, \"jitter\": 5e-1, \"fullJitter\": false}}}}")
	const id = "a/b \U0001F600"
	strip := func(list []config.Setting) []config.Setting {
		for i := range list {
			list[i].Origin = ""
		}
		return list
	}
	if diff := cmp.Diff(strip(configured(t, yaml, id)), strip(configured(t, json, id))); diff != "" || !json.Has(id) {
		t.Errorf("(-yaml +json)\n%s", diff)
	}
	// Columns count characters of the text as it was given, tabs as one.
	got := refuse(t, "{\n\t\"x-a\": 1, \"instances\": {\"\\\\\\ud83d\\ude00\": {\"timeout\": {\"vlaue\": \"2s\"}}}}")
	if want := `resilience.yaml:2:57: instances."\\` + "\U0001F600" + `".timeout: unknown key "vlaue" (did you mean "value"?) [R4C-REG-002]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := refuse(t, `{"instances": {"\ud83d": {}}}`); !strings.Contains(got, "[R4C-REG-001]") {
		t.Errorf("half a character: %s", got)
	}
}

func TestNearestWord(t *testing.T) {
	known := []string{"timeout", "retry", "rateLimiter", "bulkhead"}
	for word, want := range map[string]string{
		"tiemout": "timeout", "Timeout": "timeout", "RETRY": "retry", "retyr": "retry", "retries": "", "bulkheads": "bulkhead",
		"": "", "x": "", "ratelimit": "rateLimiter", strings.Repeat("t", 500): "", "timeoutt": "timeout", "meout": "",
	} {
		if got := config.Nearest(word, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", word, got, want)
		}
	}
}
