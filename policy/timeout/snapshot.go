package timeout

import "log/slog"

// Snapshot is the state of a timeout at one moment.
type Snapshot struct {
	Instance string `json:"instance"` // the pipeline's id
	Config   Config `json:"config"`
	TimedOut uint64 `json:"timedOut"` // attempts that passed their limit
}

// LogValue groups the fields.
func (s Snapshot) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("instance", s.Instance),
		slog.Duration("value", s.Config.Value),
		slog.Uint64("timedOut", s.TimedOut),
	)
}
