package ratelimit

import "log/slog"

// Snapshot is a rate limiter at one instant. Available and Waiting belong
// together; the counters may be a moment older or younger.
type Snapshot struct {
	ID     string `json:"id"`
	Config Config `json:"config"`

	// Available is how many permits are in store: 0 to Config.Burst, and 0 while
	// somebody waits.
	Available int `json:"available"`

	// Waiting is how many calls stand in the queue.
	Waiting int `json:"waiting"`

	// Admitted counts the permits ever taken, Rejected the calls ever refused
	// with ErrLimited, or by TryAcquire. Neither counts calls whose own context
	// ended, nor those that got ErrClosed.
	Admitted uint64 `json:"admitted"`
	Rejected uint64 `json:"rejected"`
}

// LogValue makes the snapshot a group of its numbers in package log/slog.
func (s Snapshot) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", s.ID),
		slog.Int("available", s.Available),
		slog.Int("waiting", s.Waiting),
		slog.Uint64("admitted", s.Admitted),
		slog.Uint64("rejected", s.Rejected),
	)
}

// Snapshot returns the limiter's numbers. It changes nothing, and takes no lock
// unless somebody waits.
func (p *Policy) Snapshot() Snapshot {
	s := Snapshot{ID: p.id, Admitted: p.counts.Sum(admitted), Rejected: p.counts.Sum(rejected)}
	b := p.current.Load()
	tat, now := b.tat.Load(), p.scope.Now()
	if tat == sealed {
		p.mu.Lock()
		// Who holds the lock alone decides about the word: sealed means that
		// p.tat is the state.
		b = p.current.Load()
		if tat = b.tat.Load(); tat == sealed {
			tat = p.tat
		}
		now += p.behind(b, now)
		s.Waiting = p.queue.Len()
		p.mu.Unlock()
	}
	s.Config = *b.config
	if s.Waiting == 0 { // else the permits in store, if any, are theirs
		s.Available = b.available(tat, now)
	}
	return s
}
