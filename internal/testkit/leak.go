package testkit

import (
	"time"

	"resilience4cata.dev/go/clock"
)

// Tests is a [testing.M].
type Tests interface{ Run() (code int) }

// Patient is m for goleak.VerifyTestMain; find is goleak.Find. It runs the tests, and
// gives their last goroutines the time to end. VerifyTestMain itself waits for less
// than half a second, which a machine that others use as well may take to let one of
// them go.
func Patient[Option any](m Tests, find func(...Option) error) Tests {
	return patient{m, func() error { return find() }}
}

type patient struct {
	tests Tests
	find  func() error
}

func (p patient) Run() int {
	code := p.tests.Run()
	if code == 0 {
		_ = NoneLeft(p.find) // VerifyTestMain tells
	}
	return code
}

// NoneLeft asks find, which is goleak.Find with some options, until no goroutine is
// left. After a minute it returns what find has found.
func NoneLeft(find func() error) error {
	clk := clock.System()
	for end := clk.Now().Add(time.Minute); ; {
		if err := find(); err == nil || clk.Now().After(end) {
			return err
		}
	}
}
