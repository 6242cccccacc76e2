package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

func set(text string) []string { return []string{"PATH=/bin", config.EnvVariable + "=" + text} }

// Seed 0: both paths of the document, as they stand there.
func TestSeed0_PathsOfTheEnvironment(t *testing.T) {
	c, err := (*config.Config)(nil).WithEnv(set(`configs.slow.timeout.value=10s; instances."com.acme.ReportApi#build(java.lang.String)".timeout.value=5s`))
	if err != nil {
		t.Fatal(err)
	}
	const id = "com.acme.ReportApi#build(java.lang.String)"
	got, err := config.Timeout(c, id, config.Code[timeoutConfig]{})
	want := []config.Setting{
		{Path: `instances."` + id + `".timeout.value`, Value: "5s", Origin: "env"},
		{Path: `instances."` + id + `".timeout.enabled`, Value: "true", Origin: "default"},
	}
	if diff := cmp.Diff(want, got.Settings); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	slow, err := config.Timeout(c, "x", config.Code[timeoutConfig]{Base: "slow"})
	if err != nil || slow.Config.Value.String() != "10s" || slow.Settings[0].Origin != "env" {
		t.Errorf("%+v, %v", slow, err)
	}
}

func TestEnvironmentReplacesAndAdds(t *testing.T) {
	c := parse(t, "configs: {slow: {timeout: {value: 1s}}}\ninstances: {a: {timeout: {value: 2s}, retry: {maxAttempts: 4}}}")
	e, err := c.WithEnv(set(` instances.a.timeout.value = "3s" ;; instances.a.retry.maxAttempts=unlimited;
		instances.a.retry.budget.ratio=0.5;instances."b;.=".critical=true; instances."b;.=".config=slow; instances.a.bulkhead.name="x;y" ; instances.a.bulkhead.maxConcurrent=5; instances.a.rateLimiter.enabled=false;`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b;.="}, e.Instances()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !e.Critical("b;.=") || c.Critical("b;.=") || c.Has("b;.=") {
		t.Error("critical of the added instance; the receiver must stay as it was")
	}
	a := settings(t, e, "a")
	for path, want := range map[string]string{
		`instances."a".timeout.value`: "3s", `instances."a".retry.maxAttempts`: "unlimited", `instances."a".retry.budget.ratio`: "0.5",
		`instances."a".bulkhead.name`: "x;y", `instances."x;y".bulkhead.maxConcurrent`: "5", `instances."a".rateLimiter.enabled`: "false",
	} {
		if a[path].Value != want || a[path].Origin != "env" {
			t.Errorf("%s = %+v, want %s from env", path, a[path], want)
		}
	}
	b := settings(t, e, "b;.=")
	if got := b[`instances."b;.=".timeout.value`]; got.Value != "1s" || got.Origin != "resilience.yaml:1" {
		t.Errorf("config set in the environment: %+v", got)
	}
	if file, line, _ := e.Position("b;.="); file != config.EnvVariable || line != 0 {
		t.Errorf("Position = %s:%d, want %s", file, line, config.EnvVariable)
	}
	if before := settings(t, c, "a")[`instances."a".timeout.value`]; before.Value != "2s" {
		t.Errorf("the receiver was changed: %+v", before)
	}
}

func TestWithoutTheVariableNothingChanges(t *testing.T) {
	c := parse(t, "instances: {a: {}}")
	if got, err := c.WithEnv([]string{"PATH=/bin", "RESILIENCE4CATA_FILE=x"}); err != nil || got != c {
		t.Errorf("%v, %v; want the same Config", got, err)
	}
	if got, err := (*config.Config)(nil).WithEnv(nil); err != nil || got == nil || len(got.Instances()) != 0 {
		t.Errorf("%v, %v; want an empty Config", got, err)
	}
	got, err := c.WithEnv([]string{config.EnvVariable + "=instances.b.critical=true", config.EnvVariable + "=instances.c.critical=true"})
	if err != nil || got.Has("b") || !got.Has("c") {
		t.Errorf("of two variables the last must count: %v, %v", got.Instances(), err)
	}
}

func TestMistakesOfTheEnvironmentAreToldTogether(t *testing.T) {
	c := parse(t, "configs: {slow: {circuitBreaker: {window: 50}}}\n")
	for _, tc := range []struct{ text, want string }{
		{`instances.a.tiemout.value=1s`, `RESILIENCE4CATA_SET: instances."a": unknown policy "tiemout" (did you mean "timeout"?) [R4C-REG-002]`},
		{`instances.a.retry.maxAtempts=1`, `RESILIENCE4CATA_SET: instances."a".retry: unknown key "maxAtempts" (did you mean "maxAttempts"?) [R4C-REG-002]`},
		{`instances.a.retry.budget.ration=1`, `RESILIENCE4CATA_SET: instances."a".retry.budget: unknown key "ration" (did you mean "ratio"?) [R4C-REG-002]`},
		{`instances.a.retry.budget=1`, `RESILIENCE4CATA_SET: instances."a".retry.budget: the path ends at a section (go on to a key) [R4C-ATR-005]`},
		{`instances.a.timeout=1s`, `RESILIENCE4CATA_SET: instances."a".timeout: the path ends at a section (go on to a key, such as .value) [R4C-ATR-005]`},
		{`instances.a=1s`, `RESILIENCE4CATA_SET: instances."a": the path ends at a section (go on to a key, such as .timeout.value) [R4C-ATR-005]`},
		{`instances.a.timeout.value.x=1s`, `RESILIENCE4CATA_SET: instances."a".timeout.value: the path goes on after "value" (end it there) [R4C-REG-002]`},
		{`instances.a.critical.x=true`, `RESILIENCE4CATA_SET: instances."a".critical.x: the path goes on after "critical" (end it there) [R4C-REG-002]`},
		{`configs.x.critical=true`, `RESILIENCE4CATA_SET: configs.x: unknown policy "critical" (that is a key of instances; configs do not build on one another) [R4C-REG-002]`},
		{`instance.a.timeout.value=1s`, `RESILIENCE4CATA_SET: unknown key "instance" (did you mean "instances"?) [R4C-REG-002]`},
		{`instances.a.timeout.value=30`, `RESILIENCE4CATA_SET: instances."a".timeout.value: 30 has no unit (did you mean 30s?) [R4C-ATR-001]`},
		{`instances.a.timeout.value=0`, `RESILIENCE4CATA_SET: instances."a".timeout.value: 0s is not a positive duration (give a duration above 0, such as 2s, or leave the timeout out) [R4C-ATR-002]`},
		{`instances.a.timeout.value=`, `RESILIENCE4CATA_SET: instances."a".timeout.value: the value is null (give a duration, or leave the key out) [R4C-REG-005]`},
		{`instances.a.bulkhead.enabled=yes`, `RESILIENCE4CATA_SET: instances."a".bulkhead.enabled: "yes" is not true or false (did you mean true?) [R4C-ATR-006]`},
		{`instances.a.bulkhead.maxConcurrent="5"`, `RESILIENCE4CATA_SET: instances."a".bulkhead.maxConcurrent: "5" is not a whole number (write it without quotes) [R4C-ATR-005]`},
		{`instances.a.config=slwo`, `RESILIENCE4CATA_SET: instances."a".config: unknown config "slwo" (did you mean "slow"?) [R4C-REG-004]`},
		{`instances." a".critical=true`, `RESILIENCE4CATA_SET: instances." a".critical: " a" begins or ends with a space (give a name that can be printed, without space around it) [R4C-ATR-004]`},
		{`instances.a.critical=true;instances."a".critical=false`, `RESILIENCE4CATA_SET: instances."a".critical: duplicate path (it is set twice in RESILIENCE4CATA_SET) [R4C-REG-003]`},
		{`instances.a.critical`, `RESILIENCE4CATA_SET: "instances.a.critical": there is no "=" after the path (write path=value; path=value) [R4C-REG-001]`},
		{`instances."a.critical=true`, `RESILIENCE4CATA_SET: "instances.\"a.critical=true": a quote is not closed, or holds a wrong escape (write path=value; path=value) [R4C-REG-001]`},
		{`.a=1`, `RESILIENCE4CATA_SET: ".a=1": a word of the path is missing (write path=value; path=value) [R4C-REG-001]`},
		{`instances.a.critical="true" x`, `RESILIENCE4CATA_SET: "instances.a.critical=\"true\" x": something follows the quoted value (write path=value; path=value) [R4C-REG-001]`},
		{`configs.slow.circuitBreaker.timeWindow=5s`, `RESILIENCE4CATA_SET: configs.slow.circuitBreaker.timeWindow: timeWindow together with window (a breaker has one window: remove one of the two) [R4C-ATR-007]`},
	} {
		got, err := c.WithEnv(set(tc.text))
		if err == nil || err.Error() != tc.want || got != nil {
			t.Errorf("%s\ngot  %v\nwant %s", tc.text, err, tc.want)
		}
	}
	_, err := c.WithEnv(set(`instances.a.timeout.value=30; oops; instances."x;y".critical=maybe; instances.a.critical=true`))
	if errs := policy.ConfigErrors(err); len(errs) != 3 || errs[0].Code != "R4C-ATR-001" || errs[1].Code != "R4C-REG-001" || errs[2].Code != "R4C-ATR-005" || errs[2].Col != 37 {
		t.Errorf("three mistakes in order: %v", err)
	}
	// So are those that only the merged settings show, and what is left out.
	merged, err := c.WithEnv(set("configs.default.retry.fullJitter=true;configs.default.retry.jitter=0.5"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.Retry(merged, "a", config.Code[retryConfig]{})
	if errs := policy.ConfigErrors(err); len(errs) != 1 || errs[0].File != config.EnvVariable || errs[0].Code != "R4C-ATR-007" {
		t.Errorf("a contradiction of merged settings: %v", err)
	}
	_, err = c.WithEnv(set(strings.Repeat("x=1;", 2000)))
	if errs := policy.ConfigErrors(err); len(errs) < 2 || errs[len(errs)-1].File != config.EnvVariable || errs[len(errs)-1].Code != "R4C-REG-006" {
		t.Errorf("too many mistakes: %d", len(errs))
	}
	_, err = c.WithEnv([]string{"RESILIENCE4CATA_SETS=x"})
	if err == nil || !strings.Contains(err.Error(), `environment: unknown variable "RESILIENCE4CATA_SETS" (did you mean "RESILIENCE4CATA_SET"?)`) {
		t.Errorf("a misspelled variable: %v", err)
	}
}
