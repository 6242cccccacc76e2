// Soak tries to break the library. Hundreds of callers go through pipelines with
// all layers, in all three forms, to a real HTTP server on loopback that turns
// slow, stuck, refusing and resetting. Callers cancel, panic, call Goexit and leave
// their futures alone; limits, rates and the whole configuration change all the
// time; and each round ends in the middle of that, by Drain or by Close.
//
// Meanwhile it checks what has to hold at any moment:
//
//   - every snapshot, taken a hundred times a second, is consistent in itself and
//     with the one before (watch.go);
//   - every call ends once, with an outcome that fits what its function did, and
//     the registry counts exactly what the callers saw (caller.go, round.go);
//   - no value is lost and none is handed out twice: it is delivered, or given to
//     OnDiscard, or was never accepted (ledger.go);
//   - after a round nothing is in use, waiting, pending or abandoned, and in the
//     end the goroutines and the heap are back at where they were.
//
// Run it with
//
//	go run ./examples/soak -for 60s
//
// It prints what it did and every broken invariant, and exits with 1 if there is
// one. A seed repeats the choices, not the schedule.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"time"
)

// plan is how long and how hard.
type plan struct {
	length  time.Duration // of all rounds together
	callers int
	reload  time.Duration // from one reload to the next
	seed    uint64
}

func main() {
	var p plan
	flag.DurationVar(&p.length, "for", time.Minute, "how long")
	flag.IntVar(&p.callers, "callers", 500, "how many callers at once")
	flag.DurationVar(&p.reload, "reload", time.Second, "time between two reloads")
	flag.Uint64Var(&p.seed, "seed", uint64(time.Now().UnixNano()), "seed of all choices")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, p); err != nil {
		log.Fatal(err)
	}
}

// rounds is how often a registry is made, used and ended in one run.
const rounds = 6

var errBroken = errors.New("soak: invariants are broken")

// run is the whole program, for its test as well. It returns errBroken if an
// invariant is.
func run(ctx context.Context, out io.Writer, p plan) error {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	before := measure()
	say("soak: %v, %d callers, a reload each %v, seed %d", p.length, p.callers, p.reload, p.seed)

	b := new(broken)
	if err := soak(ctx, say, p, b); err != nil {
		sayBroken(say, b)
		return err
	}

	after := settle(before)
	say("goroutines: %d before, %d after; heap: %d KiB before, %d KiB after",
		before.goroutines, after.goroutines, before.heap>>10, after.heap>>10)
	if after.goroutines > before.goroutines {
		b.report("%d goroutines are left:\n%s", after.goroutines-before.goroutines, stacks())
	}
	if after.heap > before.heap+heapSlack {
		b.report("the heap grew from %d KiB to %d KiB", before.heap>>10, after.heap>>10)
	}

	sayBroken(say, b)
	if b.count() > 0 {
		return errBroken
	}
	return nil
}

func sayBroken(say func(string, ...any), b *broken) {
	for _, text := range b.texts() {
		say("BROKEN: %s", text)
	}
	say("broken invariants: %d", b.count())
}

func soak(ctx context.Context, say func(string, ...any), p plan, b *broken) error {
	dep, err := startDependency()
	if err != nil {
		return err
	}
	defer dep.close()
	for n := range rounds {
		r, err := newRound(p, uint64(n), dep, b)
		if err != nil {
			return err
		}
		if err := r.run(ctx, p.length/rounds); err != nil {
			return err
		}
		say("round %d, ended by %s: %s", n+1, r.endName(), r.summary())
	}
	return nil
}

// heapSlack is what the runtime and the HTTP client may keep for themselves.
const heapSlack = 4 << 20

// size is what a process holds.
type size struct {
	goroutines int
	heap       uint64 // bytes of live objects
}

func measure() size {
	runtime.GC()
	runtime.GC() // the second one frees what sync.Pool kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size{runtime.NumGoroutine(), m.HeapAlloc}
}

// settle measures until it is no more than it was: a closed connection's
// goroutines need a moment.
func settle(before size) size {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		after := measure()
		if after.goroutines <= before.goroutines && after.heap <= before.heap+heapSlack || time.Now().After(end) {
			return after
		}
	}
}

// stacks is what all goroutines are at.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
