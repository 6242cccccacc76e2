package main

import (
	"fmt"
	"slices"
	"sync"
)

// broken collects the invariants that did not hold. The first ones are kept as
// text, the others counted: one mistake may show itself a thousand times.
type broken struct {
	mu   sync.Mutex
	n    int
	kept []string
}

func (b *broken) report(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	if len(b.kept) < 20 {
		b.kept = append(b.kept, fmt.Sprintf(format, args...))
	}
}

func (b *broken) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

func (b *broken) texts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept)
}
