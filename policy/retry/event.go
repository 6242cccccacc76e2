package retry

import (
	"log/slog"
	"time"

	"resilience4cata.dev/go/policy"
)

// Retrying is published when a retry has been decided, before its delay.
type Retrying struct {
	policy.Meta
	Attempt int           // the attempt that has ended, from 1
	Delay   time.Duration // until the next one
	Err     error         // what it ended with; nil where a value is retried
}

// GaveUp is published when a call ends without success although its error may
// be retried: for every [Error], and where a value that was to be retried, or a
// refusal before any attempt, came back after the attempts, the time or the
// budget had run out. An error that the rules do not retry gives no event.
type GaveUp struct {
	policy.Meta
	Attempts int   // how many were made
	Reason   error // as in [Error]
	Err      error // the last error; nil where a value came back
}

var _, _ policy.Event = Retrying{}, GaveUp{}

// LogValue makes the event a group of its fields in structured logs.
func (e Retrying) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID()), slog.Int("attempt", e.Attempt),
		slog.Duration("delay", e.Delay), slog.Any("err", e.Err))
}

// LogValue makes the event a group of its fields in structured logs.
func (e GaveUp) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID()), slog.Int("attempts", e.Attempts),
		slog.Any("reason", e.Reason), slog.Any("err", e.Err))
}
