package registry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// SN-02: what a health endpoint shows can be read back into the same structs.
func TestField_SN02_TheSnapshotsJSONReadsBackEqual(t *testing.T) {
	clk := clock.NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	reg, err := registry.New(registry.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	pipeline.Must(pipeline.New[int](reg, "x").
		Retry(retry.MaxAttempts(4), retry.MaxDuration(90*time.Second), retry.Budget(.1, 2)).
		CircuitBreaker(circuitbreaker.SlowCall(time.Second, .5)).
		RateLimit(ratelimit.Per(7, 10*time.Millisecond), ratelimit.MaxWait(time.Millisecond)).
		Timeout(1500*time.Millisecond).
		Bulkhead(bulkhead.MaxConcurrent(3), bulkhead.Queue(2), bulkhead.MaxWait(time.Minute)).
		Build())
	want := reg.Snapshot()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got registry.Snapshot
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
