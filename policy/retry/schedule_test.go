package retry_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/policy/retry"
)

const longest = time.Duration(math.MaxInt64)

func TestField_RE01_BackoffNeverOverflows(t *testing.T) {
	c := config(retry.Exponential(100*time.Millisecond, 2), retry.MaxDelay(30*time.Second))
	want := map[int]time.Duration{
		1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 3: 400 * time.Millisecond, 9: 25600 * time.Millisecond,
		10: 30 * time.Second, 37: 30 * time.Second, 63: 30 * time.Second, 64: 30 * time.Second, 1000: 30 * time.Second,
		math.MaxInt32: 30 * time.Second,
	}
	got := map[int]time.Duration{}
	for n := range want {
		got[n] = c.Schedule(n, 0.5)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delays (-want +got)\n%s", diff)
	}
	for name, c := range map[string]retry.Config{
		"no cap":             config(retry.Exponential(100*time.Millisecond, 2), retry.MaxDelay(0)),
		"huge factor":        config(retry.Exponential(time.Second, 1e308), retry.MaxDelay(0)),
		"huge base":          config(retry.Exponential(longest, 2), retry.MaxDelay(0)),
		"huge linear":        config(retry.Linear(longest/2), retry.MaxDelay(0)),
		"huge base, jitter":  config(retry.Exponential(longest/2, 1), retry.MaxDelay(0), retry.Jitter(1)),
		"huge, full jitter":  config(retry.Constant(longest), retry.MaxDelay(0), retry.FullJitter()),
		"constant, no cap":   config(retry.Constant(longest), retry.MaxDelay(0)),
		"everything extreme": config(retry.Exponential(longest, math.MaxFloat64), retry.MaxDelay(longest), retry.Jitter(1)),
	} {
		var before time.Duration
		for n := 1; n <= 2000; n++ {
			d := c.Schedule(n, 1)
			if d <= 0 || d < before {
				t.Errorf("%s: delay(%d) = %v after %v", name, n, d, before)
				break
			}
			before = d
		}
	}
	if got := config(retry.Exponential(time.Second, 1e308), retry.MaxDelay(0)).Schedule(3, 0); got != longest {
		t.Errorf("without a cap delays saturate at %v, got %v", longest, got)
	}
}

func TestConform_11_DelayMaths(t *testing.T) {
	for _, tc := range []struct {
		name string
		opt  retry.Option
		want []time.Duration
	}{
		{"constant", retry.Constant(time.Second), []time.Duration{time.Second, time.Second, time.Second}},
		{"linear", retry.Linear(time.Second), []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}},
		{"exponential", retry.Exponential(time.Second, 2), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"constant 0", retry.Constant(0), []time.Duration{0, 0, 0}},
		{"linear 0", retry.Linear(0), []time.Duration{0, 0, 0}},
		{"exponential 0", retry.Exponential(0, 1e308), []time.Duration{0, 0, 0}},
	} {
		c := config(tc.opt)
		got := []time.Duration{c.Schedule(1, 0.7), c.Schedule(2, 0.1), c.Schedule(3, 1)}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestConform_12_Jitter(t *testing.T) {
	ms := func(x ...int64) (d []time.Duration) {
		for _, x := range x {
			d = append(d, time.Duration(x)*time.Millisecond)
		}
		return d
	}
	draw := func(c retry.Config, n int, random ...float64) (d []time.Duration) {
		for _, x := range random {
			d = append(d, c.Schedule(n, x))
		}
		return d
	}
	constant := config(retry.Constant(time.Second), retry.Jitter(0.25))
	if diff := cmp.Diff(ms(750, 950, 1050, 1250), draw(constant, 1, 0, 0.4, 0.6, 1)); diff != "" {
		t.Errorf("constant (-want +got)\n%s", diff)
	}
	linear := config(retry.Linear(time.Second), retry.Jitter(0.25))
	if diff := cmp.Diff(ms(2250, 2850, 3000, 3150, 3750), draw(linear, 3, 0, 0.4, 0.5, 0.6, 1)); diff != "" {
		t.Errorf("linear (-want +got)\n%s", diff)
	}
	full := config(retry.Constant(time.Second), retry.FullJitter())
	if diff := cmp.Diff(ms(0, 400, 1000), draw(full, 1, 0, 0.4, 1)); diff != "" {
		t.Errorf("full (-want +got)\n%s", diff)
	}
	none := config(retry.Constant(longest-1), retry.MaxDelay(0))
	if got := none.Schedule(1, 0.9); got != longest-1 {
		t.Errorf("jitter 0: got %d, want exactly %d", got, longest-1)
	}
	outside := draw(constant, 1, -3, 7, math.NaN(), math.Inf(1), math.Inf(-1))
	if diff := cmp.Diff(ms(750, 1250, 1000, 1250, 750), outside); diff != "" {
		t.Errorf("random numbers outside [0, 1] (-want +got)\n%s", diff)
	}
	capped := config(retry.Exponential(time.Second, 2), retry.MaxDelay(10*time.Second), retry.Jitter(0.5))
	if diff := cmp.Diff(ms(5000, 10000, 10000), draw(capped, 20, 0, 0.5, 1)); diff != "" {
		t.Errorf("delays at the cap are spread below it (-want +got)\n%s", diff)
	}
}

func TestConform_13_DelaysStayPositiveAndCapped(t *testing.T) {
	day := 24 * time.Hour
	if got := config(retry.Exponential(day, 2), retry.MaxDelay(0)).Schedule(1001, 0); got != longest {
		t.Errorf("got %v, want the longest duration", got)
	}
	if got := config(retry.Exponential(day, 2), retry.MaxDelay(2*day)).Schedule(1001, 0); got != 2*day {
		t.Errorf("got %v, want 48h", got)
	}
	free := config(retry.Exponential(2*time.Second, 2), retry.MaxDelay(0), retry.Jitter(0.25))
	capped := config(retry.Exponential(2*time.Second, 2), retry.MaxDelay(30*time.Second), retry.Jitter(0.25))
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 4, 5, 11, 101, 1001, 1025, 1026} {
		for range 100 {
			x := random.Float64()
			if d := free.Schedule(n, x); d <= 0 {
				t.Fatalf("delay(%d, %v) = %v", n, x, d)
			}
			if d := capped.Schedule(n, x); d <= 0 || d > 30*time.Second {
				t.Fatalf("capped delay(%d, %v) = %v", n, x, d)
			}
		}
	}
}

func TestField_RE13_JitterStaysInItsRange(t *testing.T) {
	c := config(retry.Constant(200*time.Millisecond), retry.Jitter(1), retry.MaxDelay(250*time.Millisecond))
	draws := func(seed uint64, n int) []time.Duration {
		random := rand.New(rand.NewPCG(seed, 0))
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = c.Schedule(1, random.Float64())
		}
		return all
	}
	var below, above int
	for _, d := range draws(7, 100_000) {
		if d < 0 || d > 250*time.Millisecond {
			t.Fatalf("delay %v is outside [0, 250ms]", d)
		}
		if d < 125*time.Millisecond {
			below++
		} else {
			above++
		}
	}
	if below < 20_000 || above < 20_000 {
		t.Errorf("%d below the middle and %d above: both halves must be hit", below, above)
	}
	if diff := cmp.Diff(draws(9, 1000), draws(9, 1000)); diff != "" {
		t.Error("the same random numbers gave other delays")
	}
	huge := config(retry.Constant(longest/2), retry.Jitter(1), retry.MaxDelay(0))
	random := rand.New(rand.NewPCG(3, 3))
	for range 100_000 {
		if d := huge.Schedule(1, random.Float64()); d < 0 {
			t.Fatalf("delay %v is negative", d)
		}
	}
}

// drawn is any valid schedule, from small to extreme values.
func drawn(random *rand.Rand) retry.Config {
	duration := func() time.Duration { return time.Duration(random.Int64() >> random.IntN(64)) }
	c := retry.Config{
		MaxAttempts: 1 + random.IntN(100), Delay: duration(), Factor: 1 + math.Exp(random.NormFloat64()*4),
		Backoff: []retry.Backoff{retry.BackoffConstant, retry.BackoffLinear, retry.BackoffExponential}[random.IntN(3)],
	}
	switch random.IntN(3) {
	case 0:
		c.Jitter = random.Float64()
	case 1:
		c.FullJitter = true
	}
	if random.IntN(2) == 0 {
		c.MaxDelay = duration()
	}
	return c
}

func TestScheduleIsMonotoneAndBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(42, 42))
	for range 5_000 {
		c := drawn(random)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if text := scheduleFault(c, 1+random.IntN(200), random.Float64()); text != "" {
			t.Fatalf("%+v: %s", c, text)
		}
	}
}

func TestBoundIsTheSumOfTheLongest(t *testing.T) {
	second := time.Second
	for _, tc := range []struct {
		name       string
		c          retry.Config
		perAttempt time.Duration
		want       time.Duration
		ok         bool
	}{
		{"defaults", config(), 2 * second, 6300 * time.Millisecond, true},
		{"one attempt", config(retry.MaxAttempts(1)), 2 * second, 2 * second, true},
		{"jitter", config(retry.Constant(second), retry.Jitter(0.25)), 0, 2500 * time.Millisecond, true},
		{"full jitter", config(retry.Constant(second), retry.FullJitter()), 0, 2 * second, true},
		{"linear", config(retry.Linear(second), retry.MaxAttempts(5)), 0, 10 * second, true},
		{"linear, capped", config(retry.Linear(second), retry.MaxAttempts(6), retry.MaxDelay(3*second)), 0, 12 * second, true},
		{"linear, capped by jitter", config(retry.Linear(second), retry.MaxAttempts(4), retry.MaxDelay(2500*time.Millisecond), retry.Jitter(0.5)), 0, 6500 * time.Millisecond, true},
		{"linear 0", config(retry.Linear(0)), second, 3 * second, true},
		{"exponential, capped", config(retry.Exponential(second, 2), retry.MaxAttempts(1001), retry.MaxDelay(4*second)), 0, 3*second + 998*4*second, true},
		{"saturates", config(retry.Exponential(second, 2), retry.MaxAttempts(math.MaxInt32), retry.MaxDelay(0)), second, longest, true},
		{"linear saturates", config(retry.Linear(longest/4), retry.MaxAttempts(math.MaxInt32), retry.MaxDelay(0)), 0, longest, true},
		{"attempts saturate", config(), longest / 2, longest, true},
		{"MaxDuration is shorter", config(retry.MaxDuration(5 * second)), 2 * second, 5 * second, true},
		{"MaxDuration is longer", config(retry.MaxDuration(7 * second)), 2 * second, 6300 * time.Millisecond, true},
		{"no timeout", config(), -1, 0, false},
		{"no timeout but MaxDuration", config(retry.MaxDuration(second)), -1, second, true},
		{"unlimited", config(retry.Unlimited()), second, 0, false},
		{"unlimited but MaxDuration", config(retry.Unlimited(), retry.MaxDuration(second)), second, second, true},
		{"DelayFunc", config(retry.DelayFunc(func(int, error) (time.Duration, bool) { return 0, true }), retry.MaxDelay(0)), second, 0, false},
		{"DelayFunc with a cap", config(retry.DelayFunc(func(int, error) (time.Duration, bool) { return 0, true })), second, 63 * second, true},
	} {
		d, ok := tc.c.Bound(tc.perAttempt)
		if d != tc.want || ok != tc.ok {
			t.Errorf("%s: got %v %v, want %v %v", tc.name, d, ok, tc.want, tc.ok)
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 2_000 { // never below what the schedule adds up to
		c := drawn(random)
		var sum float64
		for n := 1; n < c.MaxAttempts; n++ {
			sum += float64(c.Schedule(n, 1))
		}
		if d, ok := c.Bound(0); !ok || d < longest && float64(d) < sum*(1-1e-9) {
			t.Fatalf("%+v: bound %v (%v), the schedule adds up to %v", c, d, ok, time.Duration(sum))
		}
	}
}
