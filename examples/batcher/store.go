package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// store is the dependency: a key-value store that answers many keys in one
// request. It can be made to hang.
type store struct {
	mu       sync.Mutex
	requests [][]string
	gate     chan struct{} // closed: open
}

func newStore() *store {
	gate := make(chan struct{})
	close(gate)
	return &store{gate: gate}
}

// get is a flushFunc.
func (s *store) get(ctx context.Context, keys []string) ([]string, error) {
	s.mu.Lock()
	s.requests = append(s.requests, keys)
	gate := s.gate
	s.mu.Unlock()

	time.Sleep(time.Millisecond) // the way there and back
	select {
	case <-gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = strings.ToUpper(k)
	}
	return values, nil
}

// hang makes requests wait until the returned function is called.
func (s *store) hang() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// served returns the requests since the last call.
func (s *store) served() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.requests = nil }()
	return slices.Clone(s.requests)
}
