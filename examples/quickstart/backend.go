package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"
)

// backend is the dependency: a real server, on loopback as a rule.
type backend struct {
	url     string
	server  *httptest.Server
	gate    chan struct{} // closed: stuck handlers go on
	once    sync.Once
	flaky   atomic.Int32
	serving atomic.Int32
	peak    atomic.Int32
}

func startBackend(listener net.Listener) *backend {
	b := &backend{gate: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/fast", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "fast report") })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		select { // a good citizen: stops when its client has gone
		case <-time.After(3 * time.Second):
			_, _ = fmt.Fprint(w, "slow report")
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/stuck", func(w http.ResponseWriter, _ *http.Request) {
		<-b.gate // ignores everything
		_, _ = fmt.Fprint(w, "late report")
	})
	mux.HandleFunc("/flaky", func(w http.ResponseWriter, _ *http.Request) {
		if b.flaky.Add(1)%3 != 0 { // two failures, then a success
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, "third time lucky")
	})
	mux.HandleFunc("/down", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "down", http.StatusInternalServerError)
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		n := b.serving.Add(1)
		defer b.serving.Add(-1)
		b.most(n)
		time.Sleep(30 * time.Millisecond)
		_, _ = fmt.Fprint(w, "busy report")
	})
	b.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	b.server.Start()
	b.url = b.server.URL
	return b
}

// most keeps the highest number of requests that were served at once.
func (b *backend) most(n int32) {
	for {
		p := b.peak.Load()
		if n <= p || b.peak.CompareAndSwap(p, n) {
			return
		}
	}
}

func (b *backend) release() { b.once.Do(func() { close(b.gate) }) }

func (b *backend) close() {
	b.release()
	b.server.Close()
}
