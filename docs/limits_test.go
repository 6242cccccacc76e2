package docs_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
)

func Example_littlesLaw() {
	perSecond, mean, timeout := 50.0, 0.2, 2.0 // calls a second, and seconds
	fmt.Println("busy on average:", perSecond*mean)
	fmt.Println("busy if every call hangs until its timeout:", perSecond*timeout)

	slots, maxWait := 20.0, 0.1
	fmt.Println("calls a second that the slots serve:", slots/mean)
	fmt.Println("calls that can be served within maxWait:", slots/mean*maxWait)
	// Output:
	// busy on average: 10
	// busy if every call hangs until its timeout: 100
	// calls a second that the slots serve: 100
	// calls that can be served within maxWait: 10
}

func Example_bound() {
	reg, _ := manual()
	reports := pipeline.New[string](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2), retry.Jitter(0.25)).
		RateLimit(ratelimit.PerSecond(50), ratelimit.MaxWait(200*time.Millisecond)).
		Timeout(2 * time.Second)
	fmt.Println(pipeline.Must(reports.Build()).Bound()) // 3 × (200ms + 2s) + (100ms + 200ms) × 1.25

	bounded := pipeline.New[string](reg, "bounded").
		Retry(retry.MaxAttempts(3), retry.MaxDuration(3*time.Second)).
		Timeout(2 * time.Second)
	fmt.Println(pipeline.Must(bounded.Build()).Bound())
	// Output:
	// 6.975s true
	// 3s true
}

func Example_check() {
	reg, _ := manual()
	pipeline.Must(pipeline.New[string](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.MaxDuration(2*time.Second)).
		Timeout(2*time.Second).
		Bulkhead(bulkhead.MaxConcurrent(10), bulkhead.Queue(20), bulkhead.MaxWait(5*time.Second)).
		Build())
	for _, f := range reg.Check() {
		fmt.Println(f.Code, f.Text)
	}
	// Output:
	// R4C-CHK-002 bulkhead wait 5s can never be served inside timeout 2s, which the wait counts against: give a wait below the timeout, or a longer timeout
	// R4C-CHK-004 maxDuration 2s leaves no room for a second attempt after one that times out: timeout 2s + delay 100ms = 2.1s: give a shorter timeout, or a longer maxDuration
}

func Example_reserve() {
	reg, clk := manual()
	reports := pipeline.Must(pipeline.New[string](reg, "reports").
		Retry(retry.MaxAttempts(3), retry.Constant(0), retry.MaxDuration(500*time.Millisecond), retry.Reserve(50*time.Millisecond)).
		Timeout(300 * time.Millisecond).
		Build())

	err := reports.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println("attempt", retry.Attempt(ctx), "begins at", clk.Now().Sub(noon))
		return clk.Sleep(ctx, time.Minute) // hangs
	})
	fmt.Println("ended at", clk.Now().Sub(noon))
	fmt.Println(err)
	// Output:
	// attempt 1 begins at 0s
	// attempt 2 begins at 300ms
	// ended at 450ms
	// retry "reports": out of time after 2 attempts in 450ms: context deadline exceeded
}

// The chance that a breaker at ratio .5 opens though nothing is wrong but the usual failures: docs/limits.md has the
// figures. Each row is a number of samples and the usual share of failures.
func TestLimitsFalseOpenings(t *testing.T) {
	text := page(t, "limits.md")
	for _, minCalls := range []int{4, 10, 20, 50} {
		cells := []string{strconv.Itoa(minCalls)}
		for _, usual := range []float64{0.05, 0.1, 0.2} {
			cells = append(cells, percent(atLeast(minCalls, (minCalls+1)/2, usual)))
		}
		row := "| " + strings.Join(cells, " | ") + " |"
		if !strings.Contains(text, row+"\n") {
			t.Errorf("limits.md has no row\n%s", row)
		}
	}
}

// atLeast is the chance of k or more failures among n independent calls that fail with chance p.
func atLeast(n, k int, p float64) (sum float64) {
	for i := k; i <= n; i++ {
		sum += binomial(n, i) * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
	}
	return sum
}

func binomial(n, k int) float64 {
	v := 1.0
	for i := 1; i <= k; i++ {
		v *= float64(n-k+i) / float64(i)
	}
	return v
}

func percent(p float64) string {
	switch {
	case p < 1e-6:
		return "< 0.0001 %"
	case p < 1e-3:
		return fmt.Sprintf("%.4f %%", p*100)
	default:
		return fmt.Sprintf("%.1f %%", p*100)
	}
}

// The set at the end of docs/limits.md contradicts nothing, and stays below what its caller waits.
func TestLimitsSetIsConsistent(t *testing.T) {
	_, rest, _ := strings.Cut(page(t, "limits.md"), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	reg, _ := manual(registry.WithConfig(must(config.Parse("limits.md", []byte(text)))))
	reports, err := pipeline.Configured[string](reg, "reports").Build()
	if err != nil {
		t.Fatal(err)
	}
	if found := reg.Check(); len(found) > 0 {
		t.Errorf("Check found %v", found)
	}
	if d, ok := reports.Bound(); !ok || d >= 3*time.Second {
		t.Errorf("Bound() = %v, %v; want less than 3s", d, ok)
	}
}

func TestAtLeastOfAFairCoin(t *testing.T) {
	if got := atLeast(4, 2, 0.5); math.Abs(got-11.0/16) > 1e-12 {
		t.Errorf("2 or more heads of 4: %v, want 11/16", got)
	}
}
