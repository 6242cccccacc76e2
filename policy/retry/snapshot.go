package retry

import "log/slog"

// Snapshot is the state of a retry at one moment. Counters only grow. It shares
// nothing with the instance.
type Snapshot struct {
	ID           string `json:"id"`
	Config       Config `json:"config"`
	Retries      uint64 `json:"retries"`      // decided, those included that are waiting
	Exhausted    uint64 `json:"exhausted"`    // calls whose attempts ran out
	OutOfTime    uint64 `json:"outOfTime"`    // calls that MaxDuration or the caller's deadline stopped
	BudgetDenied uint64 `json:"budgetDenied"` // calls that the budget stopped
}

// Snapshot returns the settings and the counters. It reads four atomics and
// holds up nobody.
func (p *Policy) Snapshot() Snapshot {
	// A call is counted as stopped after its retries: read in that order, none
	// is seen as stopped before it was retried.
	s := Snapshot{
		ID:           p.id,
		Exhausted:    p.exhausted.Load(),
		OutOfTime:    p.outOfTime.Load(),
		BudgetDenied: p.budgetDenied.Load(),
	}
	s.Retries = p.retries.Load()
	s.Config = p.Config()
	return s
}

// LogValue makes a Snapshot a group of its fields in structured logs.
func (s Snapshot) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", s.ID), slog.Int("maxAttempts", s.Config.MaxAttempts),
		slog.Uint64("retries", s.Retries), slog.Uint64("exhausted", s.Exhausted),
		slog.Uint64("outOfTime", s.OutOfTime), slog.Uint64("budgetDenied", s.BudgetDenied),
	)
}
