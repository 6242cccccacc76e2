package health

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"resilience4cata.dev/go/registry"
)

// Status is the health of a registry.
type Status string

// The statuses.
const (
	Pass Status = "pass" // nothing is impaired
	Warn Status = "warn" // something is, and works as it should
	Fail Status = "fail" // something critical is
)

// Reason is one thing that is impaired.
type Reason struct {
	Policy string `json:"policy"` // "circuitbreaker", "bulkhead" or "pipeline"
	ID     string `json:"id"`
	Status Status `json:"status"` // Warn, or Fail if the configuration marks the id as critical
	Text   string `json:"text"`
}

// Report is the body of an answer: the snapshot's own keys, with two before them.
type Report struct {
	Status  Status   `json:"status"`  // the worst of the reasons; Pass without any
	Reasons []Reason `json:"reasons"` // by policy, then by id; never null
	registry.Snapshot
}

// problem is the body of an answer that is no report.
type problem struct {
	Error   string `json:"error"`
	Nearest string `json:"nearest,omitempty"` // the id that was most likely meant
}

// Handler returns a handler that answers GET and HEAD with a [Report] on reg as
// JSON: 503 if the status is [Fail], else 200. A nil reg panics.
//
// "?id=" leaves only what has that id, and "?policy=" only one kind of rows:
// pipeline, timeout, retry, rateLimiter, bulkhead or circuitBreaker, in any case,
// or ratelimit as events have it; both may be combined, and the status is of what
// is left. An id that the registry does not have is 404, another policy 400. It
// must not be cached, and says so.
func Handler(reg *registry.Registry) http.Handler {
	if reg == nil {
		panic("health: Handler: reg is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { serve(reg, w, req) })
}

func serve(reg *registry.Registry, w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, problem{Error: "the method is " + req.Method + ": use GET or HEAD"})
		return
	}
	query := req.URL.Query()
	s := reg.Snapshot()
	if query.Has("policy") {
		kind := kindOf(query.Get("policy"))
		if kind == "" {
			answer(w, http.StatusBadRequest, problem{Error: "unknown policy " + strconv.Quote(query.Get("policy")) + ": known are " + strings.Join(sections, ", ")})
			return
		}
		only(&s, kind)
	}
	if query.Has("id") {
		if id := query.Get("id"); !filter(&s, id) && !known(reg, id) {
			answer(w, http.StatusNotFound, problem{Error: "unknown id " + strconv.Quote(id), Nearest: reg.Nearest(id)})
			return
		}
	}
	r := report(s, reg.Critical)
	code := http.StatusOK
	if r.Status == Fail {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, r)
}

// known reports whether the registry has the id at all: as one of a kind that
// the query has left out.
func known(reg *registry.Registry, id string) bool { return id != "" && reg.Nearest(id) == id }

// report judges a snapshot.
func report(s registry.Snapshot, critical func(id string) bool) Report {
	r := Report{Status: Pass, Reasons: []Reason{}, Snapshot: s}
	impaired := func(policy, id, text string) {
		status := Warn
		if critical(id) {
			status = Fail
		}
		if r.Status != Fail {
			r.Status = status
		}
		r.Reasons = append(r.Reasons, Reason{policy, id, status, text})
	}
	for i := range s.Bulkheads {
		if b := &s.Bulkheads[i]; b.Available == 0 {
			impaired("bulkhead", b.ID, "full: "+strconv.Itoa(b.InUse)+" of "+strconv.Itoa(b.Limit)+" in use, "+strconv.Itoa(b.Waiting)+" waiting")
		}
	}
	for i := range s.CircuitBreakers {
		if b := &s.CircuitBreakers[i]; b.State == "open" {
			impaired("circuitbreaker", b.ID, openText(b.RetryAfterMs))
		}
	}
	for i := range s.Pipelines {
		if p := &s.Pipelines[i]; p.Abandoned.Running > 0 {
			impaired("pipeline", p.ID, "abandoned work is running: "+strconv.FormatInt(p.Abandoned.Running, 10))
		}
	}
	return r
}

// openText says when an open breaker lets a probe through. Only of one that was
// opened by hand is the wait 0, as it is rounded up: nobody knows.
func openText(retryAfterMs int64) string {
	if retryAfterMs == 0 {
		return "open: by hand, until Reset or ForceClosed"
	}
	return "open: next probe in " + strconv.FormatInt(retryAfterMs, 10) + " ms"
}

// answer writes body, which has no values that JSON cannot hold. For HEAD the
// server leaves the body out.
func answer(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text = append(text, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(text) // a client that is gone is no error of ours
}
