package testkit

import (
	"bytes"
	"regexp"
	"runtime"
	"testing"
)

var bubbleName = regexp.MustCompile(`synctest bubble \d+\b`)

// Goroutines counts those of the synctest bubble that the caller is in, the
// caller included. [runtime.NumGoroutine] counts those of the process: some of an
// earlier test may end meanwhile, and one of the runtime that runs a finalizer may
// come, so that it can't be compared before and after.
func Goroutines(tb testing.TB) int {
	tb.Helper()
	own, all := trace(false), trace(true)
	name := bubbleName.Find(firstLine(own))
	if name == nil {
		tb.Fatal("not in a synctest bubble")
	}
	n := 0
	for one := range bytes.SplitSeq(all, []byte("\n\n")) {
		if bytes.Equal(bubbleName.Find(firstLine(one)), name) {
			n++
		}
	}
	return n
}

func firstLine(trace []byte) []byte {
	line, _, _ := bytes.Cut(trace, []byte{'\n'})
	return line
}

// trace is that of the caller's goroutine, or of all.
func trace(all bool) []byte {
	b := make([]byte, 1<<16)
	for {
		if n := runtime.Stack(b, all); n < len(b) {
			return b[:n]
		}
		b = make([]byte, 2*len(b))
	}
}
