package circuitbreaker

import (
	"log/slog"
	"time"
)

// Snapshot is what a breaker is at one moment, as plain data.
type Snapshot struct {
	ID     string `json:"id"`
	Config Config `json:"config"` // all settings in force

	// State is true to the clock, as Policy.State is.
	State State `json:"state"`

	// FailureRatio is the share of failures in the window, from 0 to 1; in the
	// open and the half-open state it is the one that opened the breaker (0 if
	// that was done by hand).
	FailureRatio float64 `json:"failureRatio"`

	// RetryAfterMs is the time until the next call may be let through, in
	// milliseconds, rounded up. 0: now, or nobody knows (opened by hand).
	RetryAfterMs int64 `json:"retryAfterMs"`

	// Rejected counts the calls refused since the breaker was made.
	Rejected uint64 `json:"rejected"`
}

// Snapshot returns the breaker's snapshot. It takes no lock and slows nobody
// down. State, ratio and wait are of one moment.
func (p *Policy) Snapshot() Snapshot {
	rejected := p.rejected.Load()
	g, now := p.cur.Load(), p.scope.Now()
	wait, _ := g.refusal(now)
	s := Snapshot{
		ID:           p.id,
		Config:       p.Config(),
		State:        g.state(now),
		FailureRatio: g.ratio,
		RetryAfterMs: milliseconds(wait),
		Rejected:     rejected,
	}
	if g.win != nil {
		s.FailureRatio = g.win.count(now).failureRatio()
	}
	return s
}

// milliseconds rounds up, so that whoever waits that long is not early.
func milliseconds(d time.Duration) int64 {
	n := d.Milliseconds()
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}

// LogValue groups the fields that change for package log/slog.
func (s Snapshot) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", s.ID),
		slog.String("state", string(s.State)),
		slog.Float64("failureRatio", s.FailureRatio),
		slog.Int64("retryAfterMs", s.RetryAfterMs),
		slog.Uint64("rejected", s.Rejected),
	)
}
