package bulkhead

import "log/slog"

// Snapshot is a bulkhead at one instant. InUse, Available, Waiting and Admitted
// belong together; Rejected may be a moment older.
type Snapshot struct {
	ID     string `json:"id"`
	Config Config `json:"config"`

	// Limit is how many calls may be inside at once, as configured or set by
	// SetLimit: Config.MaxConcurrent.
	Limit int `json:"limit"`

	// InUse is how many calls are inside. It is above Limit only after the
	// limit was lowered below it.
	InUse int `json:"inUse"`

	// Available is max(0, Limit-InUse).
	Available int `json:"available"`

	// Waiting is how many calls stand in the queue. It is above Config.Queue
	// only after the queue was made shorter than it is.
	Waiting int `json:"waiting"`

	// Admitted counts the slots ever given, Rejected the calls ever refused with
	// ErrFull. Neither counts calls whose own context ended, nor those that got
	// ErrClosed.
	Admitted uint64 `json:"admitted"`
	Rejected uint64 `json:"rejected"`
}

// LogValue makes the snapshot a group of its numbers in package log/slog.
func (s Snapshot) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", s.ID),
		slog.Int("limit", s.Limit),
		slog.Int("inUse", s.InUse),
		slog.Int("available", s.Available),
		slog.Int("waiting", s.Waiting),
		slog.Uint64("admitted", s.Admitted),
		slog.Uint64("rejected", s.Rejected),
	)
}

// Snapshot returns the bulkhead's numbers. It takes the lock of the queue for a
// few loads, and delays nobody who finds a slot free.
func (p *Policy) Snapshot() Snapshot {
	rejected := p.rejected.Sum(0)
	p.mu.Lock()
	s, set, admitted, waiting := p.load(), p.settings.Load(), p.admitted, p.queue.Len()
	p.mu.Unlock()
	limit := set.config.MaxConcurrent
	return Snapshot{
		ID:        p.id,
		Config:    set.config,
		Limit:     limit,
		InUse:     s.inUse(),
		Available: max(0, limit-s.inUse()),
		Waiting:   waiting,
		Admitted:  admitted + s.admitted(),
		Rejected:  rejected,
	}
}
