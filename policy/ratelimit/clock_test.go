package ratelimit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
)

// L-6: the time source steps back by eight hours, and later forward again.
func TestField_RL03_TimeSteppedBackAndForward(t *testing.T) {
	const T = 100 * time.Millisecond
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(10), ratelimit.Burst(1))
	inRange := func() {
		t.Helper()
		if got := p.Snapshot().Available; got < 0 || got > 1 {
			t.Errorf("%d available", got)
		}
	}
	admittedIn := func(d time.Duration) (n int) {
		for range d / (10 * time.Millisecond) {
			clk.Advance(10 * time.Millisecond)
			n += drain(p)
			inRange()
		}
		return n
	}
	if n := drain(p); n != 1 {
		t.Fatal(n)
	}
	clk.step(-8 * time.Hour)
	inRange()
	if p.TryAcquire() {
		t.Error("the step back minted a permit")
	}
	if got := nextWait(t, p); got > T {
		t.Errorf("after the step back the next waits %s", got)
	}
	if n := admittedIn(time.Second); n < 9 || n > 11 {
		t.Errorf("%d in the second after the step back", n)
	}
	clk.step(8 * time.Hour)
	inRange()
	if n := drain(p); n > 1 {
		t.Errorf("the step forward minted %d", n)
	}
	if n := admittedIn(time.Second); n < 9 || n > 11 {
		t.Errorf("%d in the second after the step forward", n)
	}
	// The clock is back where it would have been without the steps, and so is
	// the count of all: burst + rate × time.
	if got := p.Snapshot().Admitted; got > 21 {
		t.Errorf("%d admitted in 2 s", got)
	}
	if p.Shift() != 0 || p.Sealed() {
		t.Errorf("shift %s, sealed %v", p.Shift(), p.Sealed())
	}
	clk.step(8 * time.Hour)
	if n := drain(p); n != 1 {
		t.Errorf("%d after another eight hours, want the burst", n)
	}
}

// RL-03 with waits, on the same source: a wait that begins after the step back
// lasts one interval.
func TestField_RL03_WaitsAfterAStepBack(t *testing.T) {
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(10), ratelimit.Burst(1), ratelimit.MaxWait(time.Minute))
	drain(p)
	w1 := enqueue(t, p, clk, time.Minute)
	clk.step(-8 * time.Hour)
	w2 := enqueue(t, p, clk, time.Minute)
	clk.Advance(100 * time.Millisecond)
	clk.Advance(100 * time.Millisecond)
	select {
	case <-w2.woken:
		<-w1.woken
	default:
		t.Error("not served after two intervals")
	}
}

// RL-08, the unit case: the last permit lies a little after now.
func TestField_RL08_LastPermitAfterNow(t *testing.T) {
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(1_000_000), ratelimit.Burst(1))
	drain(p)
	clk.step(-150)
	if got := nextWait(t, p); got != 1150 {
		t.Errorf("the next waits %s, want 1.15µs", got)
	}
	if p.TryAcquire() {
		t.Error("admitted")
	}
}

// L-6: time that differs by decades from the limiter's, as in a synctest bubble
// that the limiter is older than, hangs nothing, and keeps what was in store.
func TestTimeFromAnotherAge(t *testing.T) {
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(10), ratelimit.Burst(5))
	for _, years := range []time.Duration{-26, 26, -200, 200, -26, -26} {
		clk.step(years * 365 * 24 * time.Hour)
		for range 3 {
			n := drain(p)
			if n > 5 {
				t.Errorf("%d at once", n)
			}
			if got := nextWait(t, p); got <= 0 || got > 100*time.Millisecond {
				t.Errorf("the next waits %s", got)
			}
			clk.Advance(time.Second)
		}
	}

	clk = newStepping()
	p = newOn(t, clk, ratelimit.PerSecond(10), ratelimit.Burst(5))
	clk.step(-26 * 365 * 24 * time.Hour)
	if n := drain(p); n != 5 {
		t.Errorf("%d of 5 were left", n)
	}
}

// L-6: whatever the source does, within the second for which a clock that went
// back is waited for: admitted ≤ burst + rate × (max now - first now).
func TestClockGoingBackMintsNothing(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		clk := newStepping()
		limit, period := 1+r.IntN(1000), time.Duration(1+r.Int64N(int64(time.Second)))
		burst := 1 + r.IntN(20)
		p := newOn(t, clk, ratelimit.Per(limit, period), ratelimit.Burst(burst))
		var now, latest time.Duration
		for range 500 {
			d := time.Duration(r.Int64N(int64(period)/int64(limit)*4+2)) - time.Duration(int64(period)/int64(limit)*2)
			if latest-(now+d) > time.Second {
				continue
			}
			clk.step(d)
			now += d
			latest = max(latest, now)
			drain(p)
			assertBound(t, p.Snapshot().Admitted, limit, period, burst, latest)
		}
	}
}

// L-6, beyond that: each step back by more lets the time after it count anew,
// and nothing else does.
func TestClockGoingFarBackMintsNothing(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		clk := newStepping()
		const limit, period, burst = 10, time.Second, 3
		p := newOn(t, clk, ratelimit.Per(limit, period), ratelimit.Burst(burst))
		var forward time.Duration
		for range 300 {
			d := time.Duration(r.Int64N(int64(200 * time.Millisecond)))
			if r.IntN(20) == 0 {
				d = -time.Duration(r.Int64N(int64(20 * time.Hour)))
			}
			clk.step(d)
			forward += max(0, d)
			drain(p)
			assertBound(t, p.Snapshot().Admitted, limit, period, burst, forward)
			if got := nextWait(t, p); got <= 0 || got > time.Second+100*time.Millisecond {
				t.Fatalf("seed %d: the next waits %s", seed, got)
			}
		}
	}
}

// assertBound fails unless admitted ≤ burst + limit × elapsed / period, without
// a rounding.
func assertBound(tb testing.TB, admitted uint64, limit int, period time.Duration, burst int, elapsed time.Duration) {
	tb.Helper()
	if admitted <= uint64(burst) {
		return
	}
	if ratelimit.MulDiv(int64(admitted)-int64(burst), int64(period), int64(limit)) > int64(elapsed) {
		tb.Fatalf("%d admitted in %s at %d per %s, burst %d", admitted, elapsed, limit, period, burst)
	}
}

// S-2: a snapshot while the clock is back is within its range and changes
// nothing.
func TestSnapshotWhileTheClockIsBack(t *testing.T) {
	clk := newStepping()
	p := newOn(t, clk, ratelimit.PerSecond(10), ratelimit.Burst(5))
	drain(p)
	for _, d := range []time.Duration{-time.Hour, -1000 * 24 * time.Hour, 2000 * 24 * time.Hour, -999 * 24 * time.Hour} {
		clk.step(d)
		if got := p.Snapshot().Available; got < 0 || got > 5 {
			t.Errorf("%d available", got)
		}
	}
	if p.Shift() != 0 {
		t.Error("a snapshot shifted the clock")
	}
}

// A clock of another maker whose timers are early, or come twice, grants nobody
// early.
func TestEarlyTimerGrantsNobody(t *testing.T) {
	clk := &early{Manual: clock.NewManual(start)}
	p := newOn(t, clk, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Hour))
	drain(p)
	for i := 1; i <= 5; i++ {
		if err := p.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := clk.Now().Sub(start), time.Duration(i)*time.Second; got < want {
			t.Errorf("call %d at %s, want %s", i, got, want)
		}
	}
}

type early struct{ *clock.Manual }

func (e *early) AfterFunc(d time.Duration, f func()) clock.Timer {
	return e.Manual.AfterFunc(d-d/3, f)
}
