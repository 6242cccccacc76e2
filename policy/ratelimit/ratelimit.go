package ratelimit

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/internal/stripe"
	"resilience4cata.dev/go/internal/waitq"
)

// Policy is a rate limiter: a token bucket, and a first-in, first-out queue of
// calls that wait for their permit. It is safe for concurrent use and must not
// be copied. Make it with [New]; a pipeline that has a limiter layer makes its
// own. A nil or zero Policy does not work.
//
// Most callers want [Policy.Acquire]. A permit is spent by taking it: there is
// nothing to release.
type Policy struct {
	// current is the bucket. While its word is sealed, which takes p.mu, the
	// state is tat below. A bucket that was replaced stays sealed for ever, so
	// that nobody who still holds it can take from it.
	current atomic.Pointer[bucket]

	id     string
	scope  *scope.Scope
	counts stripe.Set

	mu     sync.Mutex
	tat    int64                    // what the sealed word stands for
	shift  int64                    // ns by which the clock is behind the bucket; see locate
	queue  waitq.Queue              // the word stays sealed while it holds somebody
	async  map[*waitq.Waiter]func() // who came by EnterAsync, and how to tell of its refusal
	timer  clock.Timer              // pending for the first in the queue; nil when it is empty
	armed  uint64                   // which timer that is: a late call of an earlier one does nothing
	closed bool                     // sealed for ever
	given  Config                   // by New or Reconfigure last, whatever SetRate did
}

// Counters of Policy.counts.
const (
	admitted = iota
	rejected
)

// New returns a rate limiter of its own, outside of any registry, on the given
// clock. Its bucket is full. It reports all mistakes in id, c and clk, each as a
// [policy.ConfigError].
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
	p := &Policy{id: id, scope: s, counts: stripe.New(), given: c}
	b := newBucket(&c, s.Now())
	b.tat.Store(0)
	p.current.Store(b)
	s.OnClose(p.close)
	return p, nil
}

// ID is the id of the instance.
func (p *Policy) ID() string { return p.id }

// Config returns the settings in force.
func (p *Policy) Config() Config { return *p.current.Load().config }

// Acquire takes a permit. Without one in store it waits for its turn, if that
// comes within Config.MaxWait and before ctx's deadline; otherwise it is refused
// at once, which changes nothing. It returns
//
//   - nil: the caller has spent a permit;
//   - an [*Error], which matches [ErrLimited] and says when a permit would have
//     been there;
//   - an error that matches ctx.Err() and context.Cause(ctx): ctx ended first, or
//     before the call; no permit was spent, a place in the queue was given back to
//     those behind, and nothing is counted;
//   - registry.ErrClosed: the registry was closed.
//
// It never passes somebody who waits. A nil ctx panics.
func (p *Policy) Acquire(ctx context.Context) error {
	if ctx == nil {
		panic("ratelimit: nil ctx in Acquire")
	}
	if ctx.Err() != nil {
		return scope.Ended(ctx)
	}
	err := p.Enter(ctx, p.current.Load().config.MaxWait, 0)
	if err != nil && errors.Is(err, ctx.Err()) { // never so for a refusal or ErrClosed
		return scope.Ended(ctx)
	}
	return err
}

// TryAcquire takes a permit if one is in store and nobody waits for it, and
// reports whether it did. It never waits, allocates nothing and publishes
// nothing; false is counted as rejected. It is false after the registry was
// closed.
func (p *Policy) TryAcquire() bool {
	wait, decided := p.current.Load().take(p.scope.Now())
	if !decided {
		a := p.enter(context.Background(), math.MinInt64, nil)
		if a.err != nil {
			return false
		}
		wait = a.wait
	}
	return p.count(wait)
}

// Enter is [Policy.Acquire] for package pipeline: it waits at most maxWait (0 or
// less: not at all) instead of Config.MaxWait, which belongs to the layer that
// made the instance, and takes a permit that is in store without looking at ctx,
// which the pipeline has looked at. The end of ctx is ctx.Err() alone: the
// pipeline knows the cause. A wait must end before the instant until, in
// the time of scope.Now; exactly then is too late. 0 is no such bound.
func (p *Policy) Enter(ctx context.Context, maxWait time.Duration, until int64) error {
	now := p.scope.Now()
	wait, decided := p.current.Load().take(now)
	if decided && wait == 0 {
		p.admit()
		return nil
	}
	latest := p.latest(ctx, now, maxWait, until)
	if decided && !fits(now, wait, latest) {
		return p.answer(ctx, wait)
	}
	a := p.enter(ctx, latest, nil)
	switch {
	case a.err != nil:
		return a.err
	case a.waiter == nil:
		return p.answer(ctx, a.wait)
	}
	return p.await(ctx, a.waiter, a.ready)
}

// await is the wait of Enter.
func (p *Policy) await(ctx context.Context, w *waitq.Waiter, ready <-chan struct{}) error {
	returned := false
	defer func() {
		// Foreign code has panicked or ended the goroutine: ctx, or anything that a
		// manual clock calls while the wait drives it. A permit that was granted
		// meanwhile is spent.
		if !returned {
			p.Leave(w)
		}
	}()
	err := p.scope.Wait(ctx, ready)
	returned = true
	if err != nil && p.Leave(w) {
		return err
	}
	// It was settled, perhaps at the very moment at which ctx ended: that is its
	// fate then, and the permit is spent.
	if w.State() == waitq.Granted {
		return nil
	}
	err = w.Err()
	if errors.Is(err, ErrLimited) {
		p.tell(ctx)
	}
	return err
}

// EnterAsync is [Policy.Enter] without blocking, for package pipeline. If
// entered, a permit was taken. If err is not nil, it was refused as by Enter.
// Otherwise w stands in the queue, and its wake is called exactly once, with no
// lock held, when it is settled: granted, which has taken the permit, or refused
// with w.Err(), after a change of the rate or a close. That may be before
// EnterAsync returns. Only if [Policy.Leave] takes w out before, is its wake
// never called.
//
// On a manual clock a grant calls wake on the goroutine that moves the clock; on
// the system clock on one that wake may keep as long as it likes.
//
// w must be fresh, and may be used for one call only.
func (p *Policy) EnterAsync(ctx context.Context, maxWait time.Duration, until int64, w *waitq.Waiter) (entered bool, err error) {
	now := p.scope.Now()
	wait, decided := p.current.Load().take(now)
	if decided && wait == 0 {
		return true, p.answer(ctx, 0)
	}
	latest := p.latest(ctx, now, maxWait, until)
	if !decided || fits(now, wait, latest) {
		a := p.enter(ctx, latest, w)
		if a.err != nil || a.waiter != nil {
			return false, a.err
		}
		wait = a.wait
	}
	err = p.answer(ctx, wait)
	return err == nil, err
}

// Leave takes w, which EnterAsync has queued, out of the queue, gives its place
// to those behind it, and reports whether it did. After false w was settled
// before, by a grant, a refusal or an earlier Leave: if w.State() is
// waitq.Granted, a permit was taken.
func (p *Policy) Leave(w *waitq.Waiter) bool {
	if !w.Leave() {
		return false
	}
	b := p.lock()
	defer p.unlock()
	// Unless a grant or a change of the rate has passed over it in between. The
	// first in the queue is due at the same instant, whoever it is: its timer
	// stays, unless nobody is left.
	if p.remove(w) {
		p.tat -= b.cost
		if p.queue.Len() == 0 {
			p.disarm()
		}
	}
	return true
}

// SetRate changes the rate to n permits per period, of which at most burst are
// in store, as if by a new configuration; MaxWait stays. What was in store
// remains, if the new burst has room for it. Those who wait are planned anew, in
// their order: who is due now goes on at once, and who would have to wait for
// longer than it may is refused at once. A burst that is raised by k lets the
// first k of those who wait go on at once.
//
// The errors are [policy.ConfigError] values that name the field; then nothing
// has changed. It is safe for concurrent use with everything.
func (p *Policy) SetRate(n int, period time.Duration, burst int) error {
	return p.change(func(c Config) Config {
		c.Limit, c.Period, c.Burst = n, period, burst
		return c
	}, nil)
}

// Reconfigure puts c in force as [Policy.SetRate] does, for the registry's Reload.
// A rate that was set by SetRate stays if Limit and Period are what they were
// before, and so does a burst if Burst is. Those who wait keep the longest wait
// with which they came.
func (p *Policy) Reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return setting.Named(err, p.id)
	}
	return p.change(func(now Config) Config {
		given, next := p.given, c
		// A number of permits means nothing without its period.
		if c.Limit == given.Limit && c.Period == given.Period {
			next.Limit, next.Period = now.Limit, now.Period
		}
		if c.Burst == given.Burst {
			next.Burst = now.Burst
		}
		return next
	}, func() { p.given = c }) // only now: the clock may have panicked, and c not be in force
}

// answer counts the outcome of a call that need not wait, and returns it. A wait
// of 0 is a permit.
func (p *Policy) answer(ctx context.Context, wait time.Duration) error {
	if p.count(wait) {
		return nil
	}
	p.tell(ctx)
	return &Error{Instance: p.id, Wait: wait}
}

func (p *Policy) count(wait time.Duration) bool {
	if wait == 0 {
		p.admit()
		return true
	}
	p.counts.Line()[rejected].Add(1)
	return false
}

func (p *Policy) admit() { p.counts.Line()[admitted].Add(1) }

// tell publishes a refusal.
func (p *Policy) tell(ctx context.Context) {
	if p.scope.Listening() {
		p.scope.Publish(ctx, Limited{p.scope.Meta(kind, p.id)})
	}
}
