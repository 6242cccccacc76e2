package ratelimit_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"resilience4cata.dev/go/policy/ratelimit"
)

// awkward are rates whose interval is no whole number of nanoseconds, and some
// that are.
var awkward = []struct {
	limit  int
	period time.Duration
}{
	{1, time.Second},
	{3, time.Second},
	{7, 10 * time.Millisecond},
	{999, time.Second},
	{1_000_003, time.Second},
	{123_456_789, time.Second},
	{1_000_000, time.Second},
	{1_000_000_000, time.Second},
	{7, 24 * time.Hour},
	{1, 7},
	{3, 7},
	{1000, 7},
}

// L-1: over a long span exactly limit permits a period are admitted, however
// they are asked for: at the instant of each permit, or rarely, as long as the
// bucket does not fill up.
func TestExactOverLongSpans(t *testing.T) {
	for _, rate := range awkward {
		p, m := newManual(t, ratelimit.Per(rate.limit, rate.period))
		if rate.limit > 1000 {
			// Too many to count: a burst of 100, and as much time as 99 take.
			p, m = newManual(t, ratelimit.Per(rate.limit, rate.period), ratelimit.Burst(100))
		}
		total := drain(p)
		step := max(time.Duration(ratelimit.MulDiv(int64(min(rate.limit, 100)-1), int64(rate.period), int64(rate.limit))), 1)
		if rate.limit == 1 {
			step = rate.period
		}
		burst := total
		for range 200 {
			m.Advance(step)
			total += drain(p)
		}
		elapsed := new(big.Int).Mul(big.NewInt(int64(step)), big.NewInt(200*int64(rate.limit)))
		want := burst + int(elapsed.Div(elapsed, big.NewInt(int64(rate.period))).Int64())
		if total != want {
			t.Errorf("%d per %s: %d in 200 steps of %s, want %d", rate.limit, rate.period, total, step, want)
		}
	}
}

// L-1: the n-th permit is there at the first nanosecond at which its time has
// come, without a drift.
func TestPermitsComeAtTheirNanosecond(t *testing.T) {
	for _, rate := range awkward {
		if int64(rate.limit) > int64(rate.period) {
			continue // several in a nanosecond: then a burst of one holds it back
		}
		p, m := newManual(t, ratelimit.Per(rate.limit, rate.period), ratelimit.Burst(1), ratelimit.MaxWait(math.MaxInt64))
		for n := range int64(500) {
			if err := p.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := time.Duration(ratelimit.MulDiv(n, int64(rate.period), int64(rate.limit)))
			if got := m.Now().Sub(start); got != want {
				t.Fatalf("%d per %s: permit %d at %s, want %s", rate.limit, rate.period, n, got, want)
			}
		}
	}
}

// L-1: in no window, between any two calls, are more than burst + rate × window
// admitted, not even by one in a nanosecond.
func TestNoWindowAdmitsMore(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, period := 1+r.Int64N(1000), 1+r.Int64N(100_000)
		if seed%3 == 0 {
			limit = 1 + r.Int64N(1<<31)
		}
		burst := 1 + r.IntN(5)
		p, m := newManual(t, ratelimit.Per(int(limit), time.Duration(period)), ratelimit.Burst(burst))
		var at []int64 // when each was admitted
		for range 400 {
			if r.IntN(2) == 0 {
				m.Advance(time.Duration(r.Int64N(2*period/limit + 3)))
			}
			for range 1 + r.IntN(burst) {
				if p.TryAcquire() {
					at = append(at, int64(m.Now().Sub(start)))
				}
			}
		}
		for i := range at {
			for j := i + burst; j < min(len(at), i+burst+50); j++ {
				// Permits i to j: j-i+1-burst intervals must have passed.
				if need := ratelimit.MulDiv(int64(j-i+1-burst), period, limit); at[j]-at[i] < need {
					t.Fatalf("seed %d: %d per %d ns, burst %d: %d within %d ns", seed, limit, period, burst, j-i+1, at[j]-at[i])
				}
			}
		}
	}
}

// Rates that do not fit exact units are slower than asked by less than a
// millionth, never faster.
func TestUnitsRoundToTheSlowerSide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	upTo := func(bits int) int64 { return 1 + r.Int64N(1<<r.IntN(bits)) }
	for range 20_000 {
		limit, period, burst := upTo(40), time.Duration(upTo(60)), upTo(40)
		if uint64(math.MaxInt) < 1<<40 {
			limit, burst = limit>>10+1, burst>>10+1
		}
		scale, cost, fill := ratelimit.Units(int(limit), period, int(burst))
		if scale < 1 || cost < 1 || fill < cost || fill > 1<<61 {
			t.Fatalf("%d per %d, burst %d: scale %d, cost %d, fill %d", limit, period, burst, scale, cost, fill)
		}
		if cost == 1<<61 {
			continue // an interval of more than 73 years
		}
		rate := new(big.Rat).SetFrac64(limit, int64(period)) // permits in a nanosecond, if exact
		got := new(big.Rat).SetFrac64(scale, cost)
		if got.Cmp(rate) > 0 {
			t.Fatalf("%d per %d, burst %d: faster than asked", limit, period, burst)
		}
		if limit/int64(period) > 1000 {
			continue // more than 10^12 a second
		}
		off, _ := got.Quo(got, rate).Float64()
		if 1-off > 1e-6 {
			t.Errorf("%d per %d, burst %d: slower by %g", limit, period, burst, 1-off)
		}
	}
}

func TestUnitsAreExactWhereTheyFit(t *testing.T) {
	for _, rate := range awkward {
		scale, cost, _ := ratelimit.Units(rate.limit, rate.period, rate.limit)
		if new(big.Rat).SetFrac64(scale, cost).Cmp(new(big.Rat).SetFrac64(int64(rate.limit), int64(rate.period))) != 0 {
			t.Errorf("%d per %s: %d units in a nanosecond, %d in a permit", rate.limit, rate.period, scale, cost)
		}
	}
}

func TestMulDivAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func() int64 { return r.Int64() >> r.IntN(63) }
	for range 20_000 {
		a, b, c := draw(), draw(), max(1, draw())
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Add(want, big.NewInt(c-1)).Div(want, big.NewInt(c))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := ratelimit.MulDiv(a, b, c); got != want.Int64() {
			t.Fatalf("%d·%d/%d = %d, want %s", a, b, c, got, want)
		}
	}
}
