package conform_test

import (
	"runtime"
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
	for end := time.Now().Add(time.Minute); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
		runtime.Gosched()
	}
	return code
}
