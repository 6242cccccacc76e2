package waitq_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/waitq"
)

func TestQueueKeepsOrder(t *testing.T) {
	var q waitq.Queue
	name := map[*waitq.Waiter]string{}
	push := func(n string) *waitq.Waiter {
		w := waitq.New(func() {})
		name[w] = n
		q.Push(w)
		return w
	}
	a, b, c, d := push("a"), push("b"), push("c"), push("d")
	names := func(ws []*waitq.Waiter) (names []string) {
		for _, w := range ws {
			names = append(names, name[w])
		}
		return names
	}
	steps := []struct {
		do   func() bool
		want []string
	}{
		{func() bool { return true }, []string{"a", "b", "c", "d"}},
		{func() bool { return q.Remove(b) }, []string{"a", "c", "d"}},
		{func() bool { return !q.Remove(b) }, []string{"a", "c", "d"}},
		{func() bool { return q.Remove(d) }, []string{"a", "c"}},
		{func() bool { return q.Remove(a) }, []string{"c"}},
		{func() bool { return q.Pop() == c }, nil},
		{func() bool { return q.Pop() == nil }, nil},
		{func() bool { q.Push(b); return q.Front() == b }, []string{"b"}},
	}
	for i, s := range steps {
		if !s.do() {
			t.Errorf("step %d answered wrong", i)
		}
		forward, back := waitq.Order(&q)
		if diff := cmp.Diff(s.want, names(forward)); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", i, diff)
		}
		slices.Reverse(back)
		if diff := cmp.Diff(s.want, names(back)); diff != "" {
			t.Errorf("step %d, from the back (-want +got)\n%s", i, diff)
		}
		if q.Len() != len(s.want) {
			t.Errorf("step %d: Len = %d, want %d", i, q.Len(), len(s.want))
		}
	}
}

func TestSettleWakesOnce(t *testing.T) {
	w, ready := waitq.NewChan()
	if !w.Grant() {
		t.Fatal("a fresh waiter was not granted")
	}
	w.Wake()
	<-ready
	if w.Grant() || w.Leave() || w.Refuse(errors.New("late")) {
		t.Error("a settled waiter was settled again")
	}
	if w.State() != waitq.Granted || w.Err() != nil {
		t.Errorf("state %v, err %v", w.State(), w.Err())
	}
}

func TestRefusalCarriesItsError(t *testing.T) {
	why := errors.New("why")
	woken := 0
	var w waitq.Waiter
	w.Init(func() { woken++ })
	if !w.Refuse(why) {
		t.Fatal("a fresh waiter was not refused")
	}
	w.Wake()
	if w.State() != waitq.Refused || !errors.Is(w.Err(), why) || woken != 1 {
		t.Errorf("state %v, err %v, woken %d", w.State(), w.Err(), woken)
	}
}

func TestGrantAgainstLeaveHasOneWinner(t *testing.T) {
	for range 10_000 {
		w := waitq.New(func() {})
		var granted, left bool
		var wg sync.WaitGroup
		wg.Go(func() { granted = w.Grant() })
		wg.Go(func() { left = w.Leave() })
		wg.Wait()
		if granted == left {
			t.Fatalf("granted %v, left %v", granted, left)
		}
	}
}
