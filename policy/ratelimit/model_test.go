package ratelimit_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/ratelimit"
)

// model is a token bucket as the books have it: a level that rises, in exact
// fractions, and a list of those who wait. It goes from event to event.
type model struct {
	now    int64
	limit  int64
	period int64
	burst  int64
	level  *big.Rat // in permits, from 0 to burst
	queue  []int
	served map[int]int64
}

// rise lets d nanoseconds pass in which nobody is served.
func (m *model) rise(d int64) {
	m.now += d
	m.level.Add(m.level, new(big.Rat).Mul(new(big.Rat).SetInt64(d), big.NewRat(m.limit, m.period)))
	// While somebody waits nothing is stored: what comes between the exact instant
	// of a permit and the nanosecond of its grant belongs to the next one.
	if full := new(big.Rat).SetInt64(m.burst); len(m.queue) == 0 && m.level.Cmp(full) > 0 {
		m.level = full
	}
}

// wait is how long the call behind n others waits for its permit.
func (m *model) wait(n int) int64 {
	missing := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(n)+1), m.level)
	if missing.Sign() <= 0 {
		return 0
	}
	missing.Mul(missing, big.NewRat(m.period, m.limit))
	up := new(big.Int).Add(missing.Num(), new(big.Int).Sub(missing.Denom(), big.NewInt(1)))
	return up.Div(up, missing.Denom()).Int64()
}

func (m *model) spend() { m.level.Sub(m.level, big.NewRat(1, 1)) }

func (m *model) advance(d int64) {
	end := m.now + d
	for len(m.queue) > 0 && m.now+m.wait(0) <= end {
		m.rise(m.wait(0))
		m.spend()
		m.served[m.queue[0]] = m.now
		m.queue = m.queue[1:]
	}
	m.rise(end - m.now)
}

// run does what the program says to a limiter and to the model, and compares
// all that can be seen.
func run(t *testing.T, limit uint16, period uint32, burst uint8, program []byte) {
	t.Helper()
	ref := &model{limit: int64(limit) + 1, period: int64(period) + 1, burst: int64(burst) + 1, served: map[int]int64{}}
	ref.level = new(big.Rat).SetInt64(ref.burst)
	clk := clock.NewManual(start).Passive()
	p := newOn(t, clk, ratelimit.Per(int(ref.limit), time.Duration(ref.period)), ratelimit.Burst(int(ref.burst)))
	interval := ref.period/ref.limit + 1

	var waiters []*queued
	for pc, op := range program {
		arg := int64(op >> 3)
		switch op & 7 {
		case 0, 1: // up to about eight intervals pass
			d := arg * interval / 4
			clk.Advance(time.Duration(d))
			ref.advance(d)
		case 2: // a few nanoseconds
			clk.Advance(time.Duration(arg))
			ref.advance(arg)
		case 3, 4:
			want := len(ref.queue) == 0 && ref.wait(0) == 0
			if want {
				ref.spend()
			}
			if got := p.TryAcquire(); got != want {
				t.Fatalf("step %d: TryAcquire = %v, want %v", pc, got, want)
			}
		case 5, 6: // a call that waits for up to so many quarters of an interval
			maxWait := time.Duration(arg * interval / 2)
			want := ref.wait(len(ref.queue))
			q := newQueued(clk)
			switch entered, err := p.EnterAsync(t.Context(), maxWait, 0, q.Waiter); {
			case entered != (want == 0):
				t.Fatalf("step %d: entered %v, want a wait of %d", pc, entered, want)
			case entered:
				ref.spend()
			case err != nil:
				if got := retryAfter(t, err); int64(got) != want || got <= maxWait {
					t.Fatalf("step %d: refused with %d, want %d; it may wait %d", pc, got, want, maxWait)
				}
			case want > int64(maxWait):
				t.Fatalf("step %d: queued for %d, it may wait %d", pc, want, maxWait)
			default:
				ref.queue = append(ref.queue, len(waiters))
				waiters = append(waiters, q)
			}
		case 7:
			if len(ref.queue) > 0 {
				i := int(arg) % len(ref.queue)
				if !p.Leave(waiters[ref.queue[i]].Waiter) {
					t.Fatalf("step %d: it did not leave", pc)
				}
				ref.queue = append(ref.queue[:i:i], ref.queue[i+1:]...)
			}
		}
		s := p.Snapshot()
		level := int(new(big.Int).Div(ref.level.Num(), ref.level.Denom()).Int64())
		if s.Available != level || s.Waiting != len(ref.queue) {
			t.Fatalf("step %d: %d available, %d waiting; want %d, %d", pc, s.Available, s.Waiting, level, len(ref.queue))
		}
	}
	served := map[int]int64{}
	for i, q := range waiters {
		if d := q.due(); d >= 0 {
			served[i] = int64(d)
		}
	}
	if diff := cmp.Diff(ref.served, served); diff != "" {
		t.Errorf("served at (-want +got)\n%s", diff)
	}
	if (clk.Pending() > 0) != (len(ref.queue) > 0) || p.Sealed() != (len(ref.queue) > 0) {
		t.Errorf("%d timers, sealed %v, with %d waiting", clk.Pending(), p.Sealed(), len(ref.queue))
	}
}

// FuzzModel compares the limiter with a token bucket of exact fractions. The
// corpus is in testdata/fuzz/FuzzModel.
func FuzzModel(f *testing.F) {
	f.Add(uint16(0), uint32(999_999_999), uint8(0), []byte{3, 253, 253, 253, 128, 15, 7, 248, 3})
	f.Fuzz(func(t *testing.T, limit uint16, period uint32, burst uint8, program []byte) {
		run(t, limit, period, burst, program[:min(len(program), 200)])
	})
}

// TestModelSeeded does the same with the awkward rates and drawn programs.
func TestModelSeeded(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		program := make([]byte, 100)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		run(t, uint16(r.Uint32()>>r.IntN(16)), r.Uint32()>>r.IntN(32), uint8(r.Uint32()>>r.IntN(8)), program)
	}
}
