package registry_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func TestCheck_G8_Contradictions(t *testing.T) {
	const s = time.Second
	type builder = *pipeline.Builder[int]
	for name, tc := range map[string]struct {
		build func(b builder) builder
		want  string // "" for none; else the code and a part of the text
	}{
		"bulkhead wait in timeout": {
			func(b builder) builder {
				return b.Timeout(2*s).Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.MaxWait(5*s))
			},
			"R4C-CHK-002 warning bulkhead wait 5s can never be served inside timeout 2s",
		},
		"equal is too late": {
			func(b builder) builder {
				return b.Timeout(2*s).Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.MaxWait(2*s))
			},
			"R4C-CHK-002 warning bulkhead wait 2s can never be served inside timeout 2s",
		},
		"fits": {func(b builder) builder {
			return b.Timeout(2*s).Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.MaxWait(1*s))
		}, ""},
		"no bound of its own": {func(b builder) builder { return b.Timeout(2*s).Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.Queue(5)) }, ""},
		"bulkhead wait in maxDuration": {
			func(b builder) builder {
				return b.Retry(retry.MaxDuration(3*s), retry.Reserve(s)).Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.MaxWait(2*s))
			},
			"R4C-CHK-002 warning bulkhead wait 2s can never be served inside maxDuration 3s - reserve 1s = 2s",
		},
		"limiter wait in maxDuration": {
			func(b builder) builder {
				return b.Retry(retry.MaxDuration(3*s)).RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(4*s))
			},
			"R4C-CHK-003 warning rate limiter wait 4s can never be served inside maxDuration 3s",
		},
		"limiter wait is outside the timeout": {func(b builder) builder {
			return b.Timeout(s).RateLimit(ratelimit.PerSecond(1), ratelimit.MaxWait(4*s))
		}, ""},
		"no second attempt after a timeout": {
			func(b builder) builder {
				return b.Timeout(2*s).Retry(retry.MaxDuration(2*s+100*time.Millisecond), retry.Constant(100*time.Millisecond))
			},
			"R4C-CHK-004 warning maxDuration 2.1s leaves no room for a second attempt after one that times out: timeout 2s + delay 100ms = 2.1s",
		},
		"room for a second attempt": {func(b builder) builder {
			return b.Timeout(2*s).Retry(retry.MaxDuration(3*s), retry.Constant(100*time.Millisecond))
		}, ""},
		"no second attempt at all": {
			func(b builder) builder { return b.Retry(retry.MaxDuration(2*s), retry.Constant(3*s)) },
			"R4C-CHK-004 warning maxDuration 2s leaves no room for a second attempt: the delay before it is at least 3s",
		},
		"one attempt needs no room": {func(b builder) builder {
			return b.Timeout(2*s).Retry(retry.MaxAttempts(1), retry.MaxDuration(2*s))
		}, ""},
		"no layer at all": {func(b builder) builder { return b }, "R4C-CHK-007 info the pipeline has no layer: it protects nothing and counts nothing"},
		"a fallback is a layer": {func(b builder) builder {
			return b.Fallback(func(context.Context, error) (int, error) { return 0, nil })
		}, ""},
		"limit 1 and async retries": {
			func(b builder) builder { return b.Timeout(s).Retry().Bulkhead(bulkhead.MaxConcurrent(1)) },
			"R4C-CHK-006 info bulkhead limit 1, no waiting, and a retry",
		},
		"limit 1 that frees": {func(b builder) builder {
			return b.Timeout(s).Retry().Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.FreeOnTimeout())
		}, ""},
		"limit 1 that waits": {func(b builder) builder {
			return b.Timeout(s).Retry().Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(3))
		}, ""},
		"immediate retries on a limit of their own": {func(b builder) builder { return b.Retry(retry.Constant(0)).RateLimit(ratelimit.PerSecond(1)) }, ""},
	} {
		r, _ := newRegistry(t)
		built(t, tc.build(pipeline.New[int](r, "p")))
		var got []string
		for _, f := range r.Check() {
			if f.ID != "p" {
				t.Errorf("%s: id %q", name, f.ID)
			}
			got = append(got, f.Code+" "+f.Severity+" "+f.Text)
		}
		switch {
		case tc.want == "" && len(got) > 0, tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want)):
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestCheck_G8_RetriesAtOnceOnASharedLimit(t *testing.T) {
	r, _ := newRegistry(t)
	built(t, pipeline.New[int](r, "a").Retry(retry.Constant(0)).RateLimit(ratelimit.PerSecond(5), ratelimit.Name("x")))
	built(t, pipeline.New[int](r, "b").Retry(retry.Constant(0), retry.Budget(.1, 1)).RateLimit(ratelimit.Name("x")))
	built(t, pipeline.New[int](r, "c").Retry().RateLimit(ratelimit.Name("x")))
	built(t, pipeline.New[int](r, "d").Retry(retry.Constant(0), retry.Unlimited()).Bulkhead(bulkhead.MaxConcurrent(5), bulkhead.Name("y")))
	built(t, pipeline.New[int](r, "e").Bulkhead(bulkhead.Name("y")))
	got := r.Check()
	if len(got) != 2 || got[0].Code != "R4C-CHK-005" || got[0].ID != "a" || got[1].ID != "d" {
		t.Fatalf("%+v", got)
	}
	for i, part := range []string{`3 attempts with delay 0s and no budget on the rate limiter "x"`, `unlimited number of attempts with delay 0s and no budget on the bulkhead "y"`} {
		if !strings.Contains(got[i].Text, part) {
			t.Errorf("%q is not in %q", part, got[i].Text)
		}
	}
}

func TestCheck_G8_AConfiguredPipelineWithoutLayers(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances: {empty: {}, off: {timeout: {value: 1s, enabled: false}}}`)))
	built(t, pipeline.Configured[int](r, "empty"))
	built(t, pipeline.Configured[int](r, "off"))
	if got := r.Check(); len(got) != 1 || got[0].Code != "R4C-CHK-007" || got[0].ID != "empty" || got[0].Severity != "info" {
		t.Errorf("findings %+v, want one R4C-CHK-007 for empty", got)
	}
}

func TestCheck_G2_G6_SectionsOfLayersThatNoPipelineHas(t *testing.T) {
	c := parse(t, `
configs:
  default: {retry: {maxAttempts: 5}}
instances:
  reports:
    timeout: {value: 2s}
    circuitBreaker: {}
    bulkhead: {name: shared, maxWait: 1s}
  orders: {timeout: {value: 1s}, retry: {enabled: false}}
  listed: {timeout: {value: 1s}, retry: {}}
  shared: {bulkhead: {maxConcurrent: 3}, rateLimiter: {limit: 5}}
`)
	c, err := c.WithEnv([]string{`RESILIENCE4CATA_SET=instances.orders.bulkhead.maxConcurrent=2`})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newRegistry(t, registry.WithConfig(c))
	built(t, pipeline.New[int](r, "reports").Timeout(0).Bulkhead())
	built(t, pipeline.New[int](r, "orders").Timeout(0))
	built(t, pipeline.Configured[int](r, "listed"))
	const way = ": New takes layers from code alone: name it there, use Configured, or remove the section"
	want := []registry.Finding{
		{"R4C-CHK-008", "orders", "warning", `no pipeline has the layer of instances."orders".bulkhead (RESILIENCE4CATA_SET)` + way},
		{"R4C-CHK-008", "reports", "warning", `no pipeline has the layer of instances."reports".circuitBreaker (resilience.yaml:7)` + way},
		{"R4C-CHK-008", "shared", "warning", `no pipeline has the layer of instances."shared".rateLimiter (resilience.yaml:11)` + way},
	}
	if diff := cmp.Diff(want, r.Check()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	built(t, pipeline.New[int](r, "limited").RateLimit(ratelimit.Name("shared")))
	if got := r.Check(); len(got) != 2 {
		t.Errorf("one more is in use now: %+v", got)
	}
}

// A layer that is off does nothing wherever it is, so its section is no finding.
func TestCheck_G2_G6_SectionsThatAnyLevelSwitchesOff(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"on":                      {"instances: {p: {timeout: {value: 1s}, retry: {maxAttempts: 3}}}", 1},
		"off by itself":           {"instances: {p: {timeout: {value: 1s}, retry: {enabled: false, maxAttempts: 3}}}", 0},
		"off by the named config": {"configs: {off: {retry: {enabled: false}}}\ninstances: {p: {config: off, timeout: {value: 1s}, retry: {maxAttempts: 3}}}", 0},
		"off by configs.default":  {"configs: {default: {retry: {enabled: false}}}\ninstances: {p: {timeout: {value: 1s}, retry: {maxAttempts: 3}}}", 0},
		"on by itself":            {"configs: {default: {retry: {enabled: false}}}\ninstances: {p: {timeout: {value: 1s}, retry: {enabled: true}}}", 1},
	} {
		r, _ := newRegistry(t, registry.WithConfig(parse(t, tc.text)))
		built(t, pipeline.New[int](r, "p").Timeout(time.Second))
		if got := r.Check(); len(got) != tc.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), tc.want, got)
		}
	}
}

func TestCheck_G6_UnusedInstances(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `
instances:
  reports: {bulkhead: {maxConcurrent: 1}}
  reprots: {bulkhead: {maxConcurrent: 1}}
  shared:  {rateLimiter: {limit: 1}}
  lonely:  {rateLimiter: {limit: 1}}
`)))
	if n := len(r.Check()); n != 4 {
		t.Errorf("%d findings before anything is built", n)
	}
	built(t, pipeline.New[int](r, "reports").Bulkhead().RateLimit(ratelimit.Name("shared")))
	want := []registry.Finding{
		{"R4C-CHK-001", "lonely", "warning", "the configuration has an instance that no pipeline asks for (resilience.yaml:6): build it or remove it"},
		{"R4C-CHK-001", "reprots", "warning", `the configuration has an instance that no pipeline asks for (resilience.yaml:4): did you mean "reports"?`},
	}
	got := r.Check()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got[0].ID = "changed"
	if diff := cmp.Diff(want, r.Snapshot().Findings); diff != "" {
		t.Errorf("in the snapshot (-want +got)\n%s", diff)
	}
}

// Hints are bounded: two thousand on both sides would be four million pairs. So
// the last ones get none.
func TestCheck_G6_ManyUnusedInstancesDoNotCostAHintEach(t *testing.T) {
	var text strings.Builder
	text.WriteString("instances:\n")
	for i := range 2000 {
		text.WriteString("  an-instance-with-a-long-name-" + strconv.Itoa(i) + ": {bulkhead: {maxConcurrent: 1}}\n")
	}
	r, _ := newRegistry(t, registry.WithConfig(parse(t, text.String())))
	for i := range 2000 {
		built(t, pipeline.New[int](r, "an-instance-with-a-long-nome-"+strconv.Itoa(i)).Timeout(time.Second))
	}
	got := r.Check()
	if len(got) != 2000 {
		t.Fatalf("%d findings", len(got))
	}
	if !strings.Contains(got[0].Text, "did you mean") || strings.Contains(got[1999].Text, "did you mean") {
		t.Errorf("%v\n%v", got[0], got[1999])
	}
}
