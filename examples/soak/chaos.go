package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/registry/config"
)

// deedsOfChaos counts what was done to a round.
type deedsOfChaos struct{ reloads, refused, limits, turns, events atomic.Int64 }

// every calls f at random intervals around d, until ctx ends.
func every(ctx context.Context, rnd *rand.Rand, d time.Duration, f func()) {
	for {
		select {
		case <-time.After(d/2 + time.Duration(rnd.Int64N(int64(d)))):
			f()
		case <-ctx.Done():
			return
		}
	}
}

// setting marks a change of the settings for those who compare two snapshots.
func (r *round) setting(change func()) {
	r.begun.Add(1)
	change()
	r.ended.Add(1)
}

// changeSettings reloads, now and then with a file that has a mistake.
func (r *round) changeSettings(ctx context.Context) {
	rnd := r.rand(1)
	every(ctx, rnd, r.plan.reload, func() {
		cfg, err := settings(rnd)
		if err != nil {
			r.broken.report("settings: %v", err)
			return
		}
		r.rates.Add(1)
		r.setting(func() { err = r.reg.Reload(cfg) })
		if err != nil && !r.reg.Snapshot().Closed {
			r.broken.report("Reload: %v", err)
		}
		r.did.reloads.Add(1)

		// Another layer for a built pipeline cannot be, and changes nothing.
		bad, err := config.Parse("bad.yaml", []byte("instances: {whole: {timeout: {value: 1ns}}, plain: {retry: {}}}"))
		if err != nil {
			r.broken.report("settings: %v", err)
			return
		}
		if r.reg.Reload(bad) == nil {
			r.broken.report("Reload accepted a file that takes layers away")
		}
		r.did.refused.Add(1)
		if len(r.reg.Explain("whole")) == 0 {
			r.broken.report("Explain says nothing")
		}
		r.reg.Check()
	})
}

// changeLimits uses the handles.
func (r *round) changeLimits(ctx context.Context) {
	rnd := r.rand(2)
	slots := make([]*bulkhead.Policy, 2)
	slots[0], _ = r.reg.Bulkhead("whole")
	slots[1], _ = r.reg.Bulkhead("pool")
	limiter, _ := r.reg.RateLimiter("backend")
	open, reset := func() {}, func() {} // switched off from the start
	if breaker, ok := r.reg.CircuitBreaker("whole"); ok {
		open, reset = breaker.ForceOpen, breaker.Reset
	}
	every(ctx, rnd, 30*time.Millisecond, func() {
		b := slots[rnd.IntN(len(slots))]
		var err error
		switch rnd.IntN(5) {
		case 0: // nobody in, for a moment
			r.setting(func() { err = b.SetLimit(0) })
			time.Sleep(5 * time.Millisecond)
			fallthrough
		case 1, 2:
			limit := 1 + rnd.IntN(mostAtOnce)
			r.setting(func() { err = errors.Join(err, b.SetLimit(limit)) })
		case 3:
			r.rates.Add(1)
			r.setting(func() { err = limiter.SetRate(1+rnd.IntN(mostPerSecond), time.Second, 1+rnd.IntN(mostBurst)) })
		default:
			open()
			time.Sleep(5 * time.Millisecond)
			reset()
		}
		if err != nil {
			r.broken.report("a limit was refused: %v", err)
		}
		r.did.limits.Add(1)
	})
}

// changeWeather turns the dependency, and leaves it quick.
func (r *round) changeWeather(ctx context.Context) {
	rnd := r.rand(3)
	every(ctx, rnd, 150*time.Millisecond, func() {
		m := mode(rnd.IntN(int(modes)))
		if rnd.IntN(2) == 0 {
			m = quick
		}
		if err := r.dep.turn(m); err != nil {
			r.broken.report("the dependency cannot turn %v: %v", m, err)
		}
		r.did.turns.Add(1)
	})
	if err := r.dep.turn(quick); err != nil {
		r.broken.report("the dependency cannot turn quick: %v", err)
	}
}

// listen hears all events, and calls back.
func (r *round) listen(_ context.Context, e policy.Event) {
	if p, ok := e.(policy.CallbackPanic); ok {
		r.broken.report("a callback panicked: %v\n%s", p.Value, p.Stack)
	}
	if r.did.events.Add(1)%1000 == 0 {
		r.reg.Snapshot()
	}
}
