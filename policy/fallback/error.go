package fallback

import (
	"errors"
	"fmt"
	"log/slog"
)

// FailedError is what a call ends with when its fallback failed too. errors.Is
// and errors.As look at the fallback's error first, then at the one it was asked
// for.
type FailedError struct {
	Failed error // the fallback's own
	Asked  error // what the fallback was asked for
}

// Error tells both, the fallback's error first.
func (e *FailedError) Error() string {
	return fmt.Sprintf("fallback failed: %v (asked because of: %v)", e.Failed, e.Asked)
}

// Unwrap returns both errors, the fallback's first.
func (e *FailedError) Unwrap() []error { return []error{e.Failed, e.Asked} }

// LogValue groups the two errors for package log/slog.
func (e *FailedError) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("failed", e.Failed), slog.Any("asked", e.Asked))
}

// Join returns an error in which errors.Is finds both asked, the error that the
// fallback was asked for, and failed, the fallback's own. A fallback that gives
// back what it was given, as such or wrapped, has joined them by itself: then
// the result is failed, unchanged. It is nil if failed is, and failed if asked
// is nil.
func Join(asked, failed error) error {
	if failed == nil || asked == nil || errors.Is(failed, asked) {
		return failed
	}
	return &FailedError{Failed: failed, Asked: asked}
}
