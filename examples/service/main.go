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
	"flag"
	"io"
	"log"
	"log/slog"
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
	if *self {
		return demo(ctx, out)
	}

	b, err := startBackend()
	if err != nil {
		return err
	}
	defer b.close()
	s, err := newService(options{
		addr: *addr, config: *path, backend: b.url, log: slog.New(slog.NewTextHandler(out, nil)),
	})
	if err != nil {
		return err
	}
	return s.serve(ctx)
}
