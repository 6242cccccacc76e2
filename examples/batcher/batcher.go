package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
)

// flushFunc answers many keys in one request. The answers are in the order of
// the keys.
type flushFunc func(ctx context.Context, keys []string) ([]string, error)

// batcher turns lookups of one key each into requests for many. A batch leaves
// when it is full or when its first key has lingered long enough. Methods are
// safe for concurrent use.
type batcher struct {
	clk    clock.Clock
	flush  flushFunc
	size   int
	linger time.Duration
	ctx    context.Context //nolint:containedctx // that of all flushes, which belong to no single caller
	stop   context.CancelFunc

	mu      sync.Mutex
	waiting []*lookup
	timer   clock.Timer // runs while something waits
	flights sync.WaitGroup
}

// lookup is one key that somebody waits for.
type lookup struct {
	key     string
	promise *pipeline.Promise[string]
}

func newBatcher(clk clock.Clock, size int, linger time.Duration, flush flushFunc) *batcher {
	ctx, stop := context.WithCancel(context.Background())
	return &batcher{clk: clk, flush: flush, size: size, linger: linger, ctx: ctx, stop: stop}
}

// lookup adds key to the batch and returns at once. It is the function that
// callers hand to ExecuteFuture.
func (b *batcher) lookup(key string) *pipeline.Future[string] {
	l := &lookup{key, pipeline.NewPromise[string]()}
	// Nobody waits any more: a key that has not left yet need not leave at all.
	l.promise.OnCancel(func() { b.forget(l) })

	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, l)
	switch {
	case len(b.waiting) >= b.size:
		b.send()
	case len(b.waiting) == 1:
		b.timer = b.clk.AfterFunc(b.linger, b.sendWaiting)
	}
	return l.promise.Future()
}

// forget takes a lookup out of the batch. One that has left already is answered
// in vain.
func (b *batcher) forget(l *lookup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(w *lookup) bool { return w == l })
	if len(b.waiting) == 0 && b.timer != nil {
		b.timer.Stop()
	}
}

// sendWaiting sends a batch that has lingered long enough. A timer that could not
// be stopped any more sends a younger batch too soon, which does no harm.
func (b *batcher) sendWaiting() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.send()
}

// send starts a flight with all that waits; b.mu is held.
func (b *batcher) send() {
	if b.timer != nil {
		b.timer.Stop()
	}
	batch := b.waiting
	b.waiting = nil
	if len(batch) > 0 {
		b.flights.Go(func() { b.fly(batch) })
	}
}

// fly asks for a batch and completes its futures. Complete reports false for
// those that were given up meanwhile, and that is all there is to do about them.
func (b *batcher) fly(batch []*lookup) {
	keys := make([]string, len(batch))
	for i, l := range batch {
		keys[i] = l.key
	}
	values, err := b.flush(b.ctx, keys)
	for i, l := range batch {
		if err != nil {
			l.promise.Complete("", err)
			continue
		}
		l.promise.Complete(values[i], nil)
	}
}

// close sends what waits, and returns when no flight is left; those that are
// still out when ctx ends are asked to stop.
func (b *batcher) close(ctx context.Context) {
	b.sendWaiting()
	defer context.AfterFunc(ctx, b.stop)()
	b.flights.Wait()
	b.stop()
}
