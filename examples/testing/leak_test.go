package prices_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No test of this package closes its registry: there is no goroutine at rest.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
