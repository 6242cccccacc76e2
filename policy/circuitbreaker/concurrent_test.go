package circuitbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

// No sample is lost and none counts twice, however the writers interleave: the
// ratio of a window that is not full is exact, and a window that was rolled over
// by a rush is exact again after one more lap of known samples. A sum that had
// drifted by one would stay off for ever.
func TestWindowsNeverLoseNorDoubleASample(t *testing.T) {
	const writers, each = 8, 3000
	for _, tc := range []struct {
		name string
		opt  circuitbreaker.Option
		lap  int // 0: all samples are in the window
	}{
		{"count, not full", circuitbreaker.CountWindow(writers * each), 0},
		{"count, rolled over", circuitbreaker.CountWindow(97), 97},
		{"count, all writers in one place", circuitbreaker.CountWindow(1), 1},
		{"time", circuitbreaker.TimeWindow(time.Hour), 0},
	} {
		p := must(t, clock.NewManual(epoch), tc.opt, circuitbreaker.MinCalls(1))
		p.ForceClosed()
		var failed atomic.Int64
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(w), 1))
				for range each {
					permit := allow(t, p)
					if random.IntN(2) == 0 {
						failed.Add(1)
						permit.Failure()
					} else {
						permit.Success()
					}
					if r := p.Snapshot().FailureRatio; r < 0 || r > 1 {
						t.Errorf("%s: ratio %v under load", tc.name, r)
					}
				}
			})
		}
		wg.Wait()
		if tc.lap == 0 {
			want := float64(failed.Load()) / (writers * each)
			if got := p.Snapshot().FailureRatio; got != want {
				t.Errorf("%s: ratio %v, want %v", tc.name, got, want)
			}
			continue
		}
		for range tc.lap - 1 {
			record(t, p, nil)
		}
		record(t, p, errE) // the lap is done, and one failure is in it
		if got, want := p.Snapshot().FailureRatio, 1/float64(tc.lap); got != want {
			t.Errorf("%s: ratio %v after a lap, want %v", tc.name, got, want)
		}
		for range tc.lap {
			record(t, p, nil)
		}
		if got := p.Snapshot().FailureRatio; got != 0 {
			t.Errorf("%s: ratio %v after a good lap, want 0", tc.name, got)
		}
	}
}

// All writers at one place, as close as they can get: a sum that moved without
// its bit would stay wrong for ever. (A permit of a closed breaker counts each
// time, which makes for a tight loop.)
func TestSumsFollowTheBitsWhenWritersMeet(t *testing.T) {
	p := must(t, clock.NewManual(epoch), circuitbreaker.CountWindow(1), circuitbreaker.MinCalls(1), circuitbreaker.FailureRatio(1))
	p.ForceClosed()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			permit := allow(t, p)
			for range 20_000 {
				permit.Failure()
				permit.Success()
			}
		})
	}
	wg.Wait()
	record(t, p, nil)
	if got := p.Snapshot().FailureRatio; got != 0 {
		t.Errorf("ratio %v after a success, want 0", got)
	}
	record(t, p, errE)
	if got := p.Snapshot().FailureRatio; got != 1 {
		t.Errorf("ratio %v after a failure, want 1", got)
	}
}

// C-1: of a rush of failures exactly MinCalls are needed: when all have been
// recorded, the breaker is open, whoever came last.
func TestRushOfFailuresAlwaysOpens(t *testing.T) {
	for round := range 300 {
		var l testkit.Journal
		p := heard(t, clock.NewManual(epoch), l.Listen, circuitbreaker.MinCalls(8), circuitbreaker.CountWindow(8), circuitbreaker.FailureRatio(.75))
		permits := make([]circuitbreaker.Permit, 8)
		for i := range permits {
			permits[i] = allow(t, p)
		}
		var wg sync.WaitGroup
		for i, permit := range permits {
			wg.Go(func() {
				if i%4 == round%4 { // two of eight succeed
					permit.Success()
				} else {
					permit.Failure()
				}
			})
		}
		wg.Wait()
		wantState(t, p, circuitbreaker.Open)
		if got := changes(&l); len(got) != 1 {
			t.Fatalf("changes %v, want one", got)
		}
	}
}

// C-3: never more probes than places, under any rush, and one change each.
func TestRushOnHalfOpenLetsExactlyTheProbesThrough(t *testing.T) {
	for range 100 {
		clk := clock.NewManual(epoch)
		var l testkit.Journal
		p := heard(t, clk, l.Listen, circuitbreaker.MinCalls(1), circuitbreaker.OpenFor(time.Second), circuitbreaker.HalfOpenCalls(3))
		record(t, p, errE)
		clk.Advance(time.Second)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		begin := make(chan struct{})
		permits := make(chan circuitbreaker.Permit, 50)
		for range 50 {
			wg.Go(func() {
				<-begin
				if permit, err := p.Allow(); err == nil {
					admitted.Add(1)
					permits <- permit
				}
			})
		}
		close(begin)
		wg.Wait()
		if got := admitted.Load(); got != 3 {
			t.Fatalf("%d probes, want 3", got)
		}
		close(permits)
		for permit := range permits {
			wg.Go(permit.Success)
		}
		wg.Wait()
		wantState(t, p, circuitbreaker.Closed)
		if got := fmt.Sprint(changes(&l)); got != "[closed>open open>half-open half-open>closed]" {
			t.Fatalf("changes %s", got)
		}
		if got := p.Snapshot().Rejected; got != 47 {
			t.Fatalf("rejected %d, want 47", got)
		}
	}
}

// Everything at once: the events form a chain, each From the To before it, and
// the last To is the state that the breaker is in.
func TestEventsFormAChainUnderStress(t *testing.T) {
	clk := clock.NewManual(epoch)
	var l testkit.Journal
	var p *circuitbreaker.Policy
	p = heard(t, clk, func(ctx context.Context, e policy.Event) {
		l.Listen(ctx, e)
		_ = p.State()
	}, circuitbreaker.MinCalls(2), circuitbreaker.CountWindow(4), circuitbreaker.OpenFor(time.Millisecond), circuitbreaker.HalfOpenCalls(2))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 2))
			for i := range 3000 {
				if permit, err := p.Allow(); err == nil {
					switch random.IntN(4) {
					case 0:
						permit.Ignored()
					case 1:
						permit.Success()
					case 2:
						permit.Failure()
					default: // lost
					}
				} else if !errors.Is(err, circuitbreaker.ErrOpen) {
					t.Error(err)
				}
				switch {
				case i%7 == 0:
					clk.Advance(time.Millisecond / 2)
				case i%501 == 0:
					p.Reset()
				case i%503 == 0:
					p.ForceOpen()
				case i%509 == 0:
					_ = p.Reconfigure(with(circuitbreaker.MinCalls(2+random.IntN(2)), circuitbreaker.CountWindow(4+random.IntN(2)), circuitbreaker.OpenFor(time.Millisecond)))
				default:
					_ = p.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	p.ForceOpen()
	last := circuitbreaker.Closed
	for _, e := range l.Events() {
		if change, ok := e.(circuitbreaker.StateChanged); ok {
			if change.From != last || change.From == change.To {
				t.Fatalf("%s>%s after %s", change.From, change.To, last)
			}
			last = change.To
		}
	}
	if last != circuitbreaker.Open {
		t.Errorf("last event says %s, the breaker is open", last)
	}
}

// A clock that goes back neither panics nor keeps the breaker blind: samples go
// on counting.
func TestTimeWindowSurvivesAClockThatGoesBack(t *testing.T) {
	clk := &wandering{at: epoch.Add(time.Hour)}
	p := must(t, clk, circuitbreaker.TimeWindow(10*time.Second), circuitbreaker.MinCalls(4))
	clk.at = clk.at.Add(time.Minute)
	record(t, p, errE, errE)
	clk.at = epoch // also before the breaker was made
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Closed)
	record(t, p, errE)
	wantState(t, p, circuitbreaker.Open)
}

// wandering is a clock whose time is set at will.
type wandering struct{ at time.Time }

func (c *wandering) Now() time.Time                            { return c.at }
func (*wandering) Sleep(context.Context, time.Duration) error  { return nil }
func (*wandering) AfterFunc(time.Duration, func()) clock.Timer { return nil }
