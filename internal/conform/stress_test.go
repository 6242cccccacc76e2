package conform_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

var (
	callsFlag = flag.Int("calls", 0, "calls of the stress program; 0: what takes some seconds")
	seedFlag  = flag.Uint64("seed", 0, "of the stress program's choices; 0: a new one")
)

const (
	callsARound = 4_000 // then the registry is drained or closed, and a new one made
	workers     = 16
	stacks      = 12
)

// Random layers, forms, outcomes, cancels and new limits, on the system's clock
// and its wheel; a snapshot all the time; at the end of each round Drain, or Close
// in the middle of the traffic.
func TestStress(t *testing.T) {
	calls := *callsFlag
	if calls == 0 {
		calls = 3 * callsARound
		if raceEnabled || testing.Short() {
			calls = callsARound
		}
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-calls %d -seed %d", calls, seed)
	var sum registry.CallCounts
	for round := 0; calls > 0 && !t.Failed(); round++ {
		n := min(calls, callsARound)
		calls -= n
		s := newStress(t, rand.New(rand.NewPCG(seed, uint64(round))))
		s.run(n, round%3 == 2)
		for _, p := range s.reg.Snapshot().Pipelines {
			c := p.Calls
			sum.Started += c.Started
			sum.Succeeded += c.Succeeded
			sum.Failed += c.Failed
			sum.TimedOut += c.TimedOut
			sum.Cancelled += c.Cancelled
			sum.Rejected += c.Rejected
			sum.Panicked += c.Panicked
		}
	}
	t.Logf("%+v", sum)
}

// stress is one round: a registry, its pipelines, and the account of all calls.
type stress struct {
	*testing.T
	rng   *rand.Rand // for the stacks; each worker has its own
	reg   *registry.Registry
	pipes []*stressed
	clk   clock.Clock
	late  sync.WaitGroup // completions of stages that are to come
	stop  chan struct{}  // ends those who watch and disturb

	patience context.Context // it ends when the round takes too long
}

// stressed is one pipeline and what its callers have seen.
type stressed struct {
	p                                                          *pipeline.Pipeline[int]
	plain                                                      bool // it counts nothing, and has no hook
	calls, succeeded, panicked, produced, delivered, discarded atomic.Int64
}

func newStress(t *testing.T, rng *rand.Rand) *stress {
	t.Helper()
	reg, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	s := &stress{T: t, rng: rng, reg: reg, clk: clock.System(), stop: make(chan struct{})}
	for i := range stacks {
		s.pipes = append(s.pipes, s.build(string(rune('a'+i)), layers(rng.IntN(int(allLayers)+1))))
	}
	return s
}

// build makes a pipeline with random settings. Half of the limits are shared.
func (s *stress) build(id string, set layers) *stressed {
	s.Helper()
	p := &stressed{plain: set == noLayers}
	b := pipeline.New[int](s.reg, id)
	if !p.plain {
		b.OnDiscard(func(v int) {
			if v > 0 {
				p.discarded.Add(1)
			}
		})
	}
	if set.has(fallbackLayer) {
		b.Fallback(func(context.Context, error) (int, error) {
			if rand.IntN(2) == 0 {
				return 0, errFallback
			}
			return fromFallback, nil
		})
	}
	if set.has(retryLayer) {
		opts := []retry.Option{retry.MaxAttempts(1 + s.rng.IntN(3)), retry.Constant(time.Duration(s.rng.IntN(300)) * time.Microsecond), retry.FullJitter()}
		if s.rng.IntN(2) == 0 {
			opts = append(opts, retry.MaxDuration(time.Duration(1+s.rng.IntN(5))*time.Millisecond))
		}
		if s.rng.IntN(2) == 0 {
			opts = append(opts, retry.Budget(.5, 100))
		}
		b.Retry(opts...)
		if s.rng.IntN(3) == 0 {
			b.RetryIf(func(v int, err error) bool { return err != nil || v%5 == 1 })
		}
	}
	if set.has(breakerLayer) {
		b.CircuitBreaker(circuitbreaker.MinCalls(10), circuitbreaker.CountWindow(20), circuitbreaker.OpenFor(time.Duration(s.rng.IntN(2000))*time.Microsecond),
			circuitbreaker.HalfOpenCalls(1+s.rng.IntN(3)), circuitbreaker.FailureRatio(.7))
	}
	if set.has(limiterLayer) {
		name := id
		if s.rng.IntN(2) == 0 {
			name = "shared"
		}
		b.RateLimit(ratelimit.Per(20, time.Millisecond), ratelimit.MaxWait(time.Duration(s.rng.IntN(3))*time.Millisecond), ratelimit.Name(name))
	}
	if set.has(timeoutLayer) {
		b.Timeout(time.Duration(500+s.rng.IntN(4000)) * time.Microsecond)
	}
	if set.has(bulkheadLayer) {
		opts := []bulkhead.Option{bulkhead.MaxConcurrent(4), bulkhead.Queue(8), bulkhead.Name("shared"), bulkhead.MaxWait(3 * time.Millisecond)}
		if s.rng.IntN(2) == 0 {
			opts = []bulkhead.Option{bulkhead.MaxConcurrent(1 + s.rng.IntN(4)), bulkhead.MaxWait(time.Duration(s.rng.IntN(3)) * time.Millisecond)}
		}
		if s.rng.IntN(4) == 0 {
			opts = append(opts, bulkhead.FreeOnTimeout())
		}
		b.Bulkhead(opts...)
	}
	var err error
	if p.p, err = b.Build(); err != nil {
		s.Fatal(err)
	}
	return p
}

// run makes n calls, and ends with Drain, or with Close before the calls are
// over.
func (s *stress) run(n int, closes bool) {
	s.Helper()
	var impatient context.CancelFunc
	s.patience, impatient = context.WithCancel(context.Background())
	defer impatient()
	defer s.clk.AfterFunc(5*time.Minute, impatient).Stop()
	var watching, working sync.WaitGroup
	watching.Go(s.watch)
	disturber := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
	watching.Go(func() { s.disturb(disturber) })
	var left atomic.Int64
	left.Store(int64(n))
	for range workers {
		w := &worker{stress: s, rng: rand.New(rand.NewPCG(s.rng.Uint64(), 0))}
		working.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				w.call()
				if closes && i == int64(n/4) {
					if err := s.reg.Close(); err != nil {
						s.Error(err)
					}
				}
			}
			w.settle()
		})
	}
	working.Wait()
	s.late.Wait()
	close(s.stop)
	watching.Wait()
	for _, b := range s.reg.Snapshot().Bulkheads {
		p, _ := s.reg.Bulkhead(b.ID)
		if err := p.SetLimit(4); err != nil {
			s.Error(err)
		}
	}

	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	defer context.AfterFunc(s.patience, cancel)()
	if err := s.reg.Drain(ctx); err != nil {
		s.Fatalf("drain: %v; %+v", err, s.reg.Snapshot().Pipelines)
	}
	s.check()
}

// await waits for what must come; a round is a matter of seconds.
func (s *stress) await(ch <-chan struct{}, what string, p *stressed) {
	select {
	case <-ch:
		return
	case <-s.patience.Done():
	}
	select {
	case <-ch:
	default:
		s.Errorf("%v waits in vain for %s; %+v", p.p, what, s.reg.Snapshot())
	}
}

// check compares what the callers saw with what was counted.
func (s *stress) check() {
	s.Helper()
	checkBalance(s.T, s.reg)
	for i, row := range s.reg.Snapshot().Pipelines {
		p := s.pipes[i] // both are in the order of their ids
		if p.plain {
			continue
		}
		c := row.Calls
		if c.Started != uint64(p.calls.Load()) || c.Succeeded != uint64(p.succeeded.Load()) || c.Panicked != uint64(p.panicked.Load()) {
			s.Errorf("%v: counted %+v; %d calls were made, %d succeeded, %d panicked", p.p, c, p.calls.Load(), p.succeeded.Load(), p.panicked.Load())
		}
		if p.delivered.Load()+p.discarded.Load() != p.produced.Load() {
			s.Errorf("%v: delivered %d + discarded %d ≠ produced %d", p.p, p.delivered.Load(), p.discarded.Load(), p.produced.Load())
		}
	}
}
