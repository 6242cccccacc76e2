package circuitbreaker

import (
	"math"
	"sync/atomic"
	"time"
)

// generation is what the breaker is between two changes. It is replaced, never
// changed (but for its window and its probes): a permit keeps the generation
// that it was given in, and what it records reaches no other. Exactly one of
// the three groups below is in use.
type generation struct {
	p      *Policy
	set    *Config
	number uint64 // grows; new settings alone keep it
	forced bool   // by hand: only another command ends it

	win window // closed

	since, until int64   // open, in the scope's time
	ratio        float64 // open and half-open: the failures that opened it

	probes *probes // half-open
}

// probes is the half-open state. What is not atomic is guarded by the policy's
// lock; what is atomic is written under it and read without.
type probes struct {
	free    atomic.Int64 // places for probes
	renewAt atomic.Int64 // when they may be given up, counted from the last one that left

	done, failed, slow int64
}

// probe is one permit of a half-open breaker.
type probe struct{ recorded atomic.Bool }

// state is the generation's state at the time now, which a closed one does not
// look at.
func (g *generation) state(now int64) State {
	switch {
	case g.win != nil:
		return Closed
	case g.probes != nil || !g.forced && now >= g.until:
		return HalfOpen
	default:
		return Open
	}
}

// told is the state that the last event told: an open generation is half-open
// only once a call has noticed.
func (g *generation) told() State {
	switch {
	case g.win != nil:
		return Closed
	case g.probes != nil:
		return HalfOpen
	default:
		return Open
	}
}

// refusal reports whether a call at the time now is refused, and how long after
// now the next one may be let through. That is 0 if a command keeps the breaker
// open, since nobody knows.
func (g *generation) refusal(now int64) (wait time.Duration, refused bool) {
	switch {
	case g.win != nil:
		return 0, false
	case g.forced:
		return 0, true
	case g.probes == nil:
		wait = time.Duration(g.until - now)
	case g.probes.free.Load() == 0:
		// The last probe may have left after the clock was read.
		wait = min(time.Duration(g.probes.renewAt.Load()-now), g.set.OpenFor)
	}
	return max(wait, 0), wait > 0
}

// later is now+d, saturated.
func later(now int64, d time.Duration) int64 {
	if now > 0 && int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(d)
}

// The following make the next generation. They need the policy's lock, which
// guards the numbering.

func (p *Policy) closed(forced bool) *generation {
	g := p.next()
	g.win, g.forced = newWindow(g.set), forced
	return g
}

func (p *Policy) open(now int64, ratio float64) *generation {
	g := p.next()
	g.since, g.until, g.ratio = now, later(now, g.set.OpenFor), ratio
	return g
}

func (p *Policy) forcedOpen() *generation {
	g := p.next()
	g.forced = true
	return g
}

func (p *Policy) halfOpen(ratio float64) *generation {
	g := p.next()
	g.probes, g.ratio = new(probes), ratio
	g.probes.free.Store(int64(g.set.HalfOpenCalls))
	return g
}

func (p *Policy) next() *generation {
	p.number++
	return &generation{p: p, set: p.set.Load(), number: p.number}
}
