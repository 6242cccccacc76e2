package testkit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
)

// judge is a test that keeps its failure to itself.
type judge struct {
	testing.TB
	failed bool
}

func (*judge) Helper()        {}
func (j *judge) Error(...any) { j.failed = true }

func TestSurvive_OnlyWhatLeaves(t *testing.T) {
	for name, leave := range testkit.Leaving {
		j := &judge{TB: t}
		if testkit.Survive(j, leave); j.failed {
			t.Errorf("%s: it is said to have returned", name)
		}
	}
	j := &judge{TB: t}
	if testkit.Survive(j, func() {}); !j.failed {
		t.Error("a function that returns has left")
	}
}

func TestCareless_IsDoneWithoutAnError(t *testing.T) {
	for name, leave := range testkit.Leaving {
		plain := testkit.Careless{Context: t.Context(), Ended: make(chan struct{})}
		leaving := testkit.Careless{Context: t.Context(), Ended: make(chan struct{}), Leave: leave}
		if plain.Err() != nil || leaving.Err() != nil {
			t.Errorf("%s: ended before the end", name)
		}
		close(plain.Ended)
		close(leaving.Ended)
		<-plain.Done()
		<-leaving.Done()
		if err := plain.Err(); err != nil {
			t.Errorf("%s: Err() = %v", name, err)
		}
		testkit.Survive(t, func() { _ = leaving.Err() })
	}
}

func TestLinked_CountsWhatIsRegistered(t *testing.T) {
	l := &testkit.Linked{Context: t.Context()}
	stop := context.AfterFunc(l, func() { t.Error("called") })
	child, cancel := context.WithCancel(l)
	if n := l.Registered.Load(); n != 2 {
		t.Errorf("%d registered, want 2", n)
	}
	if !stop() || stop() {
		t.Error("stop is true once")
	}
	if cancel(); l.Registered.Load() != 0 || !errors.Is(child.Err(), context.Canceled) {
		t.Errorf("%d are left", l.Registered.Load())
	}
}

func TestHookedClock_CallsItsHooksAroundWhatItDoes(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &testkit.HookedClock{Manual: clock.NewManual(start)}
	var got []int
	note := func(time.Duration) { got = append(got, c.Pending()) }
	c.AfterFunc(time.Second, func() {}).Stop()
	if len(got) != 0 || !c.Now().Equal(start) {
		t.Error("without hooks it is no plain clock")
	}
	c.OnNow, c.BeforeTimer, c.AfterTimer = func() { c.Advance(time.Second) }, note, note
	c.AfterFunc(time.Minute, func() {})
	if diff := cmp.Diff([]int{0, 1}, got); diff != "" {
		t.Errorf("pending before and after (-want +got)\n%s", diff)
	}
	if !c.Now().Equal(start.Add(time.Second)) {
		t.Error("read before the hook")
	}
	c.BeforeTimer = func(time.Duration) { panic("no timer") }
	testkit.Survive(t, func() { c.AfterFunc(1, func() {}) })
	if c.Pending() != 1 {
		t.Errorf("%d timers, want the first alone", c.Pending())
	}
}

func TestOutside_StandsOutOfTheBubble(t *testing.T) {
	run := testkit.Outside(t)
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ran := false
		run(func() { ran = time.Since(now) < time.Hour }) // a bubble's time is years away
		if !ran || !time.Now().Equal(began) {
			t.Errorf("outside %v, after %v", ran, time.Since(began))
		}
	})
}

type event struct {
	policy.Meta
	n int
}

func TestJournal_KeepsEventsAndTheirContexts(t *testing.T) {
	type key struct{}
	var j testkit.Journal
	var hear policy.Listener = j.Listen
	for n := range 3 {
		hear(context.WithValue(t.Context(), key{}, n), event{n: n})
	}
	want := []policy.Event{event{n: 0}, event{n: 1}, event{n: 2}}
	same := cmp.Comparer(func(a, b event) bool { return a == b })
	if diff := cmp.Diff(want, j.Events(), same); diff != "" || j.Len() != 3 {
		t.Errorf("%d events (-want +got)\n%s", j.Len(), diff)
	}
	for i, ctx := range j.Contexts() {
		if ctx.Value(key{}) != i {
			t.Errorf("event %d came with %v", i, ctx.Value(key{}))
		}
	}
	j.Events()[0] = nil // a copy
	if diff := cmp.Diff(want, j.Take(), same); diff != "" {
		t.Errorf("taken (-want +got)\n%s", diff)
	}
	if j.Len() != 0 || len(j.Take()) != 0 || len(j.Contexts()) != 0 {
		t.Errorf("%d events are left", j.Len())
	}
}
