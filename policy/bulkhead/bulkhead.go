package bulkhead

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/internal/stripe"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
)

// Policy is a bulkhead: a number of slots, and a first-in, first-out queue of
// calls that wait for one. It is safe for concurrent use and must not be copied.
// Make it with [New]; a pipeline that has a bulkhead layer makes its own. A nil
// or zero Policy does not work.
//
// Most callers want [Policy.Acquire] and a deferred [Policy.Release].
type Policy struct {
	// state is a word. While marked is set only the holder of mu changes it, so
	// that under mu a marked state may be computed and stored; an unmarked one
	// needs a compare-and-swap even there.
	state atomic.Uint64
	_     [7]uint64 // the line of state is written by every call, what follows is read

	id       string
	scope    *scope.Scope
	rejected stripe.Rare // counter 0
	settings atomic.Pointer[settings]

	// waiting mirrors queue.Len() for refusals without the lock. Written under mu.
	waiting atomic.Int64

	mu       sync.Mutex
	queue    waitq.Queue // marked is set if and only if it holds somebody
	async    map[*waitq.Waiter]clock.Timer
	admitted uint64 // admissions that are not in state
	given    int    // the limit by New or Reconfigure last, whatever SetLimit did
	closed   bool
}

// settings is one generation of them. It is never changed, only replaced, under
// Policy.mu.
type settings struct {
	config Config
	full   *Error // the refusal without a wait
}

// New returns a bulkhead of its own, outside of any registry, on the given clock.
// It reports all mistakes in id, c and clk, each as a [policy.ConfigError].
func New(id string, c Config, clk clock.Clock) (*Policy, error) {
	if err := setting.Clock(kind, id, clk); err != nil {
		return nil, errors.Join(setting.ID(kind, id, "id"), err, setting.Named(c.Validate(), id))
	}
	return NewIn(scope.New(clk, nil), id, c)
}

// NewIn is [New] for the registry, whose scope brings clock, listener and the
// news of its end.
func NewIn(s *scope.Scope, id string, c Config) (*Policy, error) {
	if err := setting.Named(errors.Join(setting.ID(kind, id, "id"), c.Validate()), id); err != nil {
		return nil, err
	}
	p := &Policy{id: id, scope: s, given: c.MaxConcurrent}
	p.use(c, nil) // nobody waits yet
	s.OnClose(p.close)
	return p, nil
}

// ID is the id of the instance.
func (p *Policy) ID() string { return p.id }

// Config returns the settings in force. MaxConcurrent is what [Policy.SetLimit]
// has made of it, which may be 0.
func (p *Policy) Config() Config { return p.settings.Load().config }

// Acquire takes a slot. Without a free one it waits in the queue, as Config
// allows it. It returns
//
//   - nil: the caller holds a slot and must call [Policy.Release] once;
//   - an [*Error], which matches [ErrFull]: no slot, and no place in the queue or
//     no slot within MaxWait;
//   - an error that matches ctx.Err() and context.Cause(ctx): ctx ended first, or
//     before the call; that is counted nowhere;
//   - registry.ErrClosed: it would have had to wait, and the registry was closed.
//
// It never passes somebody who waits. A nil ctx panics.
func (p *Policy) Acquire(ctx context.Context) error {
	if ctx == nil {
		panic("bulkhead: nil ctx in Acquire")
	}
	if ctx.Err() != nil {
		return scope.Ended(ctx)
	}
	if p.take() {
		return nil
	}
	maxWait := p.settings.Load().config.MaxWait
	err := p.mayWait(ctx, maxWait)
	if err == nil {
		err = p.wait(ctx, maxWait)
	}
	if err != nil && errors.Is(err, ctx.Err()) { // never so for a refusal or ErrClosed
		return scope.Ended(ctx)
	}
	return err
}

// TryAcquire takes a slot if one is free and nobody waits for it, and reports
// whether it did. After true the caller must call [Policy.Release] once. It never
// waits, allocates nothing and publishes nothing; false is counted as rejected.
func (p *Policy) TryAcquire() bool {
	if p.take() {
		return true
	}
	p.rejected.Line()[0].Add(1)
	return false
}

// Release gives a slot back: to the first in the queue, if there is one. It must
// be called exactly once for each slot that was taken, from any goroutine. A
// call too many panics, if no slot is in use, and changes nothing.
func (p *Policy) Release() {
	for {
		s := p.load()
		if s.isMarked() {
			if p.handOver() {
				return
			}
			continue
		}
		// Not an Add: below zero it would borrow from the limit, and others
		// would see that before it could be repaired.
		if s.inUse() == 0 {
			p.overRelease()
		}
		if p.swap(s, s-oneInUse) {
			return
		}
	}
}

// SetLimit changes how many calls may be inside at once. It never blocks on the
// calls inside: a lower limit lets nobody in until enough of them have left, a
// higher one lets those who wait in at once, in their order. 0 is legal and lets
// nobody in; a negative n is a [policy.ConfigError] and changes nothing.
//
// The limit stays until it is set again, or [Policy.Reconfigure] brings another
// MaxConcurrent.
func (p *Policy) SetLimit(n int) error {
	if n < 0 {
		return &policy.ConfigError{Code: "R4C-ATR-003", Policy: kind, ID: p.id, Path: "limit", Got: strconv.Itoa(n) + " is negative", Hint: "give the number of calls that may run at once; 0 lets nobody in"}
	}
	var b batch
	p.mu.Lock()
	c := p.settings.Load().config
	c.MaxConcurrent = n
	p.use(c, &b)
	p.mu.Unlock()
	b.done()
	return nil
}

// Reconfigure puts c in force, for the registry's Reload. An invalid c changes
// nothing and is reported as [Config.Validate] does. A limit that was set by
// [Policy.SetLimit] stays if MaxConcurrent is what New or Reconfigure got before.
// Calls inside keep their slots; those who wait keep their places and the waits
// they came with, even if the queue is now shorter than they are many.
func (p *Policy) Reconfigure(c Config) error {
	if err := setting.Named(c.Validate(), p.id); err != nil {
		return err
	}
	var b batch
	p.mu.Lock()
	given := p.given
	p.given = c.MaxConcurrent
	if c.MaxConcurrent == given {
		c.MaxConcurrent = p.settings.Load().config.MaxConcurrent
	}
	p.use(c, &b)
	p.mu.Unlock()
	b.done()
	return nil
}

// use puts c in force and grants what its limit frees. The caller holds p.mu, or
// p is not shared yet.
func (p *Policy) use(c Config, b *batch) {
	p.settings.Store(&settings{c, &Error{Instance: p.id, Limit: c.MaxConcurrent, Queue: c.Queue}})
	for {
		s := p.load()
		next := s.withLimit(c.MaxConcurrent)
		if s.isMarked() {
			p.store(p.grant(next, b))
			return
		}
		if p.swap(s, next) {
			return
		}
	}
}

// take takes a free slot, if there is one; then nobody waits. Nothing else needs
// to be looked at: the word holds the limit, too.
func (p *Policy) take() bool {
	for {
		s := p.load()
		if !s.free() {
			return false
		}
		if s&carryDue != 0 {
			p.carry()
			continue
		}
		if p.swap(s, s+oneInUse+oneAdmitted) {
			return true
		}
	}
}

// carry moves what the flag carryDue stands for to p.admitted. Both happen under
// the lock, under which Snapshot reads them.
func (p *Policy) carry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.state.And(^uint64(carryDue)); word(old)&carryDue != 0 {
		p.admitted += carried
	}
}

// handOver is Release while somebody waits. It reports false if nobody does any
// more. The slot goes straight to the first in the queue: at no time is it free.
func (p *Policy) handOver() bool {
	var b batch
	p.mu.Lock()
	s := p.load()
	if !s.isMarked() {
		p.mu.Unlock()
		return false
	}
	if s.inUse() == 0 { // they wait because the limit is 0
		p.mu.Unlock()
		p.overRelease()
	}
	p.store(p.grant(s-oneInUse, &b))
	p.mu.Unlock()
	b.done()
	return true
}

func (p *Policy) overRelease() {
	panic("bulkhead " + strconv.Quote(p.id) + ": Release without a slot in use: it was called more often than slots were taken")
}

// refuse counts and tells a refusal, and returns it.
func (p *Policy) refuse(ctx context.Context, e *Error) error {
	p.rejected.Line()[0].Add(1)
	p.tell(ctx)
	return e
}

// tell publishes a refusal that was counted.
func (p *Policy) tell(ctx context.Context) {
	if p.scope.Listening() {
		p.scope.Publish(ctx, Full{p.scope.Meta(kind, p.id)})
	}
}

func (p *Policy) load() word              { return word(p.state.Load()) }
func (p *Policy) store(s word)            { p.state.Store(uint64(s)) }
func (p *Policy) swap(from, to word) bool { return p.state.CompareAndSwap(uint64(from), uint64(to)) }
