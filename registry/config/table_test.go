package config_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry/config"
)

// structs are the Config structs that the table describes, with settings that are
// valid, so that one of them can be made invalid alone.
var structs = map[string]struct {
	defaults, valid any
	validate        func(any) error
}{
	"retry": {retry.Default(), retry.Config{MaxAttempts: 3, Backoff: "constant", Factor: 1, Budget: &retry.BudgetConfig{}}, func(c any) error { return c.(retry.Config).Validate() }},
	"circuitbreaker": {
		circuitbreaker.Default(),
		circuitbreaker.Config{FailureRatio: 1, MinCalls: 1, Window: 1 << 20, HalfOpenCalls: 1},
		func(c any) error { return c.(circuitbreaker.Config).Validate() },
	},
	"ratelimit": {ratelimit.Default(), ratelimit.Config{Limit: 1, Period: 1, Burst: 1}, func(c any) error { return c.(ratelimit.Config).Validate() }},
	"timeout":   {timeout.Default(), timeout.Config{Value: 1}, func(c any) error { return c.(timeout.Config).Validate() }},
	"bulkhead":  {bulkhead.Default(), bulkhead.Config{MaxConcurrent: 1}, func(c any) error { return c.(bulkhead.Config).Validate() }},
}

// jsonFields are the json names of the fields of a struct and their values, those
// of a struct behind a pointer with its name in front.
func jsonFields(v reflect.Value, prefix string) map[string]any {
	found := map[string]any{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			for k := range jsonFields(reflect.New(f.Type().Elem()).Elem(), name+".") {
				found[k] = nil // no value
			}
			continue
		}
		found[prefix+name] = f.Interface()
	}
	return found
}

func TestTableHasTheKeysAndDefaultsOfTheConfigStructs(t *testing.T) {
	for name, s := range structs {
		want := map[string]string{}
		for key, v := range jsonFields(reflect.ValueOf(s.defaults), "") {
			want[key] = ""
			if v != nil {
				want[key] = fmt.Sprint(v)
			}
		}
		// What has no valid default shows none: it must be set, or it follows from
		// another.
		for _, key := range []string{"timeout value", "bulkhead maxConcurrent", "ratelimit limit", "ratelimit burst"} {
			if p, k, _ := strings.Cut(key, " "); p == name {
				want[k] = ""
			}
		}
		got := map[string]string{}
		for _, a := range config.Table() {
			if a.Policy == name && !a.InFile {
				got[a.Key] = a.Default
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-struct +table)\n%s", name, diff)
		}
	}
}

// The example that the text of a missing value shows is legal, and the reference
// says of the same keys that they must be set.
func TestTableHasALegalExampleOfWhatMustBeSet(t *testing.T) {
	found := 0
	for _, a := range config.Table() {
		if got, want := a.Example != "", strings.Contains(a.Doc, "Must be set"); got != want {
			t.Errorf("%s.%s: example %q, doc %q", a.Section, a.Key, a.Example, a.Doc)
		}
		if a.Example != "" {
			found++
			parse(t, "instances: {a: {"+a.Section+": {"+a.Key+": "+a.Example+"}}}")
		}
	}
	if found != 3 {
		t.Errorf("%d keys that must be set, want 3", found)
	}
}

// A value that the table calls out of range is one that the policy refuses, and
// the reverse, for each number there is.
func TestTableRangesAreThoseOfValidate(t *testing.T) {
	numbers := []float64{math.Inf(-1), -2, -1, -.5, 0, .5, 1, 1.5, 2, 1 << 20, 1<<20 + 1, math.MaxInt32, math.MaxInt32 + 1}
	for _, a := range config.Table() {
		if a.InFile || a.Kind == "boolean" || a.Kind == "word" {
			continue
		}
		s := structs[a.Policy]
		for _, x := range numbers {
			if x < math.MinInt32 && a.Kind != "number" || x > math.MaxInt && a.Kind == "whole number" || x != math.Trunc(x) && a.Kind != "number" {
				continue
			}
			c := reflect.New(reflect.TypeOf(s.valid)).Elem()
			c.Set(reflect.ValueOf(s.valid))
			var v any = x
			switch a.Kind {
			case "duration":
				v = time.Duration(x)
			case "whole number":
				v = int(x)
			}
			setJSON(c, a.Key, v)
			refused := slices.ContainsFunc(policy.ConfigErrors(s.validate(c.Interface())), func(e *policy.ConfigError) bool {
				return e.Path == a.Key && e.Code == a.Code
			})
			if a.Key == "window" && x == 0 {
				continue // legal beside a timeWindow alone, which a file says by leaving it out
			}
			if got := config.Outside(a.Section, a.Key, v); (got != "") != refused {
				t.Errorf("%s.%s = %v: the table says %q, Validate refused it: %v", a.Section, a.Key, v, got, refused)
			}
		}
	}
}

func setJSON(c reflect.Value, key string, v any) {
	name, rest, nested := strings.Cut(key, ".")
	for i := range c.NumField() {
		tag, _, _ := strings.Cut(c.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case tag != name:
		case nested:
			fresh := reflect.New(c.Field(i).Type().Elem())
			fresh.Elem().Set(c.Field(i).Elem())
			c.Field(i).Set(fresh)
			setJSON(fresh.Elem(), rest, v)
		default:
			c.Field(i).Set(reflect.ValueOf(v).Convert(c.Field(i).Type()))
		}
	}
}

func TestTableCodes(t *testing.T) {
	for _, a := range config.Table() {
		want := "R4C-ATR-003"
		switch {
		case a.Key == "enabled":
			want = "R4C-ATR-006"
		case a.Key == "name":
			want = "R4C-ATR-004"
		case a.Kind == "word":
			want = "R4C-ATR-005"
		case a.Section == "timeout":
			want = "R4C-ATR-002"
		}
		if a.Code != want {
			t.Errorf("%s.%s: code %s, want %s", a.Section, a.Key, a.Code, want)
		}
	}
}

// sample is a legal value for an attribute, other than its default.
func sample(a config.Attribute) string {
	switch a.Kind {
	case "duration":
		return "7s"
	case "whole number":
		return "7"
	case "number":
		if a.Key == "factor" { // at least 1 where the delay is exponential
			return "1.5"
		}
		return "0.75"
	case "boolean":
		return "true"
	case "word":
		return "linear"
	default:
		return "other"
	}
}

// Each row can be set in YAML, in JSON and in the environment, comes out in the
// settings, and stands in the schema with its default.
func TestTableDrivesFileEnvironmentSettingsAndSchema(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	properties := func(at any, keys ...string) map[string]any {
		for _, k := range keys {
			at, _ = at.(map[string]any)[k]
		}
		m, _ := at.(map[string]any)
		return m
	}
	seen := map[string]int{}
	for _, a := range config.Table() {
		value := sample(a)
		// What must be set, so that the settings are valid.
		need := map[string]string{"timeout": "value: 1s", "bulkhead": "maxConcurrent: 1", "rateLimiter": "limit: 1", "circuitBreaker": "minCalls: 2"}[a.Section]
		if strings.HasPrefix(need, a.Key+":") {
			need = ""
		}
		if a.Key == "slowCall" {
			need = "slowRatio: 0.5"
		}
		base := fmt.Sprintf("instances: {i: {%s: {%s}}}", a.Section, need)
		c, err := parse(t, base).WithEnv([]string{config.EnvVariable + "=instances.i." + a.Section + "." + a.Key + "=" + value})
		if err != nil {
			t.Errorf("environment: %v", err)
			continue
		}
		group, key, nested := strings.Cut(a.Key, ".")
		line := a.Key + ": " + value
		jsonLine := fmt.Sprintf("%q: %s", a.Key, jsonText(a, value))
		if nested {
			line, jsonLine = group+": {"+key+": "+value+"}", fmt.Sprintf("%q: {%q: %s}", group, key, jsonText(a, value))
		}
		y := parse(t, fmt.Sprintf("instances: {i: {%s: {%s}}}", a.Section, strings.TrimSuffix(line+", "+need, ", ")))
		j := parse(t, fmt.Sprintf(`{"instances": {"i": {%q: {%s}}}}`, a.Section, strings.TrimSuffix(jsonLine+", "+jsonPair(need), ", ")))
		found := 0
		for n, from := range []*config.Config{c, y, j} {
			for path, s := range settings(t, from, "i") {
				if strings.HasSuffix(path, "."+a.Section+"."+a.Key) && s.Value == value && s.Origin == []string{"env", "resilience.yaml:1", "resilience.yaml:1"}[n] {
					found++
				}
			}
		}
		if found != 3 {
			t.Errorf("%s.%s: in the settings of %d of environment, YAML and JSON", a.Section, a.Key, found)
		}
		for _, def := range []string{"config", "instance"} {
			at := properties(schema, "$defs", def, "properties", a.Section, "properties")
			seen[def+a.Section] = len(at)
			if nested {
				at = properties(at, group, "properties")
			}
			row := properties(at, key)
			if !nested {
				row = properties(at, a.Key)
			}
			shown := fmt.Sprint(row["default"])
			if row["description"] != a.Doc || a.Default != "" && shown != a.Default {
				t.Errorf("schema of %s %s.%s: description %v, default %s, want %q and %s", def, a.Section, a.Key, row["description"], shown, a.Doc, a.Default)
			}
		}
	}
	// The schema has no key beside those of the table: the budget counts once.
	for at, n := range seen {
		want := 0
		for _, a := range config.Table() {
			if strings.HasSuffix(at, a.Section) && a.Key != "budget.minPerSecond" {
				want++
			}
		}
		if n != want {
			t.Errorf("schema of %s has %d keys, the table %d", at, n, want)
		}
	}
}

func jsonText(a config.Attribute, value string) string {
	switch a.Kind {
	case "duration", "word", "id":
		return fmt.Sprintf("%q", value)
	}
	return value
}

func jsonPair(line string) string {
	key, value, ok := strings.Cut(line, ": ")
	if !ok {
		return ""
	}
	if strings.HasSuffix(value, "s") {
		value = fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q: %s", key, value)
}
