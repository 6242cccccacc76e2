package scope_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	bclock "github.com/benbjohnson/clock"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// A Mock starts a goroutine for each of its timers, one after the other. All that
// is due at one instant fails all the same before anything follows from it.
func TestMoment_A9_AllFuturesFailBeforeAStageIsCancelled(t *testing.T) {
	for name, views := range map[string]bool{"one stage": false, "views": true} {
		t.Run(name, func(t *testing.T) {
			mock := bclock.NewMock()
			reg, err := registry.New(registry.WithClock(clock.From(mock)))
			if err != nil {
				t.Fatal(err)
			}
			const n = 5
			var futures [n]*pipeline.Future[int]
			pending := make(chan int, n)
			cancelled := func() {
				still := 0
				for _, f := range futures {
					if _, done, _ := f.Poll(); !done {
						still++
					}
				}
				pending <- still
			}
			work, cancels := pipeline.NewPromise[int](), 1
			stage := func(context.Context) *pipeline.Future[int] { return work.Future() }
			if views {
				cancels = n
				stage = func(context.Context) *pipeline.Future[int] {
					v := work.Future().View()
					v.OnComplete(func(int, error) { cancelled() })
					return v
				}
				work.OnCancel(func() { t.Error("the work was cancelled") })
			} else {
				work.OnCancel(cancelled)
			}
			for i := range futures {
				p := pipeline.Must(pipeline.New[int](reg, string(rune('a'+i))).Timeout(2 * time.Second).Build())
				futures[i] = p.ExecuteFuture(t.Context(), stage)
			}
			mock.Add(2 * time.Second)
			for range cancels {
				if still := <-pending; still != 0 {
					t.Errorf("a stage was cancelled while %d of %d futures were pending", still, n)
				}
			}
		})
	}
}

// parallel is a clock that calls all timers at once, each on a goroutine of its
// own, and AfterFunc(0) immediately. So everything that one can do comes while the
// others are at it.
type parallel struct {
	clock.Clock
	mu     sync.Mutex
	now    time.Time
	back   time.Duration // Now was set back by that, which timers do not know
	timers map[*parallelTimer]struct{}
	calls  sync.WaitGroup
}

type parallelTimer struct {
	clk *parallel
	at  time.Time
	f   func()
}

func newParallel() *parallel {
	return &parallel{now: start, timers: map[*parallelTimer]struct{}{}}
}

func (p *parallel) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.Add(-p.back)
}

func (p *parallel) AfterFunc(d time.Duration, f func()) clock.Timer {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &parallelTimer{p, p.now.Add(d), f}
	if d <= 0 {
		p.calls.Go(f)
	} else {
		p.timers[t] = struct{}{}
	}
	return t
}

func (t *parallelTimer) Stop() bool {
	t.clk.mu.Lock()
	defer t.clk.mu.Unlock()
	_, pending := t.clk.timers[t]
	delete(t.clk.timers, t)
	return pending
}

// move starts all that is due in d at once.
func (p *parallel) move(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
	for t := range p.timers {
		if !t.at.After(p.now) {
			delete(p.timers, t)
			p.calls.Go(t.f)
		}
	}
}

func (p *parallel) pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.timers)
}

func checkForgotten(t *testing.T, clk *parallel, s *scope.Scope) {
	t.Helper()
	if n := s.Moments(); n != 0 || s.Pending() != 0 || clk.pending() != 0 {
		t.Errorf("left: %d moments, %d deadlines, %d timers", n, s.Pending(), clk.pending())
	}
	s.Each(func(*callctx.Context, *atomic.Pointer[callctx.Context]) { t.Error("a context is left") })
}

// Some finish before, some while others expire, and some afterwards.
func TestMoment_A9_FinishesAgainstExpiries(t *testing.T) {
	const n, rounds = 24, 1000
	clk := newParallel()
	s := scope.New(clk, nil)
	plan := s.NewPlan(limit, errLimit, false)
	ends := map[callctx.Verdict]int{}
	for round := range rounds {
		var waiting, followed, early atomic.Int64 // of those who wait for their deadline
		var waiters, racers []*callctx.Context
		for i := range n {
			c := callctx.New(t.Context(), plan)
			if i%4 < 2 {
				o := &ender{ended: func() { waiting.Add(-1) }, after: func() {
					followed.Add(1)
					if waiting.Load() != 0 {
						early.Add(1)
					}
				}}
				o.Info.Owner = o
				c.Own(&o.Info)
			}
			if i%2 == 0 {
				s.Arm(c, nil)
			} else {
				s.Reserve(c, nil).Begin(c, s.Now(), scope.After(s.Now(), limit))
			}
			switch i % 4 {
			case 2:
				racers = append(racers, c)
			case 3:
				ends[c.Finish()]++
			default:
				waiters = append(waiters, c)
			}
		}
		waiting.Store(int64(len(waiters)))
		verdicts := make([]callctx.Verdict, len(racers))
		for i, c := range racers {
			clk.calls.Go(func() { verdicts[i] = c.Finish() })
		}
		for range round % 4 { // else few of them come before
			runtime.Gosched()
		}
		clk.move(limit)
		clk.calls.Wait()
		for _, v := range verdicts {
			ends[v]++
		}
		for _, c := range waiters {
			ends[c.Finish()]++
		}
		if waiting.Load() != 0 || followed.Load() != int64(len(waiters)) || early.Load() != 0 {
			t.Fatalf("%d of %d are waiting, %d followed, %d of them too early", waiting.Load(), len(waiters), followed.Load(), early.Load())
		}
		checkForgotten(t, clk, s)
	}
	t.Log(ends)
	if ends[callctx.Expired]+ends[callctx.InTime] != n*rounds || ends[callctx.Expired] < n/2*rounds || ends[callctx.InTime] < n/4*rounds {
		t.Errorf("ended as %v", ends)
	}
}

// Whoever is told of an end may not come back. The others expire all the same, and
// what they have left to do is done.
func TestMoment_X3_AStuckOneHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which patience takes no time
		const n = 5
		clk := newParallel()
		s := scope.New(clk, nil)
		gate := make(chan struct{})
		var stuck atomic.Bool
		ended, followed := make(chan bool, n), make(chan bool, n)
		plan := s.NewPlan(limit, errLimit, false)
		all := make([]*callctx.Context, n)
		for i := range all {
			c := callctx.New(t.Context(), plan)
			o := &ender{ended: func() {
				if !stuck.Swap(true) {
					<-gate
				}
				ended <- true
			}, after: func() { followed <- true }}
			o.Info.Owner = o
			c.Own(&o.Info)
			s.Arm(c, nil)
			all[i] = c
		}
		clk.move(limit)
		for range n - 1 {
			<-ended
		}
		for range n - 1 {
			<-followed
		}
		select {
		case <-followed:
			t.Error("what follows from the stuck one was done before it has ended")
		default:
		}
		close(gate)
		<-followed
		clk.calls.Wait()
		for _, c := range all {
			if c.Finish() != callctx.Expired {
				t.Errorf("Err %v", c.Err())
			}
		}
		checkForgotten(t, clk, s)
	})
}

// One that ends the goroutine leaves the rest to the other timers.
func TestMoment_X3_GoexitLosesNothing(t *testing.T) {
	const n = 5
	clk := newParallel()
	s := scope.New(clk, nil)
	var ended, followed atomic.Int64
	plan := s.NewPlan(limit, errLimit, false)
	all := make([]*callctx.Context, n)
	for i := range all {
		c := callctx.New(t.Context(), plan)
		o := &ender{ended: func() {
			if ended.Add(1) == 1 {
				runtime.Goexit()
			}
		}, after: func() { followed.Add(1) }}
		o.Info.Owner = o
		c.Own(&o.Info)
		s.Arm(c, nil)
		all[i] = c
	}
	clk.move(limit)
	clk.calls.Wait()
	if ended.Load() != n || followed.Load() != n-1 { // the first one has not said what follows
		t.Errorf("%d ended, %d followed", ended.Load(), followed.Load())
	}
	for _, c := range all {
		if c.Finish() != callctx.Expired {
			t.Errorf("Err %v", c.Err())
		}
	}
	checkForgotten(t, clk, s)
}

// A deadline is never early. Where the clock was set back, each timer speaks for its
// own context alone.
func TestMoment_T5_NobodyExpiresBeforeTheClockSaysSo(t *testing.T) {
	clk := newParallel()
	s := scope.New(clk, nil)
	plan := s.NewPlan(limit, errLimit, false)
	first, second := callctx.New(t.Context(), plan), callctx.New(t.Context(), plan)
	due := scope.After(s.Now(), limit)
	s.ArmUntil(first, nil, due)
	clk.back = time.Second
	s.ArmUntil(second, nil, due)
	if n := s.Moments(); n != 1 {
		t.Errorf("%d moments", n)
	}
	clk.move(limit)
	clk.calls.Wait()
	if first.Err() == nil || second.Err() != nil {
		t.Errorf("at its timer the first is %v, the second %v", first.Err(), second.Err())
	}
	clk.move(time.Second)
	clk.calls.Wait()
	for _, c := range []*callctx.Context{first, second} {
		if c.Finish() != callctx.Expired {
			t.Errorf("Err %v", c.Err())
		}
	}
	checkForgotten(t, clk, s)
}

// A timer whose clock does not say what time it is still comes for its own context.
func TestMoment_X3_AClockThatPanicsLosesNoDeadline(t *testing.T) {
	for _, leave := range testkit.Leaving {
		const n = 3
		clk := &testkit.HookedClock{Manual: clock.NewManual(start).Passive()}
		s := scope.New(clk, nil)
		plan := s.NewPlan(limit, errLimit, false)
		all := make([]*callctx.Context, n)
		for i := range all {
			all[i] = callctx.New(t.Context(), plan)
			s.Arm(all[i], nil)
		}
		clk.OnNow = func() {
			clk.OnNow = nil
			leave()
		}
		testkit.Survive(t, func() { clk.Advance(limit) })
		if all[0].Err() == nil {
			t.Error("the one whose timer it was has not expired")
		}
		clk.Advance(0)
		for _, c := range all {
			if c.Finish() != callctx.Expired {
				t.Errorf("Err %v", c.Err())
			}
		}
		if s.Moments() != 0 || s.Pending() != 0 || clk.Pending() != 0 {
			t.Errorf("left: %d moments, %d deadlines, %d timers", s.Moments(), s.Pending(), clk.Pending())
		}
	}
}
