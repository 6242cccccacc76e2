package pipeline_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(patient{m}) }

// patient runs the tests and gives their last goroutines the time to end: goleak
// waits for less than half a second.
type patient struct{ *testing.M }

func (p patient) Run() int {
	code := p.M.Run()
	if code == 0 {
		noneLeft(func() error { return goleak.Find() })
	}
	return code
}

// noneLeft asks find for goroutines that are left until there is none, for at most
// a minute.
func noneLeft(find func() error) {
	for end := time.Now().Add(time.Minute); find() != nil && time.Now().Before(end); {
		<-tick()
	}
}
