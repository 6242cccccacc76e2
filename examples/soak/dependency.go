package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// mode is how the dependency behaves for the time being.
type mode int

const (
	quick     mode = iota // answers at once
	slow                  // takes 50 ms, and stops when its client has gone
	stuck                 // answers when the mode changes, whether or not somebody waits
	refusing              // does not listen
	resetting             // resets each connection
	modes
)

var modeNames = [...]string{quick: "quick", slow: "slow", stuck: "stuck", refusing: "refusing", resetting: "resetting"}

func (m mode) String() string { return modeNames[m] }

// dependency is a real HTTP server on loopback, at the same address if it can.
type dependency struct {
	addr   string
	client *http.Client

	mu     sync.Mutex
	mode   mode
	turned chan struct{} // closed when the mode changes
	server *http.Server  // nil: nobody listens
	served chan struct{} // closed when server has ended
}

func startDependency() (*dependency, error) {
	d := &dependency{
		addr: anywhere,
		// A connection that the kernel drops when too many come at once is tried again
		// after 1, 3, 7 and 15 seconds: nothing that is to end may wait for that.
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 5 * time.Second},
		turned: make(chan struct{}),
	}
	return d, d.listen()
}

// anywhere is a port that is free.
const anywhere = "localhost:0"

// listen starts a server; d.mu is held, or d is new.
func (d *dependency) listen() error {
	listener, err := net.Listen("tcp", d.addr)
	if err != nil { // another program has got the port meanwhile
		listener, err = net.Listen("tcp", anywhere)
	}
	if err != nil {
		return err
	}
	d.addr = listener.Addr().String()
	server, served := &http.Server{Handler: d, ReadHeaderTimeout: time.Second}, make(chan struct{})
	d.server, d.served = server, served
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return nil
}

// turn changes the mode. Those who are stuck go on.
func (d *dependency) turn(m mode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode = m
	close(d.turned)
	d.turned = make(chan struct{})
	switch {
	case m == refusing && d.server != nil:
		_ = d.server.Close()
		<-d.served
		d.server = nil
	case m != refusing && d.server == nil:
		return d.listen()
	}
	return nil
}

func (d *dependency) now() (mode, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mode, d.turned
}

func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, turned := d.now()
	switch m {
	case slow:
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
		}
	case stuck:
		<-turned
	case resetting:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // a close becomes a reset
			}
			_ = conn.Close()
		}
		return
	case quick, refusing, modes:
	}
	_, _ = io.WriteString(w, "report")
}

// get asks once.
func (d *dependency) get(ctx context.Context) error {
	d.mu.Lock()
	url := "http://" + d.addr
	d.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return err
}

func (d *dependency) close() {
	_ = d.turn(refusing)
	d.client.CloseIdleConnections()
}
