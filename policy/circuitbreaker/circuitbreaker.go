package circuitbreaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/policy"
)

// State is what a breaker does with calls.
type State string

// The states of a breaker.
const (
	Closed   State = "closed"    // calls pass, outcomes are counted
	Open     State = "open"      // calls are refused
	HalfOpen State = "half-open" // a few calls pass, as probes
)

// Policy is a circuit breaker. Make it with [New], or get the one of a pipeline
// from the registry. All methods are safe for concurrent use, and may be called
// by listeners and by FailIf.
//
// Most callers want a pipeline. Code that can't be wrapped in a function asks
// [Policy.Allow] before and [Permit.Record] after the call.
type Policy struct {
	id    string
	scope *scope.Scope

	// cur is all that a call on a closed breaker looks at. It is written under
	// mu, together with everything that belongs to a change of state; the
	// closed path takes no lock.
	cur atomic.Pointer[generation]
	set atomic.Pointer[Config] // for the next generation; written under mu

	rejected atomic.Uint64

	mu         sync.Mutex
	number     uint64 // of the newest generation
	news       []news
	announcing bool
}

// New returns a closed breaker that stands alone, with the given settings, on
// the given clock: clock.System() outside of tests. The id is what errors and
// snapshots call it; it must not be empty, nor begin or end with space. The
// error joins a [policy.ConfigError] for every mistake.
func New(id string, c Config, clk clock.Clock) (*Policy, error) {
	if err := setting.Clock(kind, id, clk); err != nil {
		return nil, errors.Join(setting.ID(kind, id, "id"), err, setting.Named(c.Validate(), id))
	}
	return NewIn(scope.New(clk, nil), id, c)
}

// NewIn is New for the registry, which shares one scope among all policies.
func NewIn(s *scope.Scope, id string, c Config) (*Policy, error) {
	if err := errors.Join(setting.ID(kind, id, "id"), setting.Named(c.Validate(), id)); err != nil {
		return nil, err
	}
	c = c.clone()
	p := &Policy{id: id, scope: s}
	p.set.Store(&c)
	p.cur.Store(p.closed(false))
	return p, nil
}

// ID is the breaker's id.
func (p *Policy) ID() string { return p.id }

// Config returns the settings in force. The list in it is a copy.
func (p *Policy) Config() Config { return p.set.Load().clone() }

// CountsRejections reports whether refusals of the policies behind the breaker
// are to be recorded as failures. It is for package pipeline.
func (p *Policy) CountsRejections() bool { return p.set.Load().CountRejections }

// State is the breaker's state at this moment, true to the clock: when the open
// time is over it is [HalfOpen], with or without traffic. It changes nothing
// and publishes nothing.
func (p *Policy) State() State {
	g := p.cur.Load()
	if g.win != nil {
		return Closed
	}
	return g.state(p.scope.Now())
}

// Allow asks for one call. Without an error the call may be made, and its
// outcome must be given to the permit, in a deferred function if the call may
// panic. A refusal is an [*Error].
//
// A closed breaker answers without a lock, an allocation or, unless SlowCall is
// set, a look at the clock.
func (p *Policy) Allow() (Permit, error) { return p.Enter(context.Background()) }

// Enter is [Policy.Allow] with the call's context, which is passed on to
// listeners: with the refusal, and with a change of state that the call's
// outcome causes. It does not look at whether ctx is done.
func (p *Policy) Enter(ctx context.Context) (Permit, error) {
	if p.scope.Closed() {
		return Permit{}, scope.ErrClosed
	}
	g := p.cur.Load()
	if g.win == nil {
		return p.enterSlowly(ctx)
	}
	t := Permit{gen: g, ctx: ctx}
	if g.set.SlowCall > 0 {
		t.start = p.scope.Now()
	}
	return t, nil
}

// enterSlowly is Enter for a breaker that was not closed a moment ago.
func (p *Policy) enterSlowly(ctx context.Context) (Permit, error) {
	// The clock is read after the generation, here and below: a reading that is
	// older would make the wait longer than it can be.
	g := p.cur.Load()
	now := p.scope.Now()
	// Most calls on an open breaker are refused, and need no lock to learn that.
	if wait, refused := g.refusal(now); refused {
		return Permit{}, p.refuse(ctx, wait, now)
	}
	g, now = p.hold()
	wait, refused := g.refusal(now)
	var t Permit
	if !refused {
		t = p.admit(ctx, g, now)
	}
	p.mu.Unlock()
	if refused {
		return Permit{}, p.refuse(ctx, wait, now)
	}
	told := false
	defer func() {
		if !told { // the listener has ended the goroutine: there is no call
			t.Ignored()
		}
	}()
	p.announce()
	told = true
	return t, nil
}

// hold takes the lock and reads the clock: the user's code, perhaps, which does
// not keep the lock if it panics.
func (p *Policy) hold() (g *generation, now int64) {
	p.mu.Lock()
	read := false
	defer func() {
		if !read {
			p.mu.Unlock()
		}
	}()
	g, now = p.cur.Load(), p.scope.Now()
	read = true
	return g, now
}

// admit gives a permit of g, which does not refuse it, or of the half-open
// generation that this call begins. It needs mu.
func (p *Policy) admit(ctx context.Context, g *generation, now int64) Permit {
	if g.win == nil && (g.probes == nil || g.probes.free.Load() == 0) {
		// The open time is over, or that of probes which never came back.
		g = p.halfOpen(g.ratio)
		p.move(ctx, g, now)
	}
	t := Permit{gen: g, ctx: ctx}
	if g.set.SlowCall > 0 {
		t.start = now
	}
	if g.probes != nil {
		g.probes.free.Add(-1)
		g.probes.renewAt.Store(max(later(now, g.set.OpenFor), g.probes.renewAt.Load()))
		t.probe = new(probe)
	}
	return t
}

func (p *Policy) refuse(ctx context.Context, wait time.Duration, now int64) error {
	p.rejected.Add(1)
	if p.scope.Listening() {
		p.scope.Publish(ctx, Rejected{p.meta(now)})
	}
	return &Error{Instance: p.id, Wait: wait}
}

func (p *Policy) meta(now int64) policy.Meta { return policy.NewMeta(kind, p.id, p.scope.At(now)) }

// move makes g the current generation and notes the change for the listener.
// It needs mu; the caller must call announce after releasing it.
func (p *Policy) move(ctx context.Context, g *generation, now int64) {
	from := p.cur.Load().told()
	p.cur.Store(g)
	if to := g.told(); from != to && p.scope.Listening() {
		p.news = append(p.news, news{ctx, StateChanged{p.meta(now), from, to}})
	}
}

// sample counts an outcome in the closed state.
func (p *Policy) sample(t Permit, failed bool) {
	g := p.cur.Load()
	if g.number != t.gen.number {
		return // of an earlier generation
	}
	var now int64 // a reading is never 0
	var slow bool
	if t.start != 0 || g.set.TimeWindow > 0 {
		now = p.scope.Now()
		slow = t.slow(now)
	}
	if g.forced {
		g.win.add(failed, slow, now)
		return
	}
	if !g.set.trips(g.win.add(failed, slow, now)) {
		return
	}
	found := g.win.recount(now)
	if !g.set.trips(found) {
		return
	}
	if now == 0 {
		now = p.scope.Now()
	}
	p.mu.Lock()
	if c := p.cur.Load(); c.number == g.number && !c.forced {
		p.move(t.ctx, p.open(now, found.failureRatio()), now)
	}
	p.mu.Unlock()
	p.announce()
}

// probed counts the outcome of a probe, or gives its place back: also if the clock
// panics, because nobody can record it once more.
func (p *Policy) probed(t Permit, v verdict) {
	if t.probe.recorded.Swap(true) {
		return
	}
	var now int64
	read := v == neutral
	defer func() {
		if !read {
			p.settleProbe(t, neutral, 0)
		}
	}()
	if !read {
		now = p.scope.Now()
		read = true
	}
	p.settleProbe(t, v, now)
}

// settleProbe is probed at a reading of the clock, which neutral does not need.
func (p *Policy) settleProbe(t Permit, v verdict, now int64) {
	p.mu.Lock()
	if t.gen == p.cur.Load() { // else it is late
		p.countProbe(t, v, now)
	}
	p.mu.Unlock()
	p.announce()
}

func (p *Policy) countProbe(t Permit, v verdict, now int64) {
	h, set := t.gen.probes, t.gen.set
	if v == neutral {
		h.free.Add(1)
		return
	}
	h.done++
	if v == failure {
		h.failed++
	}
	if t.slow(now) {
		h.slow++
	}
	// The ratios are of all probes that the generation has, so that the breaker
	// opens as soon as the rest can't save it, and no sooner.
	total := int64(set.HalfOpenCalls)
	switch {
	case reaches(h.failed, total, set.FailureRatio), set.SlowCall > 0 && reaches(h.slow, total, set.SlowRatio):
		p.move(t.ctx, p.open(now, tally{samples: h.done, failed: h.failed}.failureRatio()), now)
	case h.done == total:
		p.move(t.ctx, p.closed(false), now)
	}
}

// ForceOpen opens the breaker until [Policy.Reset] or [Policy.ForceClosed].
// What calls in flight record no longer counts. Its refusals carry no Wait.
func (p *Policy) ForceOpen() { p.command(p.forcedOpen) }

// ForceClosed closes the breaker, with an empty window, and keeps it closed
// whatever happens, until [Policy.Reset] or [Policy.ForceOpen]. Outcomes are
// counted for the snapshot.
func (p *Policy) ForceClosed() { p.command(func() *generation { return p.closed(true) }) }

// Reset closes the breaker, with an empty window, and ends what ForceOpen or
// ForceClosed began.
func (p *Policy) Reset() { p.command(func() *generation { return p.closed(false) }) }

func (p *Policy) command(next func() *generation) {
	now := p.scope.Now()
	p.mu.Lock()
	p.move(context.Background(), next(), now)
	p.mu.Unlock()
	p.announce()
}

// Reconfigure gives a living breaker new settings, or returns their mistakes
// and changes nothing. State and samples are kept; a window of another kind or
// size begins empty. An open time that is running gets the new length, from its
// beginning. Probes that are under way decide by the settings that they began
// with. Commands (ForceOpen, ForceClosed) stay in force.
func (p *Policy) Reconfigure(c Config) error {
	if err := setting.Named(c.Validate(), p.id); err != nil {
		return err
	}
	c = c.clone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set.Store(&c)
	g := *p.cur.Load()
	switch {
	case g.probes != nil:
		return nil
	case g.win == nil:
		if !g.forced {
			g.until = later(g.since, c.OpenFor)
		}
	case !sameWindow(g.set, &c):
		p.number++
		g.number, g.win = p.number, newWindow(&c)
	}
	g.set = &c
	p.cur.Store(&g)
	return nil
}
