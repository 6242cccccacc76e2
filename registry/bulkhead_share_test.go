package registry_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/registry"
)

const (
	atOnce  = time.Duration(0) // a call that does not wait
	forever = time.Hour        // one that waits until the slot is given back
)

// sharing begins the pipelines "p0", "p1", … whose bulkheads share the instance
// "b".
func sharing(r *registry.Registry, layers [][]bulkhead.Option) []*pipeline.Builder[int] {
	all := make([]*pipeline.Builder[int], len(layers))
	for i, l := range layers {
		all[i] = pipeline.New[int](r, "p"+strconv.Itoa(i)).Bulkhead(append(l, bulkhead.Name("b"))...)
	}
	return all
}

// one is a layer that gives the limit of "b", and more.
func one(more ...bulkhead.Option) []bulkhead.Option { return append(more, bulkhead.MaxConcurrent(1)) }

// waits says how long a call of each pipeline waits for the only slot of "b",
// which comes back after forever.
func waits(t *testing.T, r *registry.Registry, m *clock.Manual, all []*pipeline.Pipeline[int]) []time.Duration {
	t.Helper()
	slots, _ := r.Bulkhead("b")
	waited := make([]time.Duration, len(all))
	for i, p := range all {
		if !slots.TryAcquire() {
			t.Fatal("the slot is not there")
		}
		before := m.Now()
		back := m.AfterFunc(forever, slots.Release)
		_, err := p.Execute(t.Context(), succeed)
		waited[i] = m.Now().Sub(before)
		if back.Stop() {
			slots.Release()
		}
		if served := waited[i] == forever; served != (err == nil) || !served && !errors.Is(err, bulkhead.ErrFull) {
			t.Errorf("p%d: %v after %v", i, err, waited[i])
		}
	}
	return waited
}

// A wait belongs to the layer, the queue to the instance: what nobody says of the
// queue is no difference, and it is there as soon as one layer waits. The same
// pipelines built again are the same, and a reload comes to the same.
func TestBuild_B2_G1_LayersThatShareABulkheadWaitAsEachSays(t *testing.T) {
	minute, two := bulkhead.MaxWait(time.Minute), bulkhead.MaxWait(2*time.Minute)
	for name, tc := range map[string]struct {
		layers [][]bulkhead.Option
		want   []time.Duration
	}{
		"silent, then a wait":        {[][]bulkhead.Option{one(), one(minute)}, []time.Duration{atOnce, time.Minute}},
		"a wait, then silent":        {[][]bulkhead.Option{one(minute), one()}, []time.Duration{time.Minute, atOnce}},
		"silent, then names":         {[][]bulkhead.Option{one(), {minute}, {}, {two}}, []time.Duration{atOnce, time.Minute, atOnce, 2 * time.Minute}},
		"a wait without a bound":     {[][]bulkhead.Option{one(), {bulkhead.MaxWait(bulkhead.Unbounded)}}, []time.Duration{atOnce, forever}},
		"a queue, then a name":       {[][]bulkhead.Option{one(bulkhead.Queue(5)), {}}, []time.Duration{forever, forever}},
		"a queue, then its equal":    {[][]bulkhead.Option{one(bulkhead.Queue(5)), one(bulkhead.Queue(5), minute)}, []time.Duration{forever, time.Minute}},
		"a queue, then waits":        {[][]bulkhead.Option{one(bulkhead.Queue(5), minute), {}, {bulkhead.MaxWait(0)}}, []time.Duration{time.Minute, forever, atOnce}},
		"no queue, then a wait":      {[][]bulkhead.Option{one(bulkhead.Queue(0)), {minute}, {}}, []time.Duration{atOnce, atOnce, atOnce}},
		"no wait, then a wait":       {[][]bulkhead.Option{one(bulkhead.MaxWait(0)), {minute}, {}}, []time.Duration{atOnce, time.Minute, atOnce}},
		"no queue comes later":       {[][]bulkhead.Option{one(), one(bulkhead.Queue(0)), {minute}}, []time.Duration{atOnce, atOnce, atOnce}},
		"a queue comes with a wait":  {[][]bulkhead.Option{one(minute), one(bulkhead.Queue(-1)), {}}, []time.Duration{time.Minute, forever, forever}},
		"no wait and silent are one": {[][]bulkhead.Option{one(bulkhead.MaxWait(0)), one(), {}}, []time.Duration{atOnce, atOnce, atOnce}},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := newRegistry(t)
			all := make([]*pipeline.Pipeline[int], len(tc.layers))
			for i, b := range sharing(r, tc.layers) {
				all[i] = built(t, b)
			}
			if diff := cmp.Diff(tc.want, waits(t, r, m, all)); diff != "" {
				t.Errorf("built (-want +got)\n%s", diff)
			}
			explained := explainAll(r, len(all))
			for i, b := range sharing(r, tc.layers) {
				all[i] = built(t, b)
			}
			if err := r.Reload(parse(t, "{}")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, waits(t, r, m, all)); diff != "" {
				t.Errorf("built again and reloaded (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(explained, explainAll(r, len(all))); diff != "" {
				t.Errorf("explained (-before +after the reload)\n%s", diff)
			}
		})
	}
}

func explainAll(r *registry.Registry, n int) (all [][]registry.Setting) {
	for i := range n {
		all = append(all, r.Explain("p"+strconv.Itoa(i)))
	}
	return all
}

// A queue that is given and another one, or none, are two sets of settings still.
func TestBuild_G1_AQueueThatOneGivesIsADifference(t *testing.T) {
	minute := bulkhead.MaxWait(time.Minute)
	for name, layers := range map[string][][]bulkhead.Option{
		"other queues":        {one(bulkhead.Queue(5)), one(bulkhead.Queue(6))},
		"given, then silent":  {one(bulkhead.Queue(5)), one()},
		"silent, then given":  {one(), one(bulkhead.Queue(5))},
		"given, then a wait":  {one(bulkhead.Queue(5)), one(minute)},
		"a wait, then given":  {one(minute), one(bulkhead.Queue(5))},
		"none, then a wait":   {one(bulkhead.Queue(0)), one(minute)},
		"a wait, then none":   {one(minute), one(bulkhead.Queue(0))},
		"none once one waits": {one(), {minute}, one(bulkhead.Queue(0))},
		"none by its name":    {one(minute), {bulkhead.Queue(0)}},
	} {
		r, _ := newRegistry(t)
		all := sharing(r, layers)
		for _, b := range all[:len(all)-1] {
			built(t, b)
		}
		before := r.Snapshot()
		_, err := all[len(all)-1].Build()
		got := mistakes(err)
		if name == "none by its name" { // it says no limit, which it need not
			got = got[len(got)-1:]
		}
		if diff := cmp.Diff([]mistake{{"R4C-REG-010", "bulkhead", "b", "queue"}}, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
			t.Errorf("%s: a refused build changed something (-before +after)\n%s", name, diff)
		}
	}
}

// A build that is refused for another reason changes no shared instance.
func TestBuild_G1_ARefusedBuildOpensNoQueue(t *testing.T) {
	r, _ := newRegistry(t)
	built(t, sharing(r, [][]bulkhead.Option{one()})[0])
	if _, err := pipeline.New[int](r, "x").Bulkhead(bulkhead.Name("b"), bulkhead.MaxWait(time.Minute)).Timeout(-1).Build(); err == nil {
		t.Fatal("a negative timeout was built")
	}
	if got := r.Snapshot().Bulkheads[0].Config; got != (bulkhead.Config{MaxConcurrent: 1}) {
		t.Errorf("%+v", got)
	}
}

// G-9, S-2, G-8: what the layers have settled shows where settings are asked for.
func TestExplain_G9_WhatTheLayersOfABulkheadHaveSettled(t *testing.T) {
	value := func(all []registry.Setting, key string) string {
		for _, s := range all {
			if strings.HasSuffix(s.Path, "."+key) {
				return s.Value + " " + s.Origin
			}
		}
		return ""
	}
	r, _ := newRegistry(t)
	built(t, sharing(r, [][]bulkhead.Option{one()})[0])
	built(t, pipeline.New[int](r, "waits").Timeout(time.Second).Bulkhead(bulkhead.Name("b"), bulkhead.MaxWait(time.Minute)))
	built(t, pipeline.New[int](r, "c").Bulkhead(bulkhead.MaxConcurrent(1), bulkhead.Queue(5)))
	built(t, pipeline.New[int](r, "names").Timeout(time.Second).Bulkhead(bulkhead.Name("c")))
	for _, tc := range []struct{ id, queue, wait string }{
		{"b", "unlimited default", "0s default"},
		{"p0", "unlimited default", "0s default"},
		{"waits", "unlimited default", "1m0s code"},
		{"c", "5 code", "unlimited default"},
		{"names", "5 code", "unlimited default"},
	} {
		all := r.Explain(tc.id)
		if queue, wait := value(all, "queue"), value(all, "maxWait"); queue != tc.queue || wait != tc.wait {
			t.Errorf("%s: queue %s, maxWait %s; want %s, %s", tc.id, queue, wait, tc.queue, tc.wait)
		}
	}
	want := []bulkhead.Config{{MaxConcurrent: 1, Queue: -1}, {MaxConcurrent: 1, Queue: 5, MaxWait: -1}}
	var got []bulkhead.Config
	for _, b := range r.Snapshot().Bulkheads {
		got = append(got, b.Config)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got)\n%s", diff)
	}
	if found := r.Check(); len(found) != 1 || found[0].Code != "R4C-CHK-002" || found[0].ID != "waits" {
		t.Errorf("a wait of a minute in a timeout of a second: %v", found)
	}
}

// A reload may give what nobody gave, and take it back.
func TestReload_B2_G7_AQueueOfTheFileHoldsForWaitsInCode(t *testing.T) {
	r, m := newRegistry(t)
	var all []*pipeline.Pipeline[int]
	for _, b := range sharing(r, [][]bulkhead.Option{one(), {bulkhead.MaxWait(time.Minute)}, {}}) {
		all = append(all, built(t, b))
	}
	for _, step := range []struct {
		text string
		want []time.Duration
	}{
		{"instances: {b: {bulkhead: {queue: 0}}}", []time.Duration{atOnce, atOnce, atOnce}},
		{"instances: {b: {bulkhead: {queue: 2}}}", []time.Duration{forever, time.Minute, forever}},
		{"instances: {b: {bulkhead: {maxWait: 3m}}}", []time.Duration{3 * time.Minute, 3 * time.Minute, 3 * time.Minute}},
		{"{}", []time.Duration{atOnce, time.Minute, atOnce}},
	} {
		if err := r.Reload(parse(t, step.text)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, waits(t, r, m, all)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.text, diff)
		}
	}
}

// The queue is there for the layers that wait: without any it is gone.
func TestReload_B2_G7_TheOnlyLayerThatWaitsIsSwitchedOff(t *testing.T) {
	text := func(enabled bool) string {
		return "configs: {waits: {bulkhead: {enabled: " + strconv.FormatBool(enabled) + "}}}"
	}
	r, m := newRegistry(t, registry.WithConfig(parse(t, text(true))))
	builders := sharing(r, [][]bulkhead.Option{one(), {bulkhead.MaxWait(time.Minute)}})
	all := []*pipeline.Pipeline[int]{built(t, builders[0]), built(t, builders[1].Config("waits"))}
	for _, enabled := range []bool{true, false, true} {
		if err := r.Reload(parse(t, text(enabled))); err != nil {
			t.Fatal(err)
		}
		want := bulkhead.Config{MaxConcurrent: 1}
		if enabled {
			want.Queue = bulkhead.Unbounded
			if diff := cmp.Diff([]time.Duration{atOnce, time.Minute}, waits(t, r, m, all)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
		if got := r.Snapshot().Bulkheads[0].Config; got != want {
			t.Errorf("enabled %v: %+v", enabled, got)
		}
	}
}

// Pipelines that are built at once, and used as soon as each is there: none finds
// the queue closed that its layer, or the other's, has opened.
func TestBuild_B2_TheQueueIsOpenWhenBuildReturns(t *testing.T) {
	for range 40 {
		r, m := newRegistry(t)
		m.Passive()
		built(t, sharing(r, [][]bulkhead.Option{one()})[0])
		slots, _ := r.Bulkhead("b")
		if !slots.TryAcquire() {
			t.Fatal("no slot")
		}
		var wg sync.WaitGroup
		begin := make(chan struct{})
		futures := make([]*pipeline.Future[int], 8)
		for i := range futures {
			wg.Go(func() {
				<-begin
				p, err := pipeline.New[int](r, "w"+strconv.Itoa(i/2)).Bulkhead(bulkhead.Name("b"), bulkhead.MaxWait(time.Minute)).Build()
				if err != nil {
					t.Error(err)
					return
				}
				futures[i] = p.ExecuteAsync(t.Context(), succeed)
			})
		}
		close(begin)
		wg.Wait()
		if t.Failed() {
			return
		}
		slots.Release()
		for _, f := range futures {
			if _, err := f.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
