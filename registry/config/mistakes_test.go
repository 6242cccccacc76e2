package config_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

var update = flag.Bool("update", false, "write the golden files and the generated documentation")

// parse parses a text that must be right.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("resilience.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	return c
}

// refuse parses a text that must not be right, and returns what is told.
func refuse(t *testing.T, text string) string {
	t.Helper()
	c, err := config.Parse("resilience.yaml", []byte(text))
	if err == nil {
		t.Fatalf("Parse took\n%s", text)
	}
	if c != nil {
		t.Errorf("a Config came back beside the error %v", err)
	}
	return err.Error()
}

// Issue: a file with ten mistakes shows all ten, each with its place and its way
// out, in the order of the file.
func TestTenMistakesAreReportedTogether(t *testing.T) {
	_, err := config.Load("testdata/ten-mistakes.yaml")
	if n := len(policy.ConfigErrors(err)); n != 10 {
		t.Errorf("%d mistakes, want 10", n)
	}
	got := strings.ReplaceAll(err.Error(), `\`, "/") + "\n"
	golden := "testdata/ten-mistakes.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheRightFileLoads(t *testing.T) {
	c, err := config.Load("testdata/right.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mail", "orders", "payments", "reports"}, c.Instances()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !c.Critical("payments") || c.Critical("reports") || c.Critical("nobody") {
		t.Error("critical is not what the file says")
	}
	if !c.Base("slow") || c.Base("fast") || !c.Has("orders") || c.Has("order") {
		t.Error("configs and instances are not what the file has")
	}
	if file, line, col := c.Position("orders"); file != "testdata/right.yaml" || line != 15 || col != 3 {
		t.Errorf("Position = %s:%d:%d, want testdata/right.yaml:15:3", file, line, col)
	}
	if near := c.Nearest("order"); near != "orders" {
		t.Errorf("Nearest = %q, want orders", near)
	}
}

func TestSections_G2_ThoseOfTheInstanceItself(t *testing.T) {
	c, err := config.Parse("x.yaml", []byte(`
configs: {default: {timeout: {value: 1s}}}
instances:
  a:
    bulkhead: {maxConcurrent: 1}
    circuitBreaker: {}
    retry: {enabled: false}
    timeout: {enabled: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Section{
		{"circuitbreaker", `instances."a".circuitBreaker`, "x.yaml", 6, 5},
		{"timeout", `instances."a".timeout`, "x.yaml", 8, 5},
		{"bulkhead", `instances."a".bulkhead`, "x.yaml", 5, 5},
	}
	if diff := cmp.Diff(want, c.Sections("a")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := append(c.Sections("b"), (*config.Config)(nil).Sections("a")...); got != nil {
		t.Errorf("sections of nothing: %+v", got)
	}
}

// What counts is whether the layer is on once all levels of the file are put
// together, as for those who build it.
func TestSections_G2_NoneThatAnyLevelTakesOut(t *testing.T) {
	c, err := config.Parse("x.yaml", []byte(`
configs:
  default: {retry: {enabled: false}, bulkhead: {enabled: false}}
  off: {timeout: {enabled: false}, bulkhead: {enabled: false}}
  on: {retry: {enabled: true}, bulkhead: {enabled: true}}
instances:
  a: {retry: {maxAttempts: 3}, timeout: {value: 1s}}
  b: {config: off, retry: {enabled: true}, timeout: {value: 1s}, bulkhead: {maxConcurrent: 1}}
  c: {config: on, retry: {maxAttempts: 3}, bulkhead: {enabled: false}}
  d: {config: off, timeout: {enabled: true}, circuitBreaker: {name: e}, rateLimiter: {name: e}}
  e: {circuitBreaker: {enabled: false}, rateLimiter: {limit: 1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{
		"a": {"timeout"}, "b": {"retry"}, "c": {"retry"}, "d": {"ratelimit", "timeout"}, "e": {"ratelimit"},
	} {
		var got []string
		for _, s := range c.Sections(id) {
			got = append(got, s.Policy)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", id, diff)
		}
	}
}

// Rule G-4: the text of the issue, letter by letter.
func TestUnknownPolicyTextIsAsDocumented(t *testing.T) {
	text := "configs:\n  default:\n    timeout: {value: 1s}\n\ninstances:\n  reports:\n\n    tiemout: {value: 2s}\n"
	want := `resilience.yaml:8:5: instances."reports": unknown policy "tiemout" (did you mean "timeout"?) [R4C-REG-002]`
	if got := refuse(t, text); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestField_CF01_MisspeltKeys(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"timout: 2s\n", `resilience.yaml:1:1: unknown key "timout" (known are configs and instances; a key of your own begins with x-) [R4C-REG-002]`},
		{"instance: {}\n", `resilience.yaml:1:1: unknown key "instance" (did you mean "instances"?) [R4C-REG-002]`},
		{"timeout: {value: 1s}\n", `resilience.yaml:1:1: unknown key "timeout" (policies stand under "configs.default" or under an instance) [R4C-REG-002]`},
		{"instances: {orders: {timout: {value: 2s}}}\n", `resilience.yaml:1:22: instances."orders": unknown policy "timout" (did you mean "timeout"?) [R4C-REG-002]`},
		{"instances: {orders: {retry: {maxAtempts: 3}}}\n", `resilience.yaml:1:30: instances."orders".retry: unknown key "maxAtempts" (did you mean "maxAttempts"?) [R4C-REG-002]`},
		{"instances: {orders: {timeout: {maxAttempts: 3}}}\n", `resilience.yaml:1:32: instances."orders".timeout: unknown key "maxAttempts" (did you mean "retry.maxAttempts"?) [R4C-REG-002]`},
		{"instances: {orders: {retry: {maxattempts: 3}}}\n", `resilience.yaml:1:30: instances."orders".retry: unknown key "maxattempts" (did you mean "maxAttempts"?) [R4C-REG-002]`},
		{"instances: {orders: {ratelimiter: {limit: 3}}}\n", `resilience.yaml:1:22: instances."orders": unknown policy "ratelimiter" (did you mean "rateLimiter"?) [R4C-REG-002]`},
		{"instances: {orders: {breaker: {}}}\n", `resilience.yaml:1:22: instances."orders": unknown policy "breaker" (did you mean "circuitBreaker"?) [R4C-REG-002]`},
		{"instances: {orders: {maxWait: 1s}}\n", `resilience.yaml:1:22: instances."orders": unknown policy "maxWait" (did you mean "rateLimiter.maxWait" or "bulkhead.maxWait"?) [R4C-REG-002]`},
		{"instances: {orders: {fallback: {}}}\n", `resilience.yaml:1:22: instances."orders": unknown policy "fallback" (a fallback is a function: give it in code) [R4C-REG-002]`},
		{"instances: {orders: {retry: {timeout: {value: 2s}}}}\n", `resilience.yaml:1:30: instances."orders".retry: unknown key "timeout" ("timeout" is a policy of its own: move it out of "retry") [R4C-REG-002]`},
		{"instances: {orders: {retry: {waitDuration: 2s}}}\n", `resilience.yaml:1:30: instances."orders".retry: unknown key "waitDuration" (did you mean "delay"?) [R4C-REG-002]`},
		{"instances: {orders: {retry: {budget: {ration: 1}}}}\n", `resilience.yaml:1:39: instances."orders".retry.budget: unknown key "ration" (did you mean "ratio"?) [R4C-REG-002]`},
		{"instances: {orders: {retry: {budget.ratio: 1}}}\n", `resilience.yaml:1:30: instances."orders".retry: unknown key "budget.ratio" (write it as budget: {ratio: …}) [R4C-REG-002]`},
		{"instances: {orders: {timeout: {name: x}}}\n", `resilience.yaml:1:32: instances."orders".timeout: unknown key "name" (a timeout keeps no state worth sharing, so it has no name) [R4C-REG-002]`},
		{"configs: {slow: {config: x}}\n", `resilience.yaml:1:18: configs.slow: unknown policy "config" (that is a key of instances; configs do not build on one another) [R4C-REG-002]`},
		{"instances: {orders: {zzzz: {}}}\n", `resilience.yaml:1:22: instances."orders": unknown policy "zzzz" (known are retry, circuitBreaker, rateLimiter, timeout, bulkhead, config, critical) [R4C-REG-002]`},
		{`{"instances": {"orders": {"timout": {"value": "2s"}}}}`, `resilience.yaml:1:27: instances."orders": unknown policy "timout" (did you mean "timeout"?) [R4C-REG-002]`},
	} {
		if got := refuse(t, tc.text); got != tc.want {
			t.Errorf("%s\ngot  %s\nwant %s", tc.text, got, tc.want)
		}
	}
}

func TestField_CF07_NullAndEmpty(t *testing.T) {
	for _, tc := range []struct{ text, path string }{
		{"instances:\n  a:\n    retry:\n", `instances."a".retry`},
		{"instances: {a: {retry: null}}", `instances."a".retry`},
		{"instances: {a: {timeout: ~}}", `instances."a".timeout`},
		{"instances: {a: {timeout: {value: ~}}}", `instances."a".timeout.value`},
		{"instances: {a: {retry: {budget: }}}", `instances."a".retry.budget`},
		{"instances: {a: {retry: {budget: {}}}}", `instances."a".retry.budget`},
		{"instances: {a: {config: }}", `instances."a".config`},
		{"instances: {a: }", `instances."a"`},
		{"instances:", `instances`},
		{"configs: ~", `configs`},
		{`{"instances": {"a": {"retry": null}}}`, `instances."a".retry`},
		{`{"instances": {"a": {"timeout": {"value": null}}}}`, `instances."a".timeout.value`},
		{"null", ""},
		{"~", ""},
		{"instances: {~: {}}", "instances"},
	} {
		_, err := config.Parse("f", []byte(tc.text))
		errs := policy.ConfigErrors(err)
		if len(errs) != 1 || errs[0].Code != "R4C-REG-005" || errs[0].Path != tc.path || errs[0].Line == 0 {
			t.Errorf("%q: %v, want one R4C-REG-005 at %s", tc.text, err, tc.path)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "\ufeff", "instances: {}", "configs: {}\ninstances: {a: {}}"} {
		if c, err := config.Parse("f", []byte(text)); err != nil || c == nil {
			t.Errorf("%q: %v, want an empty configuration", text, err)
		}
	}
	// {} names the layer, with its defaults.
	c := parse(t, "instances: {a: {retry: {}}}")
	got, err := config.Retry(c, "a", config.Code[retryConfig]{})
	if err != nil || !got.Present || !cmp.Equal(got.Config, retryDefault()) {
		t.Errorf("retry: {} = %+v, %v; want the defaults", got, err)
	}
}

func TestField_CF10_AllMistakesTheSameEachTime(t *testing.T) {
	text := `instances:
  a: {timeout: {value: 1s}}
  b: {timeout: {vlaue: 1s}}
  c: {timeout: {value: 1s}}
  d: {timeout: {value: 30}}
  e: {timeout: {value: 1s}}
  f: {config: none}
  g: {timeout: {value: 1s}}
`
	first := refuse(t, text)
	for _, want := range []string{`3:17: instances."b".timeout`, `5:24: instances."d".timeout.value`, `7:15: instances."f".config`} {
		if !strings.Contains(first, want) {
			t.Errorf("%s\nlacks %s", first, want)
		}
	}
	for range 20 {
		if again := refuse(t, text); again != first {
			t.Fatalf("another text:\n%s\nfirst:\n%s", again, first)
		}
	}
	parse(t, strings.NewReplacer("vlaue", "value", "30", "30s", "{config: none}", "{}").Replace(text))
}

// G-5: anchors, merge keys and x- keys.
func TestAnchorsAndMergeKeysWorkInStrictMode(t *testing.T) {
	c := parse(t, `x-base: &base {value: 7s}
x-more: &more {maxConcurrent: 5, queue: 6}
x-anything: [1, ~, {unknown: {}}]
instances:
  a: {timeout: *base}
  b: {bulkhead: {<<: *more, queue: 9}}
  c: {timeout: {<<: [*base, {value: 8s}]}}
`)
	if got := settings(t, c, "a")[`instances."a".timeout.value`]; got.Value != "7s" || got.Origin != "resilience.yaml:1" {
		t.Errorf("alias: %+v", got)
	}
	b := settings(t, c, "b")
	if q, m := b[`instances."b".bulkhead.queue`], b[`instances."b".bulkhead.maxConcurrent`]; q.Value != "9" || m.Value != "5" || m.Origin != "resilience.yaml:2" {
		t.Errorf("merge: %+v %+v", q, m)
	}
	if got := settings(t, c, "c")[`instances."c".timeout.value`]; got.Value != "7s" {
		t.Errorf("of merged sections the first must hold: %+v", got)
	}
	// A mistake under an anchor is told once, where it stands.
	got := refuse(t, "x-base: &base {vlaue: 7s}\ninstances: {a: {timeout: *base}, b: {timeout: {<<: *base}}}\n")
	if want := `resilience.yaml:1:16: instances."a".timeout: unknown key "vlaue" (did you mean "value"?) [R4C-REG-002]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for text, want := range map[string]string{
		"instances: {a: {timeout: {<<: 5}}}":   `<< merges a section, not a number`,
		"instances: {a: {<<: [[{}]]}}":         `a list of lists under <<`,
		`{"instances": {"a": {"<<": {}}}}`:     `unknown policy "<<"`,
		"a: &a 1\ninstances: {b: *c}":          `unknown anchor 'c' referenced`,
		"instances: {a: !foo {}}":              `the tag "!foo" is not supported`,
		"instances: {a: {timeout: {[x]: 1s}}}": `a key is a list or a section`,
	} {
		if got := refuse(t, text); !strings.Contains(got, want) {
			t.Errorf("%s: %s\nlacks %s", text, got, want)
		}
	}
}

func TestLoadTellsWhyAFileCannotBeRead(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
	if errs := policy.ConfigErrors(err); !errors.Is(err, fs.ErrNotExist) || len(errs) != 1 || errs[0].Code != "R4C-REG-008" {
		t.Errorf("a missing file: %v", err)
	}
	_, err = config.Load("resilience.toml")
	if want := `resilience.toml: the ending ".toml" is not known (name the file .yaml, .yml or .json) [R4C-REG-008]`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	path := filepath.Join(t.TempDir(), "r.JSON")
	if err := os.WriteFile(path, []byte(`{"instances": {"a": {}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Load(path); err != nil || !c.Has("a") {
		t.Errorf("Load of JSON: %v", err)
	}
}
