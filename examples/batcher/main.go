// Batcher shows futures that somebody else completes. Callers ask for one key
// each, a batcher collects the keys and asks the store for many at once, and one
// answer completes the futures of all. No goroutine belongs to a caller.
//
// In front of it stands a pipeline:
//
//   - ExecuteFuture runs the function that puts a key into the batch, and takes
//     over the future that it returns;
//   - the timeout fails the caller's future, and then OnCancel takes the key out
//     of the batch, if it has not left yet;
//   - the bulkhead bounds how many keys may be under way, which is what keeps a
//     slow store from filling the memory: backpressure.
//
// Run it with
//
//	go run ./examples/batcher
//
// It ends within five seconds. batcher.go is the part to take away.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/timeout"
	"resilience4cata.dev/go/registry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run is the whole program, for its test as well.
func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }

	reg, err := registry.New()
	if err != nil {
		return err
	}
	lookups, err := pipeline.New[string](reg, "lookups").
		Timeout(time.Second).
		Bulkhead(bulkhead.MaxConcurrent(10), bulkhead.Queue(5)).
		Build()
	if err != nil {
		return err
	}
	s := newStore()
	b := newBatcher(clock.System(), 4, 20*time.Millisecond, s.get)
	defer b.close(ctx)

	ask := func(n int) (futures []*pipeline.Future[string]) {
		for i := range n {
			key := fmt.Sprintf("key-%d", i)
			futures = append(futures, lookups.ExecuteFuture(ctx, func(context.Context) *pipeline.Future[string] { return b.lookup(key) }))
		}
		return futures
	}

	say("1. Ten lookups, four keys to a request at most; the last two leave after 20 ms")
	fates := tally(ctx, ask(10))
	say("   %v", fates)
	say("   requests: %d", len(s.served()))

	say("2. The store hangs: callers get their timeout, and the batch goes on without them")
	resume := s.hang()
	futures := ask(4)
	fates = tally(ctx, futures)
	say("   %v", fates)
	resume()
	s.served()

	say("3. Backpressure: the store hangs, ten keys may be under way and five may wait for a slot")
	resume = s.hang()
	futures = ask(30)
	resume()
	fates = tally(ctx, futures)
	say("   %v", fates)

	say("4. What the registry saw of it")
	if err := reg.Drain(ctx); err != nil {
		return err
	}
	snapshot := reg.Snapshot()
	say("   calls: %+v", snapshot.Pipelines[0].Calls)
	say("   slots: %d in use, %d admitted, %d refused", snapshot.Bulkheads[0].InUse, snapshot.Bulkheads[0].Admitted, snapshot.Bulkheads[0].Rejected)
	return nil
}

// fates counts how futures ended.
type fates struct{ answered, timedOut, refused, failed int }

func (f fates) String() string {
	return fmt.Sprintf("%d answered, %d timed out, %d refused, %d failed", f.answered, f.timedOut, f.refused, f.failed)
}

func tally(ctx context.Context, futures []*pipeline.Future[string]) (f fates) {
	for _, future := range futures {
		switch _, err := future.Get(ctx); {
		case err == nil:
			f.answered++
		case errors.Is(err, timeout.ErrExceeded):
			f.timedOut++
		case errors.Is(err, bulkhead.ErrFull):
			f.refused++
		default:
			f.failed++
		}
	}
	return f
}
