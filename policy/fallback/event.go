package fallback

import (
	"log/slog"

	"resilience4cata.dev/go/policy"
)

// Applied is published, with the call's context, when the fallback is asked in
// place of Err. It says nothing about how that went.
type Applied struct {
	policy.Meta
	Err error
}

var _ policy.Event = Applied{}

// LogValue groups the fields for package log/slog.
func (e Applied) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID()), slog.Any("err", e.Err))
}
