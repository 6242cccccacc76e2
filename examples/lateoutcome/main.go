// Lateoutcome shows that "the caller stopped waiting" and "the work ended" are
// two events. A task enters a worker and waits at a gate; its caller gets a
// timeout after 100 ms; the gate opens; the task succeeds all the same. Whoever
// took the timeout for proof that nothing happened would be wrong.
//
// The other scenes vary that: a task that asks, before its effect, whether
// anybody still waits; the same with the question behind the effect; one task
// that two callers wait for; and retries, each attempt of which starts anew.
//
//	go run ./examples/lateoutcome
//
// prints one JSON object. Its numbers follow from the order of events, which
// gates enforce, and never from how long something took: 100 ms is a setting and
// not a promise of the scheduler. The program ends within five seconds.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os"
	"time"
)

// limit is the timeout of every scene.
const limit = 100 * time.Millisecond

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run is the whole program, for its test as well.
func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	var r report
	for _, scene := range []func(context.Context, *report) error{
		late, cooperative, checkBehindEffect, wrappedTwice, wrappedViews, retries,
	} {
		if err := scene(ctx, &r); err != nil {
			return err
		}
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
