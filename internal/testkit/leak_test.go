package testkit_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"resilience4cata.dev/go/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.Patient(m, goleak.Find)) }

func TestNoneLeft_AsksUntilThereIsNone(t *testing.T) {
	asked := 0
	if err := testkit.NoneLeft(func() error {
		if asked++; asked < 1000 {
			return errors.New("one is left")
		}
		return nil
	}); err != nil || asked != 1000 {
		t.Errorf("%v after %d questions", err, asked)
	}
}

type tests int // their code

func (r tests) Run() int { return int(r) }

func TestPatient_WaitsOnlyForTestsThatPassed(t *testing.T) {
	for _, code := range []int{0, 7} {
		asked := 0
		find := func(...goleak.Option) error {
			if asked++; asked < 3 {
				return errors.New("one is left")
			}
			return nil
		}
		want := map[int]int{0: 3, 7: 0}[code]
		if got := testkit.Patient(tests(code), find).Run(); got != code || asked != want {
			t.Errorf("code %d after %d questions, want %d after %d", got, asked, code, want)
		}
	}
}
