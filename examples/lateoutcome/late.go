package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// errStopped is how a task ends that saw in time that nobody waits any more.
var errStopped = errors.New("cooperatively-cancelled")

// timeline notes events in the order in which they happen.
type timeline struct {
	mu     sync.Mutex
	events []string
}

func (t *timeline) note(event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event)
}

// order returns the events so far.
func (t *timeline) order() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.events)
}

// lab is one registry with one pipeline that has a timeout and nothing else.
type lab struct {
	reg   *registry.Registry
	tasks *pipeline.Pipeline[string]
}

func newLab(opts ...registry.Option) (*lab, error) {
	reg, err := registry.New(opts...)
	if err != nil {
		return nil, err
	}
	tasks, err := pipeline.New[string](reg, "tasks").Timeout(limit).Build()
	return &lab{reg, tasks}, err
}

// behindGate runs a task that enters a worker, waits at a gate, and calls rest
// when the gate has opened, which it does after the caller got its timeout.
func (l *lab) behindGate(ctx context.Context, t *timeline, rest func(context.Context) (string, error)) gated {
	entered, gate, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	future := l.tasks.ExecuteAsync(ctx, func(ctx context.Context) (string, error) {
		defer close(left)
		t.note("entered")
		close(entered)
		<-gate // whatever becomes of ctx
		return rest(ctx)
	})

	var g gated
	within(ctx, entered)
	g.caller = outcome(future.Get(ctx))
	t.note("timeout")
	_, g.doneAtTimeout, _ = future.Work().Poll()
	g.abandoned = l.reg.Snapshot().Pipelines[0].Abandoned.Running

	t.note("release")
	close(gate)
	g.terminated = within(ctx, left) && within(ctx, future.Work().Done())
	v, _, err := future.Work().Poll()
	g.work = outcome(v, err)
	return g
}

// gated is what the two sides of such a task saw.
type gated struct {
	caller        string
	doneAtTimeout bool
	abandoned     int64
	work          string
	terminated    bool
}

// within reports whether the event came before ctx ended: the lab has a bounded
// end whatever happens.
func within(ctx context.Context, event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	case <-ctx.Done():
		return false
	}
}

// late is the first scene: a task that knows nothing of timeouts.
func late(ctx context.Context, r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	var t timeline
	g := l.behindGate(ctx, &t, func(context.Context) (string, error) {
		t.note("late-success")
		return "late-success", nil
	})
	r.TimeoutOutcome, r.OriginalDoneAtTimeout, r.AbandonedAtTimeout = g.caller, g.doneAtTimeout, g.abandoned
	r.LateOutcome, r.WorkerTerminated, r.Order = g.work, g.terminated, t.order()
	return l.reg.Drain(ctx) // nothing is in flight and nothing abandoned any more
}

// cooperative has a point at which the task asks whether anybody still waits,
// before its effect. In a real task there is a window between the question and
// the effect: only a transaction, or a key that makes the effect idempotent,
// closes it.
func cooperative(ctx context.Context, r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	var effects atomic.Int64
	g := l.behindGate(ctx, &timeline{}, func(ctx context.Context) (string, error) {
		if ctx.Err() != nil {
			return "", errStopped
		}
		effects.Add(1)
		return "done", nil
	})
	r.CooperativeTimeoutOutcome, r.CooperativeTerminal, r.CooperativeSideEffects = g.caller, g.work, effects.Load()
	return l.reg.Drain(ctx)
}

// checkBehindEffect moves the question behind the effect: the task ends as
// before, and its effect has happened.
func checkBehindEffect(ctx context.Context, r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	var effects atomic.Int64
	g := l.behindGate(ctx, &timeline{}, func(ctx context.Context) (string, error) {
		effects.Add(1)
		if ctx.Err() != nil {
			return "", errStopped
		}
		return "done", nil
	})
	r.CheckBehindEffect.Terminal, r.CheckBehindEffect.SideEffects = g.work, effects.Load()
	return l.reg.Drain(ctx)
}
