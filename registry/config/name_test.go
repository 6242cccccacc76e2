package config_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry/config"
)

// G-1, G-2: a layer that shares an instance takes the instance's settings from
// the instance's section, and its own from its own.
func TestSharedInstanceHasItsOwnSection(t *testing.T) {
	c := parse(t, `configs:
  slow: {rateLimiter: {limit: 5}}
instances:
  reports: {config: slow, rateLimiter: {name: backend, maxWait: 20ms}}
  mail: {rateLimiter: {name: backend}}
  backend: {rateLimiter: {limit: 50, period: 2s, maxWait: 30ms}}
  alone: {rateLimiter: {name: nowhere, limit: 7}}
`)
	want := func(id, name string, limit int, wait string, code config.Code[rateConfig]) {
		t.Helper()
		got, err := config.RateLimit(c, id, code)
		if err != nil || got.Name != name || got.Config.Limit != limit || got.Config.MaxWait.String() != wait {
			t.Errorf("%s: name %q, %+v, %v; want %q, limit %d, maxWait %s", id, got.Name, got.Config, err, name, limit, wait)
		}
	}
	want("reports", "backend", 50, "20ms", config.Code[rateConfig]{})
	want("mail", "backend", 50, "30ms", config.Code[rateConfig]{})
	want("backend", "", 50, "30ms", config.Code[rateConfig]{})
	want("alone", "nowhere", 7, "0s", config.Code[rateConfig]{})
	var code config.Code[rateConfig]
	code.Keys = code.Config.Apply(ratelimit.PerSecond(9), ratelimit.MaxWait(5*ms))
	code.Name = "backend"
	want("other", "backend", 50, "30ms", code)
	code.Name = "unknown"
	want("other", "unknown", 9, "5ms", code)

	got, err := config.RateLimit(c, "reports", config.Code[rateConfig]{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]config.Setting{
		{Path: `instances."backend".rateLimiter.limit`, Value: "50", Origin: "resilience.yaml:6"},
		{Path: `instances."backend".rateLimiter.period`, Value: "2s", Origin: "resilience.yaml:6"},
		{Path: `instances."backend".rateLimiter.burst`, Value: "50", Origin: "default"},
		{Path: `instances."reports".rateLimiter.maxWait`, Value: "20ms", Origin: "resilience.yaml:4"},
		{Path: `instances."reports".rateLimiter.enabled`, Value: "true", Origin: "default"},
		{Path: `instances."reports".rateLimiter.name`, Value: "backend", Origin: "resilience.yaml:4"},
	}, got.Settings); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// R4C-REG-007: a section that cannot apply.
func TestSectionsThatCannotApplyAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"instances:\n  a: {bulkhead: {name: b, maxConcurrent: 3, maxWait: 1s}}\n  b: {bulkhead: {maxConcurrent: 4}}\n": `resilience.yaml:2:42: instances."a".bulkhead.maxConcurrent: the layer uses the shared instance "b", which has a section of its own (move it to instances."b".bulkhead) [R4C-REG-007]`,
		"instances:\n  a: {bulkhead: {name: b}}\n  b: {bulkhead: {name: c}}\n":                                         `resilience.yaml:2:24: instances."a".bulkhead.name: "b" itself shares "c" (name "c") [R4C-REG-007]`,
	} {
		if got := refuse(t, text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	parse(t, "instances:\n  a: {bulkhead: {name: a, maxConcurrent: 3}}\n")
	parse(t, "instances:\n  a: {bulkhead: {name: b, maxConcurrent: 3}}\n  b: {timeout: {value: 1s}}\n")

	c := parse(t, "instances:\n  a:\n    rateLimiter: {limit: 3}\n")
	_, err := config.RateLimit(c, "a", config.Code[rateConfig]{Name: "b"})
	if want := `resilience.yaml:3:5: instances."a".rateLimiter: the layer is named "b" in code, so this section cannot apply (move it to instances."b".rateLimiter) [R4C-REG-007]`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	// A name in the instance's own section is above the code's.
	c = parse(t, "instances:\n  a: {rateLimiter: {limit: 3, name: c}}\n")
	if got, err := config.RateLimit(c, "a", config.Code[rateConfig]{Name: "b"}); err != nil || got.Name != "c" {
		t.Errorf("name %q, %v; want c", got.Name, err)
	}
	// One in configs.default is below it.
	c = parse(t, "configs: {default: {rateLimiter: {limit: 3, name: c}}}")
	if got, err := config.RateLimit(c, "a", config.Code[rateConfig]{Name: "b"}); err != nil || got.Name != "b" {
		t.Errorf("name %q, %v; want b", got.Name, err)
	}
	if got, err := config.RateLimit(c, "c", config.Code[rateConfig]{}); err != nil || got.Name != "" {
		t.Errorf("name %q, %v; want none: it is the instance's own", got.Name, err)
	}
}

// G-1: an id is legal in a configuration if and only if it is in code. The two
// have their own check, since what may be imported here leaves no common place.
func TestIDs_G1_AreLegalHereIfTheyAreInCode(t *testing.T) {
	ids := []string{
		"a", "a b", "com.acme.ReportApi#build(java.lang.String)", "a;b=c", "\u00e4", "\u3000", "a\u3000b", "\U0001f600", "\u200b", "a\u200bb", "a\u00a0", "\u00ad", "\ufeffa", "\ufffd",
		"", " ", " a", "a ", "a\t", "\n", "a\nb", "a\x00b", "a\x7f", "\xff", "a\xc3", "\u0085", "a\u2028b", "\ue000", "a\u0301",
	}
	legal := 0
	for _, id := range ids {
		_, inCode := retry.New(id, retry.Default(), clock.System())
		_, here := (*config.Config)(nil).WithEnv(set("instances." + strconv.Quote(id) + ".critical=true"))
		if (here == nil) != (inCode == nil) {
			t.Errorf("%q: %v, in code %v", id, here, inCode)
		}
		if here == nil {
			legal++
		}
	}
	if legal < 5 || legal > len(ids)-5 {
		t.Errorf("%d of %d are legal", legal, len(ids))
	}
}
