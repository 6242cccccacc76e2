package schematest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"resilience4cata.dev/go/registry/config"
)

// validator returns the schema as a validator that knows nothing of ours.
func validator(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		tb.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("resilience.schema.json", schema); err != nil {
		tb.Fatal(err)
	}
	compiled, err := compiler.Compile("resilience.schema.json")
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

// plain is a YAML value as a JSON value.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, value := range v {
			m[fmt.Sprint(k)] = plain(value)
		}
		return m
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case nil, bool, string, float64, int, int64, uint64:
		return v
	default: // a date
		return fmt.Sprint(v)
	}
}

// compare reports what each of the two says of a text. Of an empty document a
// schema has no say, nor of what has no JSON: below an x- key anything stands, such
// as a map as a key.
func compare(t *testing.T, schema *jsonschema.Schema, text []byte) (binder, bySchema error) {
	t.Helper()
	if _, binder = config.Parse("f", text); binder != nil {
		return binder, nil
	}
	var v any
	if yaml.Unmarshal(text, &v) == nil && v != nil {
		bySchema = schema.Validate(plain(v))
	}
	return nil, bySchema
}

// right and wrong are examples of both; the wrong ones the schema must refuse
// itself, so that it is worth something in an editor.
var right = []string{
	"{}",
	"x-anything: [1, {}]",
	"configs: {default: {timeout: {value: 0}, retry: {maxAttempts: 0}}}",
	"instances: {a: {timeout: {value: +1.5h}, bulkhead: {maxConcurrent: 1, queue: unlimited, maxWait: unlimited}}}",
	"instances: {a: {retry: {maxAttempts: unlimited, budget: {ratio: 1}, jitter: 1, factor: 0.5, delay: .5s}}, 5: {}}",
	"x-a: &a {window: 5}\ninstances: {a: {circuitBreaker: {<<: *a, window: 6}}}",
	`{"instances": {"a\/b": {"critical": true, "rateLimiter": {"limit": 1, "period": "1µs", "name": "b"}}}}`,
}

var wrong = []string{
	"[]", "text", "timeout: {}", "instances: []", "instances: ~", "instances: {a: ~}", "instances: {\" a\": {}}", "instances: {\"\": {}}",
	"instances: {a: {retry: ~}}", "instances: {a: {retry: {budget: {}}}}", "instances: {a: {tiemout: {value: 1s}}}",
	"instances: {a: {timeout: {value: 30}}}", "instances: {a: {timeout: {value: 1d}}}", "instances: {a: {timeout: {value: -1s}}}",
	"instances: {a: {timeout: {name: b}}}", "instances: {a: {timeout: {enabled: 1}}}", "instances: {a: {retry: {maxAttempts: 0}}}",
	"instances: {a: {retry: {maxAttempts: many}}}", "instances: {a: {retry: {backoff: fast}}}", "instances: {a: {retry: {jitter: 1.1}}}",
	"instances: {a: {circuitBreaker: {failureRatio: 0}}}", "instances: {a: {rateLimiter: {limit: \"5\"}}}", "instances: {a: {config: 5}}",
	"configs: {a: {critical: true}}", "configs: {a: {config: b}}", "instances: {a: {bulkhead: {maxConcurrent: 1.5}}}",
}

func TestSchemaAndBinderAgreeOnExamples(t *testing.T) {
	schema := validator(t)
	for _, text := range right {
		if binder, bySchema := compare(t, schema, []byte(text)); binder != nil || bySchema != nil {
			t.Errorf("%s\nbinder: %v\nschema: %v", text, binder, bySchema)
		}
	}
	for _, text := range wrong {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse("f", []byte(text)); err == nil {
			t.Errorf("the binder took %s", text)
		}
		if schema.Validate(plain(v)) == nil {
			t.Errorf("the schema took %s", text)
		}
	}
}

// The files that the tests of the package read, right and wrong.
func TestNothingTheSchemaRefusesIsAcceptedFromTheTestFiles(t *testing.T) {
	schema := validator(t)
	paths, err := filepath.Glob("../../registry/config/testdata/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatal(paths, err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := compare(t, schema, text); err != nil {
			t.Errorf("%s: the binder took what the schema refuses: %v", p, err)
		}
	}
}

// made writes a configuration, most of it right: every key with values of every
// kind, so that both sides of each rule come up.
func made(r *rand.Rand) string {
	values := []string{
		"1s", "0", "0s", "-1s", "-0s", "+2m", "1h1m", "1.5s", ".5s", "1.s", "30", `"30"`, "1d", "0.5", "1", "2", "3", "1.0", "-1", "1e1", "0x10", "010",
		"true", "false", "True", "yes", "on", "~", "null", `""`, "text", " \" x\"", "unlimited", "linear", "exponential", "[]", "{}", "{ratio: 1}",
		"{minPerSecond: 0.5, ratio: 0}", "{ratio: x}", ".inf", ".nan", "1_0", "2026-11-29", "1048577", "99999999999999999999", "!!str 1", "slow",
	}
	keys := []string{
		"value", "enabled", "name", "maxAttempts", "backoff", "delay", "factor", "maxDelay", "jitter", "fullJitter", "maxDuration", "reserve", "budget",
		"limit", "period", "burst", "maxWait", "maxConcurrent", "queue", "freeOnTimeout", "failureRatio", "minCalls", "window", "timeWindow", "openFor",
		"halfOpenCalls", "slowCall", "slowRatio", "countRejections",
	}
	policies := []struct {
		name     string
		from, to int // in keys
	}{{"timeout", 0, 2}, {"retry", 1, 13}, {"rateLimiter", 13, 17}, {"bulkhead", 16, 20}, {"circuitBreaker", 20, 29}}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	var b strings.Builder
	for _, top := range []string{"configs", "instances"} {
		fmt.Fprintf(&b, "%s:\n  slow:\n", top)
		if r.IntN(8) == 0 && top == "instances" {
			fmt.Fprintf(&b, "    config: %s\n", pick(values))
		}
		if r.IntN(8) == 0 && top == "instances" {
			fmt.Fprintf(&b, "    critical: %s\n", pick(values))
		}
		for _, p := range policies {
			if r.IntN(5) == 0 {
				fmt.Fprintf(&b, "    %s: {%s: %s}\n", p.name, keys[p.from+r.IntN(p.to-p.from)], pick(values))
			}
		}
		b.WriteString("    <<: {}\n")
	}
	return b.String()
}

// Each key meets each value many times.
func TestNothingTheSchemaRefusesIsAcceptedFromMadeFiles(t *testing.T) {
	schema := validator(t)
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20_000 {
		text := made(r)
		binder, bySchema := compare(t, schema, []byte(text))
		if bySchema != nil {
			t.Fatalf("the binder took what the schema refuses: %v\n%s", bySchema, text)
		}
		if binder == nil {
			taken++
		}
	}
	if taken < 2_000 {
		t.Errorf("only %d of the files were right, so that little was compared", taken)
	}
}

func FuzzNothingTheSchemaRefusesIsAccepted(f *testing.F) {
	for _, text := range append(right, wrong...) {
		f.Add([]byte(text))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		f.Add([]byte(made(r)))
	}
	schema := validator(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := compare(t, schema, text); err != nil {
			t.Fatalf("the binder took what the schema refuses: %v", err)
		}
	})
}
