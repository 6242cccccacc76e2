package testkit_test

import (
	"testing"
	"testing/synctest"

	"resilience4cata.dev/go/internal/testkit"
)

func TestGoroutines_ThoseOfTheBubbleOnly(t *testing.T) {
	end := make(chan struct{})
	for range 10 {
		go func() { <-end }() // outside
	}
	defer close(end)
	synctest.Test(t, func(t *testing.T) {
		before := testkit.Goroutines(t)
		end := make(chan struct{})
		for range 1000 {
			go func() { <-end }()
		}
		synctest.Wait()
		if n := testkit.Goroutines(t) - before; n != 1000 {
			t.Errorf("%d more, want 1000", n)
		}
		close(end)
		synctest.Wait()
		if n := testkit.Goroutines(t) - before; n != 0 {
			t.Errorf("%d more after their end, want none", n)
		}
	})
}
