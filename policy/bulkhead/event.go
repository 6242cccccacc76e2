package bulkhead

import (
	"log/slog"

	"resilience4cata.dev/go/policy"
)

// Full is published, with the call's context, when a call is refused because all
// slots are in use: at once, or when it has waited as long as it may. A refusal
// by [Policy.TryAcquire] has no context and is counted only.
type Full struct{ policy.Meta }

var _ policy.Event = Full{}

// LogValue makes the event a group of its fields in package log/slog.
func (e Full) LogValue() slog.Value {
	return slog.GroupValue(slog.String("policy", e.Policy()), slog.String("id", e.ID()))
}
