package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
	"resilience4cata.dev/go/registry/health"
)

// grace is how long a service that was told to end waits for what is in flight.
const grace = 5 * time.Second

// options are what a service is made of.
type options struct {
	listener  net.Listener    // where requests come in
	transport *http.Transport // how the backend is reached
	config    string          // path of the configuration file
	backend   string          // URL of the service that makes the reports
	log       *slog.Logger
	hup       <-chan os.Signal // each one asks for a reload
	reloaded  func(error)      // if set, called after each reload, with what Reload said
}

// service holds what lives as long as the process: the listener, the registry,
// the pipelines. There is one pipeline for each dependency and kind of call, made
// here and not in a handler.
type service struct {
	options
	reg     *registry.Registry
	client  *http.Client
	reports *pipeline.Pipeline[string]
}

// newService reads the configuration. Mistakes in the file are reported before
// the first request comes in, all of them.
func newService(o options) (*service, error) {
	cfg, err := load(o.config)
	if err != nil {
		return nil, err
	}
	reg, err := registry.New(registry.WithConfig(cfg), registry.WithLogger(o.log))
	if err != nil {
		return nil, err
	}
	// The file says which layers there are and how they are set; what needs code is
	// here: a report that does not exist is an answer, and no failure.
	reports, err := pipeline.Configured[string](reg, "reports").
		Retry(retry.AbortOn(errNoReport)).
		CircuitBreaker(circuitbreaker.Ignore(errNoReport)).
		Build()
	if err != nil {
		return nil, err
	}
	for _, f := range reg.Check() { // settings that contradict each other
		o.log.Warn("configuration", "finding", f)
	}
	return &service{options: o, reg: reg, client: &http.Client{Transport: o.transport}, reports: reports}, nil
}

// load reads the file, with the values that the environment sets instead.
func load(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return cfg.WithEnv(os.Environ())
}

// url is the address at which the service listens.
func (s *service) url() string { return "http://" + s.listener.Addr().String() }

// serve answers requests until ctx ends, and returns when everything has ended.
func (s *service) serve(ctx context.Context) error {
	defer s.client.CloseIdleConnections()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /reports/{id}", s.report)
	mux.Handle("/healthz", health.Handler(s.reg))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	s.log.Info("serving", "url", s.url(), "pipeline", s.reports)

	for {
		select {
		case <-s.hup:
			s.reload()
		case err := <-served:
			return err
		case <-ctx.Done():
			return errors.Join(s.end(context.WithoutCancel(ctx), server), ignoreClosed(<-served))
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// end lets what is in flight come to its end: first the requests, then the work
// that was abandoned by a timeout and runs still.
func (s *service) end(ctx context.Context, server *http.Server) error {
	s.log.Info("ending")
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if err := s.reg.Drain(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	s.log.Info("ended", "calls", s.reg.Snapshot().Pipelines[0].Calls)
	return nil
}

// reload takes the file over as a whole, or leaves everything as it is and logs
// all that is wrong with it.
func (s *service) reload() {
	cfg, err := load(s.config)
	if err == nil {
		err = s.reg.Reload(cfg)
	}
	if err == nil {
		s.log.Info("reloaded", "file", s.config)
	} else {
		s.log.Error("not reloaded, the old settings hold", "file", s.config, "mistakes", len(policy.ConfigErrors(err)))
		for _, mistake := range policy.ConfigErrors(err) {
			s.log.Error("configuration", "mistake", mistake)
		}
	}
	if s.reloaded != nil {
		s.reloaded(err)
	}
}
