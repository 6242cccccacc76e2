// Service is a small HTTP service that asks another one for reports and keeps
// all its limits in a file, resilience.yaml:
//
//	GET /reports/{id}   a report, by way of a pipeline with all layers
//	GET /healthz        health.Handler: the state of every limit; ?id= and ?policy= filter
//	SIGHUP              reads the file again; a file with mistakes changes nothing
//	SIGINT, SIGTERM     no new requests; what is in flight ends, then the process does
//
// Run it from the root of the module and ask it for fast, slow, flaky, missing or
// broken:
//
//	go run ./examples/service -addr localhost:8080
//	curl -i localhost:8080/reports/slow
//
// or let it drive itself over loopback, which takes less than five seconds:
//
//	go run ./examples/service -demo
//
// service.go is the part to take away: how errors of the library become answers
// of HTTP is in answer.go. backend.go plays the other service.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run is the whole program, for its test as well.
func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(out)
	addr := flags.String("addr", "localhost:8080", "where to listen")
	path := flags.String("config", "examples/service/resilience.yaml", "the limits, as YAML or JSON")
	self := flags.Bool("demo", false, "drive the service over loopback and exit; needs no file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// From here on the signal is a request and does not end the process any more.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	if *self {
		return demo(ctx, out, loopback(hup))
	}

	behind, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	b := startBackend(behind)
	defer b.close()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	s, err := newService(options{
		listener: listener, transport: &http.Transport{MaxIdleConnsPerHost: 32},
		config: *path, backend: b.url, log: slog.New(slog.NewTextHandler(out, nil)), hup: hup,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return s.serve(ctx)
}
