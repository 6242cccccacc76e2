package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
)

// errBackend is in every error that a protected function returns.
var errBackend = errors.New("backend")

// boom is what protected functions panic with.
type boom struct{}

func (boom) Error() string { return "boom" }

// deed is what a protected function does in one attempt.
type deed int

const (
	ask       deed = iota // one request, with the attempt's context
	askDeaf               // one request that no deadline ends
	answer                // a value at once
	fail                  // an error at once
	failGood              // an error that may not be retried
	explode               // a panic
	leave                 // runtime.Goexit
	dally                 // a value, soon, whatever the context says
	wrongDeed             // a nil stage, or no value
)

// deeds is a table to draw from.
var deeds = [...]deed{
	ask, ask, ask, ask, ask, ask, ask, ask, ask, ask, ask, ask, askDeaf, answer, answer, answer, fail, fail,
	failGood, explode, leave, dally, dally, wrongDeed,
}

// call is one call of one form.
type call struct {
	r       *round
	line    *line
	deeds   [mostRetries]deed
	delay   time.Duration // for dally
	entered atomic.Int32  // attempts
	running atomic.Int32
}

// caller makes calls, one after the other, until the registry is closed.
type caller struct {
	r   *round
	rnd *rand.Rand
}

func (c *caller) loop() {
	for {
		line := c.r.lines[c.rnd.IntN(len(c.r.lines))]
		call := &call{r: c.r, line: line, delay: time.Duration(c.rnd.IntN(100)) * time.Millisecond}
		for i := range call.deeds {
			call.deeds[i] = deeds[c.rnd.IntN(len(deeds))]
		}
		if c.rnd.IntN(3) == 0 {
			call.deeds[0] = answer
		}
		ctx, cancel := c.context()
		line.started.Add(1)
		var closed bool
		switch c.rnd.IntN(3) {
		case 0:
			closed = call.sync(ctx)
		case 1:
			closed = c.await(ctx, call, line.pipeline.ExecuteAsync(ctx, call.attempt))
		default:
			if f := call.future(ctx); f != nil {
				closed = c.await(ctx, call, f)
			}
		}
		cancel()
		if closed {
			return
		}
		time.Sleep(time.Duration(c.rnd.IntN(50)) * time.Millisecond)
	}
}

// context is that of one call: most have no end of their own.
func (c *caller) context() (context.Context, context.CancelFunc) {
	some := time.Duration(c.rnd.IntN(100)) * time.Millisecond
	ctx, cancel := context.WithCancel(c.r.ctx)
	switch c.rnd.IntN(20) {
	case 0:
		cancel()
	case 1, 2:
		stop := time.AfterFunc(some, cancel)
		return ctx, func() { stop.Stop(); cancel() }
	case 3, 4:
		timed, stop := context.WithTimeout(ctx, some)
		return timed, func() { stop(); cancel() }
	}
	return ctx, cancel
}

// attempt is the protected function of Execute and ExecuteAsync.
func (c *call) attempt(ctx context.Context) (*item, error) {
	c.enter(ctx)
	defer c.running.Add(-1)
	if c.line.pooled {
		c.r.inPool.enter()
		defer c.r.inPool.leave()
	}
	return c.do(ctx, c.deed(ctx))
}

func (c *call) enter(ctx context.Context) {
	c.entered.Add(1)
	c.running.Add(1)
	if n := retry.Attempt(ctx); n < 0 || n > mostRetries {
		c.r.broken.report("%s: attempt %d, and there are %d at most", c.line.id, n, mostRetries)
	}
}

func (c *call) deed(ctx context.Context) deed { return c.deeds[max(0, retry.Attempt(ctx)-1)] }

// do is the work of an attempt. Where it returns no error there is an item.
func (c *call) do(ctx context.Context, d deed) (*item, error) {
	var err error
	switch d {
	case ask:
		err = c.r.dep.get(ctx)
	case askDeaf:
		err = c.r.dep.get(context.WithoutCancel(ctx))
	case dally:
		time.Sleep(c.delay)
	case fail, wrongDeed:
		err = errors.New("failed")
	case failGood:
		err = retry.Permanent(errors.New("failed for good"))
	case explode:
		panic(boom{})
	case leave:
		runtime.Goexit()
	case answer:
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBackend, err)
	}
	return c.r.ledger.produce(), nil
}

// stage is the function of ExecuteFuture. The work has a goroutine, as it would
// have a broker or an event loop; panic and Goexit are the function's own.
func (c *call) stage(ctx context.Context) *pipeline.Future[*item] {
	c.enter(ctx)
	defer c.running.Add(-1)
	d := c.deed(ctx)
	switch d {
	case explode, leave:
		_, _ = c.do(ctx, d)
	case wrongDeed:
		return nil
	default:
	}
	p := pipeline.NewPromise[*item]()
	ctx, cancel := context.WithCancel(ctx)
	var told atomic.Int32
	p.OnCancel(func() {
		if told.Add(1) > 1 {
			c.r.broken.report("%s: OnCancel was called twice", c.line.id)
		}
		cancel()
	})
	if d == answer { // complete on return
		c.complete(p, c.r.ledger.produce(), nil)
		cancel()
		return p.Future()
	}
	c.r.work.Go(func() {
		defer cancel()
		it, err := c.do(ctx, d)
		c.complete(p, it, err)
	})
	return p.Future()
}

// complete gives the outcome to the promise. What it does not take stays ours.
func (c *call) complete(p *pipeline.Promise[*item], it *item, err error) {
	if !p.Complete(it, err) && err == nil {
		c.r.ledger.end(it, kept)
	}
}

// sync calls Execute on a goroutine that panic and Goexit may end.
func (c *call) sync(ctx context.Context) (closed bool) {
	var v *item
	var err error
	how := "left"
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				how = "panicked"
				if _, ours := p.(boom); !ours {
					c.r.broken.report("%s: panic: %v", c.line.id, p)
				}
			}
		}()
		v, err = c.line.pipeline.Execute(ctx, c.attempt)
		how = "returned"
	}()
	<-done
	if n := c.running.Load(); n != 0 {
		c.r.broken.report("%s: Execute has %s, and its function runs still", c.line.id, how)
	}
	if how != "returned" {
		c.line.panicked.Add(1)
		return false
	}
	if policy.Started(err) && c.entered.Load() == 0 && !errors.Is(err, errBackend) {
		c.r.broken.report("%s: never entered, and the error says so: %v", c.line.id, err)
	}
	return c.ended(v, err)
}

// future calls ExecuteFuture, which calls the stage's function on this goroutine:
// if that one calls Goexit, there is nobody left to have a future.
func (c *call) future(ctx context.Context) (f *pipeline.Future[*item]) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f = c.line.pipeline.ExecuteFuture(ctx, c.stage)
	}()
	<-done
	if f == nil {
		c.line.unseen.Add(1)
	}
	return f
}

// await is what a caller does with a future: it waits, gives up waiting, cancels,
// or looks at it through a view.
func (c *caller) await(ctx context.Context, call *call, f *pipeline.Future[*item]) (closed bool) {
	c.r.futures.Add(1)
	f.OnComplete(func(v *item, err error) { // always, whatever else happens to it
		defer c.r.futures.Done()
		call.ended(v, err)
		<-f.Work().Done()
		call.checkStarted(err) // nothing can enter any more
	})
	some := time.Duration(c.rnd.IntN(100)) * time.Millisecond
	switch c.rnd.IntN(6) {
	case 0: // gives up waiting; the call goes on
		short, cancel := context.WithTimeout(ctx, some)
		defer cancel()
		_, err := f.Get(short)
		return errors.Is(err, registry.ErrClosed)
	case 1:
		c.r.pause(some)
		if f.Cancel() {
			if _, err := f.Get(context.WithoutCancel(ctx)); !errors.Is(err, context.Canceled) {
				c.r.broken.report("%s: after Cancel: %v", call.line.id, err)
			}
		}
	case 2: // a view that ends early does not end the call
		view := f.View()
		if view.Cancel() && f.Work().CancelRequested() {
			// Something else may have: then the future itself has ended, or does so now.
			select {
			case <-f.Done():
			case <-time.After(patience):
				c.r.broken.report("%s: the end of a view reached the work", call.line.id)
			}
		}
	}
	v, err := f.Get(context.WithoutCancel(ctx))
	if again, done, other := f.Poll(); !done || again != v || !errors.Is(other, err) {
		c.r.broken.report("%s: Get gave %v, Poll %v (%t)", call.line.id, err, other, done)
	}
	return errors.Is(err, registry.ErrClosed)
}

// ended checks and counts the outcome that a caller saw.
func (c *call) ended(v *item, err error) (closed bool) {
	var own policy.Error
	closed = errors.Is(err, registry.ErrClosed)
	switch {
	case err == nil:
		c.line.succeeded.Add(1)
		c.r.ledger.end(v, delivered)
		return false
	case hasPanicked(err):
		c.line.panicked.Add(1)
	case closed, errors.As(err, &own), errors.Is(err, errBackend), errors.Is(err, pipeline.ErrNilStage),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	default:
		c.r.broken.report("%s: an error from nowhere: %v", c.line.id, err)
	}
	if v != nil {
		c.r.broken.report("%s: a value beside the error %v", c.line.id, err)
	}
	c.checkStarted(err)
	return closed
}

// hasPanicked tells a call that a panic or Goexit has ended from one that had been
// ended by its caller when they came: there they are the last error of a retry.
func hasPanicked(err error) bool {
	var p *pipeline.PanicError
	var stopped *retry.Error
	return (errors.As(err, &p) || errors.Is(err, pipeline.ErrGoexit)) && !errors.As(err, &stopped)
}

func (c *call) checkStarted(err error) {
	if n := c.entered.Load(); n > 0 && policy.NotStarted(err) {
		c.r.broken.report("%s: entered %d times, and the error denies it: %v", c.line.id, n, err)
	}
}
