package stripe_test

import (
	"sync"
	"testing"
	"unsafe"

	"resilience4cata.dev/go/internal/stripe"
)

func TestSumsAreExactWhenIdle(t *testing.T) {
	s := stripe.New()
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 1000 {
				l := s.Line()
				l[0].Add(1)
				l[7].Add(2)
			}
		})
	}
	wg.Wait()
	if got := s.Sum(0); got != 32_000 {
		t.Errorf("Sum(0) = %d, want 32000", got)
	}
	if got := s.Sum(7); got != 64_000 {
		t.Errorf("Sum(7) = %d, want 64000", got)
	}
	if got := s.Sum(3); got != 0 {
		t.Errorf("Sum(3) = %d, want 0", got)
	}
	if got, want := s.Sums(), [stripe.Counters]uint64{0: 32_000, 7: 64_000}; got != want {
		t.Errorf("Sums() = %v, want %v", got, want)
	}
}

func TestRareIsMadeOnce(t *testing.T) {
	var r stripe.Rare
	if r.Sum(0) != 0 {
		t.Error("a new one has counted")
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 100 {
				r.Line()[1].Add(1)
			}
		})
	}
	wg.Wait()
	if r.Sum(0) != 0 || r.Sum(1) != 3200 {
		t.Errorf("%d and %d, want 0 and 3200", r.Sum(0), r.Sum(1))
	}
}

func TestSumsAreMonotone(t *testing.T) {
	s := stripe.New()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				l := s.Line()
				l[0].Add(1) // begins
				l[1].Add(1) // ends
			}
		})
	}
	var lastEnded uint64
	for range 500 {
		ended := s.Sum(1)
		begun := s.Sum(0)
		if ended < lastEnded || begun < ended {
			t.Fatalf("ended %d after %d, begun %d", ended, lastEnded, begun)
		}
		lastEnded = ended
	}
	wg.Wait()
}

func TestALineIsACacheLine(t *testing.T) {
	if got := unsafe.Sizeof(stripe.Line{}); got != 64 {
		t.Errorf("a line is %d bytes, want 64", got)
	}
}

func TestHintDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { stripe.Hint() }); n != 0 {
		t.Errorf("Hint allocates %v times", n)
	}
}
