package stack

import "sync/atomic"

// Gate says whether new calls are let in. It belongs to a registry.
type Gate struct {
	shut atomic.Bool
	// ended is told that a call or abandoned work has ended while the gate is
	// shut. One waiter at most needs to be woken: it looks at everything again.
	ended chan struct{}
}

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{ended: make(chan struct{}, 1)} }

// Shut refuses new calls from now on.
func (g *Gate) Shut() { g.shut.Store(true) }

// IsShut reports whether new calls are refused.
func (g *Gate) IsShut() bool { return g.shut.Load() }

// Ended tells those who wait for the end of everything that something ended.
func (g *Gate) Ended() {
	if g.shut.Load() {
		g.signal()
	}
}

func (g *Gate) signal() {
	select {
	case g.ended <- struct{}{}:
	default:
	}
}

// Wait is signaled after something ended.
func (g *Gate) Wait() <-chan struct{} { return g.ended }
