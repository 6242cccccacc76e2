package health

import (
	"strings"

	"resilience4cata.dev/go/registry"
)

// kinds are what a query may ask for, in the words of errors and events.
var kinds = []string{"pipeline", "timeout", "retry", "ratelimit", "bulkhead", "circuitbreaker"}

// sections are the same in the words of the configuration.
var sections = []string{"pipeline", "timeout", "retry", "rateLimiter", "bulkhead", "circuitBreaker"}

// kindOf returns the kind that a query names, "" for none. Case does not matter.
func kindOf(word string) string {
	for i, kind := range kinds {
		if strings.EqualFold(word, kind) || strings.EqualFold(word, sections[i]) {
			return kind
		}
	}
	return ""
}

// only leaves the rows of one kind. Lists become empty, never null.
func only(s *registry.Snapshot, kind string) {
	if kind != "pipeline" {
		s.Pipelines = s.Pipelines[:0]
	}
	if kind != "timeout" {
		s.Timeouts = s.Timeouts[:0]
	}
	if kind != "retry" {
		s.Retries = s.Retries[:0]
	}
	if kind != "ratelimit" {
		s.RateLimiters = s.RateLimiters[:0]
	}
	if kind != "bulkhead" {
		s.Bulkheads = s.Bulkheads[:0]
	}
	if kind != "circuitbreaker" {
		s.CircuitBreakers = s.CircuitBreakers[:0]
	}
}

// filter leaves the rows of one id, and reports whether any is left.
func filter(s *registry.Snapshot, id string) bool {
	s.Pipelines = keep(s.Pipelines, func(i int) bool { return s.Pipelines[i].ID == id })
	s.Timeouts = keep(s.Timeouts, func(i int) bool { return s.Timeouts[i].Instance == id })
	s.Retries = keep(s.Retries, func(i int) bool { return s.Retries[i].ID == id })
	s.RateLimiters = keep(s.RateLimiters, func(i int) bool { return s.RateLimiters[i].ID == id })
	s.Bulkheads = keep(s.Bulkheads, func(i int) bool { return s.Bulkheads[i].ID == id })
	s.CircuitBreakers = keep(s.CircuitBreakers, func(i int) bool { return s.CircuitBreakers[i].ID == id })
	s.Findings = keep(s.Findings, func(i int) bool { return s.Findings[i].ID == id })
	return len(s.Pipelines)+len(s.Timeouts)+len(s.Retries)+len(s.RateLimiters)+len(s.Bulkheads)+len(s.CircuitBreakers) > 0
}

// keep filters in place: the snapshot is the handler's own. A row is asked for,
// by its index, before it is written over.
func keep[S any](rows []S, wanted func(i int) bool) []S {
	kept := rows[:0]
	for i := range rows {
		if wanted(i) {
			kept = append(kept, rows[i])
		}
	}
	return kept
}
