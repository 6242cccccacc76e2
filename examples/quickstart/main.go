// Quickstart is the main job on real input: it starts an HTTP server on
// loopback whose endpoints are fast, slow, stuck, flaky and busy, calls them
// through pipelines in all three forms, and prints what each caller got and what
// became of the work afterwards. It exits within five seconds.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), os.Stdout, listener, &http.Transport{}); err != nil {
		log.Fatal(err)
	}
}

// run is the whole program, for its test as well. The server listens at listener,
// and transport leads there.
func run(ctx context.Context, out io.Writer, listener net.Listener, transport *http.Transport) error {
	backend := startBackend(listener)
	defer backend.close()

	s, err := newService(backend.url, transport)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }

	s.timeouts(ctx, say)
	s.futures(ctx, say)
	s.stages(ctx, say)
	s.retries(ctx, say)
	s.limits(ctx, say)
	s.budget(ctx, say)
	s.breaker(ctx, say)
	backend.release() // let the stuck handlers go, and their late outcomes come in
	return s.snapshot(ctx, out, say)
}
