package retry_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

// grants is how many retries a budget allows at one instant.
func grants(b *retry.TestBudget, now time.Duration) (n int) {
	for n < 10_000 && b.Take(1+int64(now)) {
		n++
	}
	return n
}

func starts(b *retry.TestBudget, n int, now time.Duration) {
	for range n {
		b.Started(1 + int64(now))
	}
}

func TestBudgetFloorIsABucket(t *testing.T) {
	for _, tc := range []struct {
		perSecond           float64
		atOnce, later, full int // at once; one second after; after a minute
	}{
		{5, 5, 5, 5},
		{1, 1, 1, 1},
		{3, 3, 3, 3},
		{0.5, 1, 0, 1}, // holds one token, which takes two seconds to come back
		{0, 0, 0, 0},
	} {
		b := retry.NewTestBudget(0, tc.perSecond)
		got := [3]int{grants(b, 0), grants(b, time.Second), grants(b, time.Minute)}
		if want := [3]int{tc.atOnce, tc.later, tc.full}; got != want {
			t.Errorf("%v/s: got %v, want %v", tc.perSecond, got, want)
		}
	}
	b := retry.NewTestBudget(0, 5)
	if got := grants(b, 0); got != 5 {
		t.Errorf("at one instant: %d, want exactly 5", got)
	}
	for i := 1; i <= 100; i++ { // one token each 200 ms, however it adds up
		if got := grants(b, time.Duration(i)*200*time.Millisecond); got != 1 {
			t.Fatalf("after %d × 200ms: %d, want 1", i, got)
		}
	}
	half := retry.NewTestBudget(0, 0.5)
	grants(half, 0)
	if a, b := grants(half, 1999*time.Millisecond), grants(half, 2*time.Second); a != 0 || b != 1 {
		t.Errorf("0.5/s: %d before two seconds and %d after, want 0 and 1", a, b)
	}
}

func TestBudgetRatioOverTenSeconds(t *testing.T) {
	b := retry.NewTestBudget(0.2, 0)
	starts(b, 100, 0)
	if got := grants(b, 0); got != 20 {
		t.Errorf("100 calls at ratio 0.2: %d retries, want 20", got)
	}
	if got := grants(b, 9999*time.Millisecond); got != 0 {
		t.Errorf("still within the window: %d more, want 0", got)
	}
	starts(b, 50, 10*time.Second)
	if got := grants(b, 10*time.Second); got != 10 {
		t.Errorf("ten seconds later only the 50 new calls count: %d, want 10", got)
	}
	late := retry.NewTestBudget(0.2, 0)
	starts(late, 100, 0)
	if got := grants(late, 10*time.Second); got != 0 {
		t.Errorf("calls ten seconds ago count no more: %d, want 0", got)
	}
	odd := retry.NewTestBudget(0.29, 0)
	starts(odd, 100, 0)
	if got := grants(odd, 0); got != 29 {
		t.Errorf("100 calls at ratio 0.29: %d, want 29 whatever float64 makes of it", got)
	}
	sum := retry.NewTestBudget(0.1, 2)
	starts(sum, 30, 0)
	if got := grants(sum, 0); got != 5 {
		t.Errorf("30 calls at ratio 0.1 plus a floor of 2: %d, want 5", got)
	}
}

// moment is when something happened, for a model that keeps every one.
type moments []int64

func (m moments) since(cutoff int64) (n int) {
	for i := len(m) - 1; i >= 0 && m[i] > cutoff; i-- {
		n++
	}
	return n
}

func TestBudgetNeverExceedsItsRatio(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 14))
	for range 15 {
		ratio := random.Float64() * 1.5
		b := retry.NewTestBudget(ratio, 0)
		var calls, retries moments
		now := int64(1)
		useful := 0
		for range 2_000 {
			switch random.IntN(4) {
			case 0:
				now += random.Int64N(int64(50 * time.Millisecond))
			case 1:
				if random.IntN(100) == 0 {
					now += random.Int64N(int64(12 * time.Second))
				}
			}
			b.Started(now)
			calls = append(calls, now)
			for random.IntN(2) == 0 {
				if !b.Take(now) {
					break
				}
				retries = append(retries, now)
				useful++
				cutoff := now - int64(10*time.Second)
				if got, limit := float64(retries.since(cutoff)), ratio*float64(calls.since(cutoff)); got > limit*(1+1e-9) {
					t.Fatalf("ratio %v: %v retries in ten seconds, %v are allowed", ratio, got, limit)
				}
			}
		}
		if ratio > 0.1 && useful == 0 {
			t.Errorf("ratio %v: no retry at all", ratio)
		}
	}
}

func TestBudgetIsExactUnderARush(t *testing.T) {
	b := retry.NewTestBudget(0.5, 10)
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				b.Started(1)
			}
			for range 100 {
				if b.Take(1) {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for b.Take(1) { // whoever asked early asked among fewer calls
		granted.Add(1)
	}
	if got := granted.Load(); got != 510 {
		t.Errorf("1000 calls at ratio 0.5 plus 10: %d retries, want 510", got)
	}
}

func TestBudgetStandsStillWhenTheClockGoesBack(t *testing.T) {
	b := retry.NewTestBudget(0, 5)
	if got := grants(b, time.Minute); got != 5 {
		t.Fatalf("got %d, want 5", got)
	}
	for range 10 {
		if got := grants(b, 0); got != 0 {
			t.Errorf("a clock that goes back has minted %d tokens", got)
		}
		if got := grants(b, time.Minute); got != 0 {
			t.Errorf("and forth: %d tokens", got)
		}
	}
	ratio := retry.NewTestBudget(1, 0)
	starts(ratio, 3, time.Minute)
	starts(ratio, 2, time.Second)
	if got := grants(ratio, time.Minute); got > 5 {
		t.Errorf("5 calls, %d retries", got)
	}
}

func TestBudgetEmptyGivesTheLastErrorWithoutASleep(t *testing.T) {
	clk := clock.NewManual(start)
	p, _, j := heard(t, clk, retry.Budget(0, 2), retry.MaxAttempts(10), retry.Constant(0))
	f := &script{clk: clk, ends: []error{errBoom}}
	err := p.Do(t.Context(), f.call)
	wantIs(t, err, retry.ErrBudget, errBoom)
	if e := asError(t, err); e.Attempts != 3 || len(f.at) != 3 {
		t.Errorf("%d attempts, %d calls, want 3: the first and two from the floor", e.Attempts, len(f.at))
	}
	f = &script{clk: clk, ends: []error{errBoom}}
	wantIs(t, p.Do(t.Context(), f.call), retry.ErrBudget, errBoom)
	if len(f.at) != 1 || clk.Now() != start {
		t.Errorf("%d calls, %v slept, want one call and no sleep", len(f.at), clk.Now().Sub(start))
	}
	s := p.Snapshot()
	if s.Retries != 2 || s.BudgetDenied != 2 || s.Exhausted != 0 {
		t.Errorf("retries %d, denied %d, exhausted %d, want 2, 2, 0", s.Retries, s.BudgetDenied, s.Exhausted)
	}
	events := j.Take()
	if g, ok := events[len(events)-1].(retry.GaveUp); !ok || !errors.Is(g.Reason, retry.ErrBudget) || g.Attempts != 1 {
		t.Errorf("last event %#v, want GaveUp for the budget", events[len(events)-1])
	}
}

func TestBudgetCountsCallsAndIsAskedBeforeTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := on(t, clock.System(), retry.Budget(0.5, 0), retry.MaxAttempts(2), retry.Constant(time.Second))
		ok := func(context.Context) error { return nil }
		for range 3 {
			if err := p.Do(t.Context(), ok); err != nil {
				t.Fatal(err)
			}
		}
		// With this call and the next: five calls. Two retries sleep at once, the third caller is denied at once.
		var denied atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := p.Do(t.Context(), func(context.Context) error { return errBoom }); errors.Is(err, retry.ErrBudget) {
					denied.Add(1)
				}
			})
			synctest.Wait()
		}
		if got := denied.Load(); got != 0 {
			t.Errorf("calls 4, 5 and 6 pay for retries 1 (of 2), 2 (of 2.5) and 3 (of 3): %d denied", got)
		}
		if err := p.Do(t.Context(), func(context.Context) error { return errBoom }); !errors.Is(err, retry.ErrBudget) {
			t.Errorf("7 calls pay for 3 retries, which are asleep: got %v, want ErrBudget", err)
		}
		wg.Wait()
	})
}

func TestBudgetSpendsNothingOnARetryThatCannotBe(t *testing.T) {
	clk := clock.NewManual(start)
	p := on(t, clk, retry.Budget(0, 1), retry.Constant(time.Hour), retry.MaxDelay(0), retry.MaxDuration(time.Minute))
	err := p.Do(t.Context(), func(context.Context) error { return errBoom })
	wantIs(t, err, retry.ErrOutOfTime)
	if err := p.Reconfigure(config(retry.Budget(0, 1), retry.MaxAttempts(2), retry.Constant(0))); err != nil {
		t.Fatal(err)
	}
	err = p.Do(t.Context(), func(context.Context) error { return errBoom })
	wantIs(t, err, retry.ErrExhausted)
	err = p.Do(t.Context(), func(context.Context) error { return errBoom })
	wantIs(t, err, retry.ErrBudget) // what was spent before the change stays spent
}
