package circuitbreaker_test

import (
	"errors"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

// bench/ compares these with other libraries; here they are for profiles.
func BenchmarkHandle(b *testing.B) {
	for _, bm := range []struct {
		name string
		opts []circuitbreaker.Option
	}{
		{"CountWindow", nil},
		{"TimeWindow", []circuitbreaker.Option{circuitbreaker.TimeWindow(10 * time.Second)}},
		{"SlowCall", []circuitbreaker.Option{circuitbreaker.SlowCall(time.Second, .5)}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p := must(b, clock.System(), bm.opts...)
			b.ReportAllocs()
			for b.Loop() {
				permit, err := p.Allow()
				if err != nil {
					b.Fatal(err)
				}
				permit.Record(nil)
			}
		})
		b.Run(bm.name+"/parallel", func(b *testing.B) {
			p := must(b, clock.System(), bm.opts...)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					permit, err := p.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					permit.Record(nil)
				}
			})
		})
	}
}

func BenchmarkMixedOutcomes(b *testing.B) {
	p := must(b, clock.System())
	e := errors.New("down")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		permit, err := p.Allow()
		if err != nil {
			b.Fatal(err)
		}
		if i%3 == 0 {
			permit.Record(e)
		} else {
			permit.Record(nil)
		}
	}
}

func BenchmarkRefusal(b *testing.B) {
	p := must(b, clock.System(), circuitbreaker.OpenFor(time.Hour), circuitbreaker.MinCalls(1))
	permit, _ := p.Allow()
	permit.Failure()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Allow(); err == nil {
			b.Fatal("not refused")
		}
	}
}
