package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// hang is how long slow reports take.
const hang = time.Minute

// backend plays the service that makes the reports.
type backend struct {
	url    string
	server *http.Server
	served chan struct{}
	flaky  atomic.Int32
}

func startBackend(listener net.Listener) *backend {
	b := &backend{url: "http://" + listener.Addr().String(), served: make(chan struct{})}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(listener)
	}()
	return b
}

// ServeHTTP answers by the name of the report.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/missing":
		http.NotFound(w, r)
	case "/broken":
		http.Error(w, "broken", http.StatusInternalServerError)
	case "/flaky":
		if b.flaky.Add(1)%3 != 0 { // two failures, then a success
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("third time lucky\n"))
	case "/slow":
		select {
		case <-time.After(hang):
		case <-r.Context().Done():
		}
	default:
		_, _ = w.Write([]byte("report " + r.URL.Path[1:] + "\n"))
	}
}

func (b *backend) close() {
	_ = b.server.Close()
	<-b.served
}
