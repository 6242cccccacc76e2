package ratelimit_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/ratelimit"
)

// setRate is SetRate for the model, whose waiters must be served at latest when
// latest says. It returns those that are refused.
func (m *model) setRate(limit, period, burst int64, latest []int64) (refused []int) {
	raised := max(burst-m.burst, 0)
	m.limit, m.period, m.burst = limit, period, burst
	for ; raised > 0 && len(m.queue) > 0; raised-- {
		m.served[m.queue[0]] = m.now
		m.queue = m.queue[1:]
	}
	if full := new(big.Rat).SetInt64(burst); m.level.Cmp(full) > 0 {
		m.level = full
	}
	var keep []int
	for _, i := range m.queue {
		if m.now+m.wait(len(keep)) <= latest[i] {
			keep = append(keep, i)
		} else {
			refused = append(refused, i)
		}
	}
	m.queue = keep
	m.advance(0)
	return refused
}

// L-5 against the model: rates and bursts change while calls wait, leave, and have
// left without the limiter's knowing yet. The rates are such that no exact
// fraction has to be rounded when it is taken over.
func TestSetRate_L5_AgainstTheModel(t *testing.T) {
	limits, periods := []int64{1, 2, 5, 10, 100}, []int64{1e9, 2e9, 5e8, 1e8}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 77))
		draw := func() (limit, period, burst int64) {
			return limits[r.IntN(len(limits))], periods[r.IntN(len(periods))], 1 + r.Int64N(5)
		}
		ref := &model{served: map[int]int64{}}
		ref.limit, ref.period, ref.burst = draw()
		ref.level = new(big.Rat).SetInt64(ref.burst)
		clk := clock.NewManual(start).Passive()
		p := newOn(t, clk, ratelimit.Per(int(ref.limit), time.Duration(ref.period)), ratelimit.Burst(int(ref.burst)))

		var waiters []*queued
		var latest []int64
		want := map[int]waitq.State{}
		for range 60 {
			interval := ref.period / ref.limit
			switch r.IntN(6) {
			case 0, 1:
				d := r.Int64N(9) * interval / 4
				clk.Advance(time.Duration(d))
				ref.advance(d)
			case 2, 3:
				maxWait := r.Int64N(12) * interval / 2
				wait := ref.wait(len(ref.queue))
				q := newQueued(clk)
				entered, err := p.EnterAsync(t.Context(), time.Duration(maxWait), 0, q.Waiter)
				switch {
				case entered != (wait == 0) || (err == nil) != (wait <= maxWait):
					t.Fatalf("seed %d: entered %v, %v; want a wait of %d, it may wait %d", seed, entered, err, wait, maxWait)
				case entered:
					ref.spend()
				case err == nil:
					ref.queue = append(ref.queue, len(waiters))
					waiters, latest = append(waiters, q), append(latest, ref.now+maxWait)
				}
			case 4:
				if len(ref.queue) == 0 {
					continue
				}
				i := r.IntN(len(ref.queue))
				gone := ref.queue[i]
				want[gone] = waitq.Left
				ref.queue = append(ref.queue[:i:i], ref.queue[i+1:]...)
				if r.IntN(2) == 0 {
					p.Leave(waiters[gone].Waiter)
					continue
				}
				// As Policy.Leave before it has the lock: another change comes first.
				waiters[gone].Waiter.Leave()
				fallthrough
			case 5:
				limit, period, burst := draw()
				setRate(t, p, int(limit), time.Duration(period), int(burst))
				for _, i := range ref.setRate(limit, period, burst, latest) {
					want[i] = waitq.Refused
				}
			}
		}
		for i := range ref.served {
			want[i] = waitq.Granted
		}
		got, served := map[int]waitq.State{}, map[int]int64{}
		for i, q := range waiters {
			if s := q.State(); s != waitq.Waiting {
				got[i] = s
			}
			if q.State() == waitq.Granted {
				served[i] = int64(q.due())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: states (-want +got)\n%s", seed, diff)
		}
		if diff := cmp.Diff(ref.served, served); diff != "" {
			t.Fatalf("seed %d: served at (-want +got)\n%s", seed, diff)
		}
		if n := p.Snapshot().Waiting; n != len(ref.queue) {
			t.Fatalf("seed %d: %d waiting, want %d", seed, n, len(ref.queue))
		}
	}
}
