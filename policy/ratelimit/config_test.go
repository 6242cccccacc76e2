package ratelimit_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/ratelimit"
)

// L-7: a rate that is not positive is refused at build, and the error names the
// field and the value.
func TestField_RL01_RefusesWhatIsNoRate(t *testing.T) {
	valid := ratelimit.Config{Limit: 1, Period: time.Second, Burst: 1}
	change := func(f func(c *ratelimit.Config)) ratelimit.Config {
		c := valid
		f(&c)
		return c
	}
	tests := []struct {
		name string
		c    ratelimit.Config
		want []string // path and what was given
	}{
		{"valid", valid, nil},
		{"zero value", ratelimit.Config{}, []string{"limit: 0", "period: 0s"}},
		{"default", ratelimit.Default(), []string{"limit: 0"}},
		{"rate 0", config(ratelimit.PerSecond(0)), []string{"limit: 0"}},
		{"rate -1", config(ratelimit.PerSecond(-1)), []string{"limit: -1"}},
		{"rate 0, burst 2", change(func(c *ratelimit.Config) { c.Limit, c.Burst = 0, 2 }), []string{"limit: 0"}},
		{"burst 0", config(ratelimit.PerSecond(5), ratelimit.Burst(0)), []string{"burst: 0"}},
		{"burst -5", config(ratelimit.Burst(-5), ratelimit.PerSecond(5)), []string{"burst: -5"}},
		{"period 0", config(ratelimit.Per(5, 0)), []string{"period: 0s"}},
		{"period below 0", config(ratelimit.Per(5, -time.Second)), []string{"period: -1s"}},
		{"wait below 0", config(ratelimit.PerSecond(5), ratelimit.MaxWait(-1)), []string{"maxWait: -1ns"}},
		{"all", ratelimit.Config{Limit: -1, Period: -1, Burst: -2, MaxWait: -1}, []string{"limit: -1", "period: -1ns", "burst: -2", "maxWait: -1ns"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := clock.NewManual(start)
			p, err := ratelimit.New("backend", tt.c, m)
			if (p != nil) != (tt.want == nil) {
				t.Errorf("policy %v", p)
			}
			var got []string
			for _, e := range policy.ConfigErrors(err) {
				if e.Code != "R4C-ATR-003" || e.Policy != "ratelimit" || e.ID != "backend" || e.Hint == "" {
					t.Errorf("incomplete: %+v", e)
				}
				var value string
				if _, err := fmt.Sscan(e.Got, &value); err != nil {
					t.Error(err)
				}
				got = append(got, e.Path+": "+value)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if m.Pending() != 0 {
				t.Error("something is pending")
			}
		})
	}
}

func TestNewReportsIDAndClock(t *testing.T) {
	c := config(ratelimit.PerSecond(1))
	tests := []struct {
		name, id string
		clk      clock.Clock
		c        ratelimit.Config
		want     []string
	}{
		{"empty", "", clock.System(), c, []string{"R4C-ATR-004 id"}},
		{"leading space", " b", clock.System(), c, []string{"R4C-ATR-004 id"}},
		{"trailing space", "b\t", clock.System(), c, []string{"R4C-ATR-004 id"}},
		{"not printable", "a\x00b", clock.System(), c, []string{"R4C-ATR-004 id"}},
		{"id and config", "", clock.System(), ratelimit.Default(), []string{"R4C-ATR-004 id", "R4C-ATR-003 limit"}},
		{"nil clock", "b", nil, c, []string{"R4C-ATR-003 clk"}},
		{"any printable text", "com.acme.Api#build(java.lang.String)/ü", clock.System(), c, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ratelimit.New(tt.id, tt.c, tt.clk)
			var got []string
			for _, e := range policy.ConfigErrors(err) {
				if e.ID != tt.id {
					t.Errorf("ID = %q", e.ID)
				}
				got = append(got, e.Code+" "+e.Path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestApplyInOrderAndBurstFollows(t *testing.T) {
	type result struct {
		C    ratelimit.Config
		Keys []string
	}
	apply := func(c ratelimit.Config, opts ...ratelimit.Option) result {
		keys := c.Apply(opts...)
		return result{c, keys}
	}
	five := ratelimit.Config{Limit: 5, Period: time.Second, Burst: 5}
	tests := []struct {
		name string
		got  result
		want result
	}{
		{"none", apply(five), result{five, nil}},
		{"burst is the limit", apply(ratelimit.Default(), ratelimit.PerSecond(5)), result{five, []string{"limit", "period"}}},
		{
			"burst wins in any order", apply(ratelimit.Default(), ratelimit.Burst(2), ratelimit.PerSecond(5)),
			result{ratelimit.Config{Limit: 5, Period: time.Second, Burst: 2}, []string{"burst", "limit", "period"}},
		},
		{
			"last wins", apply(ratelimit.Default(), ratelimit.PerSecond(5), ratelimit.Per(7, time.Minute)),
			result{ratelimit.Config{Limit: 7, Period: time.Minute, Burst: 7}, []string{"limit", "period"}},
		},
		{
			"burst follows a new rate", apply(five, ratelimit.PerSecond(9)),
			result{ratelimit.Config{Limit: 9, Period: time.Second, Burst: 9}, []string{"limit", "period"}},
		},
		{
			"burst of its own stays", apply(ratelimit.Config{Limit: 5, Period: time.Second, Burst: 2}, ratelimit.PerSecond(9)),
			result{ratelimit.Config{Limit: 9, Period: time.Second, Burst: 2}, []string{"limit", "period"}},
		},
		{
			"explicit zeros", apply(five, ratelimit.Burst(0), ratelimit.MaxWait(0), nil),
			result{ratelimit.Config{Limit: 5, Period: time.Second}, []string{"burst", "maxWait"}},
		},
		{"name changes nothing", apply(five, ratelimit.Name("x")), result{five, nil}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestNameOf(t *testing.T) {
	if id, ok := ratelimit.NameOf(ratelimit.PerSecond(1)); id != "" || ok {
		t.Errorf("NameOf without a name = %q, %v", id, ok)
	}
	if id, ok := ratelimit.NameOf(ratelimit.Name("a"), ratelimit.PerSecond(1), ratelimit.Name("b")); id != "b" || !ok {
		t.Errorf("NameOf = %q, %v; the last wins", id, ok)
	}
}

func TestOptionsPrintAndCompare(t *testing.T) {
	got := fmt.Sprintln(ratelimit.PerSecond(5), ratelimit.Per(7, time.Minute), ratelimit.Burst(2), ratelimit.MaxWait(time.Second), ratelimit.Name("x"))
	if want := `PerSecond(5) Per(7, 1m0s) Burst(2) MaxWait(1s) Name("x")` + "\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if ratelimit.PerSecond(5) != ratelimit.Per(5, time.Second) {
		t.Error("equal options are not equal")
	}
}

func TestConfigAsJSON(t *testing.T) {
	got, err := json.Marshal(config(ratelimit.PerSecond(50)))
	if want := `{"limit":50,"period":"1s","burst":50,"maxWait":"0s"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// L-7: the arithmetic saturates. Whatever is valid starts full, and never makes
// a negative wait.
func TestExtremeRatesSaturate(t *testing.T) {
	values := []int{1, 2, 3, 1000, 1_000_003, math.MaxInt32, math.MaxInt}
	periods := []time.Duration{1, 7, time.Microsecond, time.Second, 24 * time.Hour, math.MaxInt64}
	for _, limit := range values {
		for _, period := range periods {
			for _, burst := range values {
				p, m := newManual(t, ratelimit.Per(limit, period), ratelimit.Burst(burst), ratelimit.MaxWait(time.Minute))
				name := fmt.Sprintf("%d per %s, burst %d", limit, period, burst)
				if got := p.Snapshot().Available; got != burst {
					t.Errorf("%s: %d available at the start", name, got)
				}
				if !p.TryAcquire() {
					t.Errorf("%s: the first was refused", name)
				}
				for range 10 {
					if err := p.Acquire(t.Context()); err != nil && retryAfter(t, err) <= time.Minute {
						t.Errorf("%s: %v", name, err)
					}
				}
				m.Advance(math.MaxInt64 / 2)
				m.Advance(math.MaxInt64 / 4)
				if !p.TryAcquire() && limit > 1 {
					t.Errorf("%s: refused after two hundred years", name)
				}
				if got := p.Snapshot().Available; got < 0 || got > burst {
					t.Errorf("%s: %d available", name, got)
				}
			}
		}
	}
}
