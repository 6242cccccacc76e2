// Package pipenet is a network of pipes in memory, for tests of programs that
// speak HTTP. A goroutine that waits for a pipe is durably blocked, one that waits
// for a socket is not: over pipes such a program runs in a synctest bubble, where
// its deadlines come at their instant however slow the machine is.
package pipenet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

var errRefused = errors.New("pipenet: connection refused")

// Listener is a net.Listener and the way to it.
type Listener struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener that is open.
func Listen() *Listener {
	return &Listener{dialed: make(chan net.Conn), closed: make(chan struct{})}
}

// Transport returns a transport all of whose connections lead to l.
func (l *Listener) Transport() *http.Transport { return &http.Transport{DialContext: l.dial} }

func (l *Listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.dialed <- there:
		return here, nil
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialed:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener. It is good for a URL, and the same for all.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }
