package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

func TestField_SN02_ASnapshotSharesNothing(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances: {unused: {timeout: {value: 1s}}}`)))
	for _, id := range []string{"b", "a", "c"} {
		built(t, pipeline.New[int](r, id).Retry(retry.On(errBoom), retry.Budget(.1, 2)).CircuitBreaker(circuitbreaker.Ignore(errBoom)).
			RateLimit(ratelimit.PerSecond(9)).Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(3)))
	}
	text := func() string {
		b, err := json.Marshal(r.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := text()
	s := r.Snapshot()
	for i := range s.Pipelines {
		s.Pipelines[i].Order[0] = "changed"
		s.Retries[i].Config.On[0] = nil
		s.Retries[i].Config.Budget.Ratio = 9
		s.CircuitBreakers[i].Config.Ignore[0] = nil
		s.Pipelines[i].ID, s.Timeouts[i].Instance, s.RateLimiters[i].ID, s.Bulkheads[i].ID = "x", "x", "x", "x"
	}
	s.Findings[0].Text = "changed"
	for range 20 {
		if diff := cmp.Diff(want, text()); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	var ids []string
	for _, p := range r.Snapshot().Pipelines {
		ids = append(ids, p.ID)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ids); diff != "" {
		t.Errorf("not sorted (-want +got)\n%s", diff)
	}
	if c := r.Snapshot().Retries[0].Config; c.On[0] != errBoom || c.Budget.Ratio != .1 { //nolint:errorlint // that very value
		t.Errorf("%+v", c)
	}
}

func TestField_SN02_AnEmptyRegistryHasEmptyLists(t *testing.T) {
	r, _ := newRegistry(t)
	got, err := json.Marshal(r.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":1,"at":"2026-11-29T12:00:00Z","closed":false,"pipelines":[],"timeouts":[],"retries":[],"rateLimiters":[],` +
		`"bulkheads":[],"circuitBreakers":[],"wheel":{"pending":0,"ticking":false},"findings":[]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSnapshot_S3_KeysAndDurations(t *testing.T) {
	r, m := newRegistry(t)
	p := built(t, pipeline.New[int](r, "reports").Retry(retry.MaxAttempts(3), retry.Exponential(100*time.Millisecond, 2)).
		RateLimit(ratelimit.PerSecond(50)).Timeout(2*time.Second).Bulkhead(bulkhead.MaxConcurrent(10)))
	built(t, pipeline.New[int](r, "plain"))
	if _, err := p.Execute(t.Context(), func(ctx context.Context) (int, error) { return 0, m.Sleep(ctx, time.Millisecond) }); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(r.Snapshot(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"bound": "6.3s"`, `"value": "2s"`, `"delay": "100ms"`, `"maxWait": "0s"`, `"period": "1s"`, `"queue": 0`,
		`"started": 1`, `"succeeded": 1`, `"inFlight": 0`, `"order": []`,
	} {
		if !strings.Contains(string(got), part) {
			t.Errorf("%s is not in\n%s", part, got)
		}
	}
}

// Milliseconds are for bench/scale to measure. What makes them few does not depend
// on the machine: no list is sorted, checked or put together anew, which shows in
// what it allocates, an order for each pipeline and the lists.
func TestSnapshot_S1_TenThousandInstances(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const instances, lists = 10_000, 100
	r, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range instances {
		built(t, pipeline.New[int](r, "instance-"+strconv.Itoa(i)).Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(3)))
	}
	allocs := testing.AllocsPerRun(5, func() { // not counting the first one, which sorts
		if s := r.Snapshot(); len(s.Bulkheads) != instances {
			t.Error(len(s.Bulkheads))
		}
	})
	if allocs > instances+lists {
		t.Errorf("%v allocations for %d pipelines", allocs, instances)
	}
}

func TestSnapshot_S2_NumbersHoldTogether(t *testing.T) {
	r, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	p := built(t, pipeline.New[int](r, "p").Timeout(time.Hour).RateLimit(ratelimit.Per(1000, time.Millisecond)).
		Bulkhead(bulkhead.MaxConcurrent(2), bulkhead.Queue(1)))
	slots, _ := r.Bulkhead("p")
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				fn := succeed
				if i%3 == 0 {
					fn = fail
				}
				_, _ = p.Execute(context.Background(), fn)
			}
		})
	}
	var last registry.Snapshot
	for i := range 2000 {
		if i%100 == 0 {
			_ = slots.SetLimit(1 + i/100%3)
		}
		s := r.Snapshot()
		b, c, was := s.Bulkheads[0], s.Pipelines[0].Calls, registry.CallCounts{}
		if i > 0 {
			was = last.Pipelines[0].Calls
		}
		ended := c.Succeeded + c.Failed + c.TimedOut + c.Cancelled + c.Rejected + c.Panicked
		if b.InUse < 0 || b.Available != max(0, b.Limit-b.InUse) || b.Waiting < 0 || b.Waiting > 1 || ended > c.Started || c.InFlight < 0 ||
			c.Started < was.Started || c.Succeeded < was.Succeeded || c.Failed < was.Failed || c.Rejected < was.Rejected {
			t.Fatalf("%+v\n%+v\nbefore: %+v", b, c, was)
		}
		last = s
	}
	stop.Store(true)
	wg.Wait()
	c := r.Snapshot().Pipelines[0].Calls
	if c.Started != c.Succeeded+c.Failed+c.Rejected || c.InFlight != 0 {
		t.Errorf("idle: %+v", c)
	}
}

func TestSnapshot_LogValue(t *testing.T) {
	r, _ := newRegistry(t, registry.WithConfig(parse(t, `instances: {unused: {timeout: {value: 1s}}}`)))
	built(t, pipeline.New[int](r, "p").Retry().CircuitBreaker().RateLimit(ratelimit.PerSecond(9)).Timeout(time.Second).Bulkhead(bulkhead.MaxConcurrent(3)))
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	s := r.Snapshot()
	log.Info("state", "registry", s, "wheel", s.Wheel, "finding", s.Findings[0])
	for _, part := range []string{
		"registry.pipelines.p.calls.started=0", "registry.pipelines.p.fallback.applied=0", "registry.pipelines.p.abandoned.running=0",
		"registry.bulkheads.p.limit=3", "registry.timeouts.p.", "registry.retries.p.", "registry.rateLimiters.p.", "registry.circuitBreakers.p.state=closed",
		"wheel.ticking=false", "finding.code=R4C-CHK-001",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%s is not in %s", part, b.String())
		}
	}
}
