package main

import "sync/atomic"

// item is a value that belongs to somebody at any time, as a connection does.
type item struct{ fate atomic.Int32 }

// The ways in which an item ends.
const (
	open      int32 = iota // still on its way
	delivered              // a caller got it
	discarded              // OnDiscard got it
	kept                   // its producer kept it, since nobody took it
)

var fateNames = [...]string{open: "open", delivered: "delivered", discarded: "discarded", kept: "kept"}

// ledger accounts for all items: each one ends once.
type ledger struct {
	broken   *broken
	made     atomic.Int64
	ends     [len(fateNames)]atomic.Int64
	fallback item // what the fallback gives: always the same, and not accounted for
}

func (l *ledger) produce() *item {
	l.made.Add(1)
	return new(item)
}

// end notes how an item ended.
func (l *ledger) end(it *item, how int32) {
	switch {
	case it == &l.fallback:
	case it == nil:
		l.broken.report("a value that is none was %s", fateNames[how])
	case it.fate.CompareAndSwap(open, how):
		l.ends[how].Add(1)
	default:
		l.broken.report("a value was %s and then %s", fateNames[it.fate.Load()], fateNames[how])
	}
}

// check is for the end, when nothing is on its way any more.
func (l *ledger) check() {
	ended := l.ends[delivered].Load() + l.ends[discarded].Load() + l.ends[kept].Load()
	if made := l.made.Load(); made != ended {
		l.broken.report("%d values were made, and %d delivered + %d discarded + %d kept",
			made, l.ends[delivered].Load(), l.ends[discarded].Load(), l.ends[kept].Load())
	}
}
