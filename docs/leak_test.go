package docs_test

import (
	"testing"

	"go.uber.org/goleak"

	"resilience4cata.dev/go/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.Patient(m, goleak.Find)) }
