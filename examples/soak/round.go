package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// patience is how long anything may take that has to end: nobody waits so long
// unless it does not end at all, however slow the machine is.
const patience = time.Minute

// line is a pipeline, and what its callers saw of it.
type line struct {
	id       string
	pooled   bool // it shares the bulkhead "pool"
	pipeline *pipeline.Pipeline[*item]

	started, succeeded, panicked atomic.Uint64
	unseen                       atomic.Uint64 // calls whose caller has no future
}

// round is the life of one registry: it is made, used by many, and ended in the
// middle of that.
type round struct {
	number uint64
	plan   plan
	dep    *dependency
	broken *broken
	ledger *ledger
	reg    *registry.Registry
	since  time.Time // before reg was made
	lines  []*line
	inPool gauge
	ctx    context.Context //nolint:containedctx // that of all calls of the round
	begun  atomic.Uint64   // changes of settings that have begun
	ended  atomic.Uint64   // and those that are over
	rates  atomic.Int64    // changes of rates
	did    deedsOfChaos

	permits   map[string]float64 // by limiter: the most that it may have admitted
	snapshots int
	callers   sync.WaitGroup
	futures   sync.WaitGroup // that have not ended
	work      sync.WaitGroup // goroutines of stages
}

// gauge counts who is inside, and remembers the most.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() {
	n := g.now.Add(1)
	for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
		continue
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

func newRound(p plan, number uint64, dep *dependency, b *broken) (*round, error) {
	r := &round{number: number, plan: p, dep: dep, broken: b, ledger: &ledger{broken: b}, permits: make(map[string]float64), since: time.Now()}
	cfg, err := settings(r.rand(0))
	if err != nil {
		return nil, err
	}
	if r.reg, err = registry.New(registry.WithConfig(cfg), registry.WithListener(r.listen)); err != nil {
		return nil, err
	}
	discard := func(it *item) { r.ledger.end(it, discarded) }
	add := func(b *pipeline.Builder[*item], pooled bool) {
		p, buildErr := b.OnDiscard(discard).Build()
		if err = errors.Join(err, buildErr); buildErr == nil {
			r.lines = append(r.lines, &line{id: p.ID(), pooled: pooled, pipeline: p})
		}
	}
	add(pipeline.Configured[*item](r.reg, "whole").Fallback(r.fallback), false)
	add(pipeline.Configured[*item](r.reg, "pool-a"), true)
	add(pipeline.Configured[*item](r.reg, "pool-b"), true)
	add(pipeline.Configured[*item](r.reg, "loose"), false)
	add(pipeline.New[*item](r.reg, "plain").Timeout(50*time.Millisecond), false)
	return r, err
}

// rand is a source of choices of its own for everybody who makes them.
func (r *round) rand(who uint64) *rand.Rand { return rand.New(rand.NewPCG(r.plan.seed+r.number, who)) }

// fallback helps in two cases out of three.
func (r *round) fallback(_ context.Context, err error) (*item, error) {
	if r.ledger.made.Load()%3 == 0 {
		return nil, fmt.Errorf("%w: no fallback", errBackend)
	}
	if errors.Is(err, registry.ErrClosed) {
		r.broken.report("the fallback was asked for a closed registry")
	}
	return &r.ledger.fallback, nil
}

func (r *round) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
	}
}

// run lets the round happen, for about so long, and checks what is left.
func (r *round) run(ctx context.Context, length time.Duration) error {
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	for i := range r.plan.callers {
		c := &caller{r, r.rand(uint64(i) + 100)}
		r.callers.Go(c.loop)
	}
	during, stop := context.WithCancel(ctx)
	var around sync.WaitGroup
	around.Go(func() { r.watch(during) })
	around.Go(func() { r.changeSettings(during) })
	around.Go(func() { r.changeLimits(during) })
	around.Go(func() { r.changeWeather(during) })
	r.pause(length)

	err := r.end(ctx)
	stop()
	around.Wait()
	r.checkIdle()
	return errors.Join(err, ctx.Err())
}

func (r *round) endName() string {
	if r.number%2 == 0 {
		return "Drain"
	}
	return "Close"
}

// end ends the registry while everybody is at it. The callers stop when they are
// told that it is closed.
func (r *round) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	drained := make(chan error, 1)
	if r.endName() == "Close" {
		_ = r.reg.Close()
	}
	go func() { drained <- r.reg.Drain(ctx) }()
	for _, w := range []struct {
		what string
		wait func()
	}{{"callers", r.callers.Wait}, {"futures", r.futures.Wait}, {"stages", r.work.Wait}} {
		done := make(chan struct{})
		go func() { defer close(done); w.wait() }()
		select {
		case <-done:
		case <-time.After(patience):
			r.broken.report("%s do not end after %s:\n%s", w.what, r.endName(), stacks())
			return fmt.Errorf("%s do not end", w.what)
		}
	}
	if err := <-drained; err != nil {
		r.broken.report("Drain: %v; %+v", err, r.reg.Snapshot().Pipelines)
	}
	return r.reg.Close()
}

// checkIdle holds the last snapshot against what the callers saw.
func (r *round) checkIdle() {
	s := r.reg.Snapshot()
	for _, p := range s.Pipelines {
		for _, l := range r.lines {
			if l.id != p.ID {
				continue
			}
			unseen := l.unseen.Load()
			near := func(counted uint64, seen *atomic.Uint64) bool {
				return counted >= seen.Load() && counted <= seen.Load()+unseen
			}
			if c := p.Calls; c.Started != l.started.Load() || !near(c.Succeeded, &l.succeeded) || !near(c.Panicked, &l.panicked) {
				r.broken.report("%s: callers saw %d started, %d succeeded, %d panicked, and not how %d ended; the registry %+v",
					p.ID, l.started.Load(), l.succeeded.Load(), l.panicked.Load(), unseen, c)
			}
		}
		if p.Calls.InFlight != 0 || p.Abandoned.Running != 0 {
			r.broken.report("%s: idle, and %+v %+v", p.ID, p.Calls, p.Abandoned)
		}
	}
	for _, b := range s.Bulkheads {
		if b.InUse != 0 || b.Waiting != 0 {
			r.broken.report("bulkhead %s: idle, and %d in use, %d waiting", b.ID, b.InUse, b.Waiting)
		}
	}
	for _, l := range s.RateLimiters {
		if l.Waiting != 0 {
			r.broken.report("limiter %s: idle, and %d waiting", l.ID, l.Waiting)
		}
	}
	if s.Wheel.Pending != 0 {
		r.broken.report("idle, and %d deadlines pending", s.Wheel.Pending)
	}
	if m := r.inPool.most.Load(); m > mostAtOnce {
		r.broken.report("%d in the pool at once, and the limit was never above %d", m, mostAtOnce)
	}
	r.ledger.check()
}

// summary is one round in a line.
func (r *round) summary() string {
	var c registry.CallCounts
	var a registry.AbandonedCount
	for _, p := range r.reg.Snapshot().Pipelines {
		c.Started += p.Calls.Started
		c.Succeeded += p.Calls.Succeeded
		c.Failed += p.Calls.Failed
		c.TimedOut += p.Calls.TimedOut
		c.Cancelled += p.Calls.Cancelled
		c.Rejected += p.Calls.Rejected
		c.Panicked += p.Calls.Panicked
		a.LateSuccess += p.Abandoned.LateSuccess
		a.LateFailure += p.Abandoned.LateFailure
		a.LatePanic += p.Abandoned.LatePanic
	}
	return strings.Join([]string{
		fmt.Sprintf("%d calls (%d succeeded, %d failed, %d timed out, %d cancelled, %d rejected, %d panicked)",
			c.Started, c.Succeeded, c.Failed, c.TimedOut, c.Cancelled, c.Rejected, c.Panicked),
		fmt.Sprintf("%d late ends", a.LateSuccess+a.LateFailure+a.LatePanic),
		fmt.Sprintf("%d values (%d delivered, %d discarded)", r.ledger.made.Load(), r.ledger.ends[delivered].Load(), r.ledger.ends[discarded].Load()),
		fmt.Sprintf("%d reloads, %d refused ones, %d limits and rates set, %d events", r.did.reloads.Load(), r.did.refused.Load(), r.did.limits.Load(), r.did.events.Load()),
		fmt.Sprintf("%d snapshots", r.snapshots),
		fmt.Sprintf("%d turns of the dependency", r.did.turns.Load()),
	}, "; ")
}
