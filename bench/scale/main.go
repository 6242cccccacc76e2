// Command scale measures what waiting costs: many calls at once, for long, or
// none at all. bench/peers measures what a single call costs.
//
// Each part has a flag; -all is all of them. A part prints what it found, and a
// row for each target that it has. -quick takes a tenth of the calls and a
// fraction of the time: good for a look, not for a figure.
//
//	go run . -all                     some minutes
//	go run . -all -quick              under a minute
//	go run . -precision -plots DIR    one part, with its plots
//	go run . -all -append FILE        as Markdown, at the end of a file
//	go run . -all -procs 1            with one core
//
// Two parts look at the wheel itself, from inside: how long a tick takes and how
// many there are is nothing that a program can see from outside. All others are
// a program like any other.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"time"

	"resilience4cata.dev/go/bench"
)

// part is one measurement. In a report its rows stand under its name.
type part struct {
	name, about string
	run         func(*session)
}

var parts = []part{
	{"inflight", "cost of a tick against calls in flight; wheel memory a call", inflight},
	{"stages", "pending stages: heap, and how soon all fail at their common deadline", stages},
	{"rate", "a million calls a second with a long timeout: what stays behind", rate},
	{"arm", "cost of a call against others that are pending", arm},
	{"mixed", "short timeouts beside pending long ones", mixed},
	{"expiry", "all deadlines at one instant", expiry},
	{"burst", "futures started from one goroutine", burst},
	{"rest", "wake-ups and goroutines when nothing is in flight", rest},
	{"precision", "how late timeouts are, beside context.WithTimeout", precision},
	{"snapshot", "reading ten thousand ids while calls go on", snapshot},
	{"cores", "one core and two", cores},
}

func main() {
	all := flag.Bool("all", false, "run all parts")
	quick := flag.Bool("quick", false, "a tenth of the calls, a fraction of the time")
	procs := flag.Int("procs", 0, "set GOMAXPROCS; 0: leave it")
	plots := flag.String("plots", "", "write the plots into this folder, as SVG")
	appendTo := flag.String("append", "", "append the results to this file, as Markdown")
	reasons := flag.String("reasons", "../reasons.txt", "why rows miss their target")
	profile := flag.String("cpuprofile", "", "write a CPU profile of all that runs to this file")
	chosen := make([]*bool, len(parts))
	for i, p := range parts {
		chosen[i] = flag.Bool(p.name, false, p.about)
	}
	flag.Parse()
	if !*all && !slices.ContainsFunc(chosen, func(c *bool) bool { return *c }) {
		flag.Usage()
		os.Exit(2)
	}
	if *procs > 0 {
		runtime.GOMAXPROCS(*procs)
	}

	if *profile != "" {
		f := must(os.Create(*profile))
		must(0, pprof.StartCPUProfile(f))
	}

	s := &session{size: full, plots: *plots, out: os.Stdout}
	if *quick {
		s.size = short
	}
	for i, p := range parts {
		if *all || *chosen[i] {
			s.part(p)
		}
	}
	pprof.StopCPUProfile()
	if err := s.finish(*appendTo, *reasons); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// size is how much of everything.
type size struct {
	calls   int           // "a million"
	ids     int           // "ten thousand"
	many    int           // "200,000" futures
	span    time.Duration // a measurement of a state
	settle  time.Duration // before it: a wheel that ticks each millisecond has seen all its entries after four seconds
	rate    time.Duration // how long calls come at the rate
	samples int           // for precision, of each kind
	repeats int
}

var (
	full  = size{calls: 1_000_000, ids: 10_000, many: 200_000, span: 5 * time.Second, settle: 5 * time.Second, rate: 10 * time.Second, samples: 400, repeats: 7}
	short = size{calls: 100_000, ids: 10_000, many: 200_000, span: 500 * time.Millisecond, settle: 2 * time.Second, rate: time.Second, samples: 40, repeats: 3}
)

// part runs p with a clean heap.
func (s *session) part(p part) {
	runtime.GC()
	debug.FreeOSMemory()
	s.current = p.name
	s.printf("\n== %s: %s\n", p.name, p.about)
	m := begin()
	p.run(s)
	s.printf("in all: %v\n", m.end())
}

func (s *session) finish(appendTo, reasons string) error {
	s.table()
	if s.err != nil || appendTo == "" {
		return s.err
	}
	r, err := bench.ReadReasons(reasons)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(appendTo, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // a document of the repository
	if err != nil {
		return err
	}
	if err := s.markdown(f, r); err != nil {
		f.Close() //nolint:errcheck // the first error counts
		return err
	}
	return f.Close()
}
