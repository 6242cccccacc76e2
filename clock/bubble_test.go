package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	bclock "github.com/benbjohnson/clock"

	"resilience4cata.dev/go/clock"
)

// TestBubble runs every entry point that can block in a synctest bubble of its
// own: synctest.Wait returns only if the goroutine is durably blocked, and the
// bubble ends only if nothing is left behind.
func TestBubble(t *testing.T) {
	passive := func() *clock.Manual { return clock.NewManual(start).Passive() }
	for name, test := range map[string]func(t *testing.T){
		"System": func(t *testing.T) {
			begin := time.Now()
			if err := clock.System().Sleep(t.Context(), time.Hour); err != nil || time.Since(begin) != time.Hour {
				t.Errorf("Sleep: %v after %v", err, time.Since(begin))
			}
			clock.System().AfterFunc(time.Hour, func() {}) // pending at the end: no harm
		},
		"From": func(t *testing.T) {
			mock := bclock.NewMock()
			res := async(func() error { return clock.From(mock).Sleep(t.Context(), time.Hour) })
			synctest.Wait()
			mock.Add(time.Hour)
			mustAwait(t, <-res)
		},
		"Manual.Sleep": func(t *testing.T) {
			m, begin := clock.NewManual(start), time.Now()
			mustAwait(t, m.Sleep(t.Context(), time.Hour))
			if slept := time.Since(begin); slept != 0 {
				t.Errorf("slept for real: %v", slept)
			}
		},
		"Manual.Sleep, passive": func(t *testing.T) {
			m := passive()
			res := async(func() error { return m.Sleep(t.Context(), time.Hour) })
			synctest.Wait()
			m.Advance(time.Hour)
			mustAwait(t, <-res)
		},
		"Manual.Advance and Set": func(*testing.T) {
			m := clock.NewManual(start)
			m.AfterFunc(time.Second, func() {})
			m.Advance(time.Hour)
			m.AfterFunc(time.Second, func() {}) // pending at the end: no harm
			m.Set(start)
		},
		"Manual.Drive": func(t *testing.T) {
			m := clock.NewManual(start)
			done := false
			res := async(func() error { return m.Drive(t.Context(), func() bool { return done }) })
			synctest.Wait()
			m.AfterFunc(time.Hour, func() { done = true })
			mustAwait(t, <-res)
		},
		"Manual.Wait": func(t *testing.T) {
			for _, m := range []*clock.Manual{clock.NewManual(start), passive()} {
				ready := make(chan struct{})
				res := async(func() error { return m.Wait(t.Context(), ready) })
				synctest.Wait()
				close(ready)
				mustAwait(t, <-res)
			}
		},
		"Manual.AwaitSleepers": func(t *testing.T) {
			m := passive()
			res := async(func() error { return m.AwaitSleepers(t.Context(), 1) })
			synctest.Wait()
			slept := async(func() error { return m.Sleep(t.Context(), time.Hour) })
			mustAwait(t, <-res)
			m.Advance(time.Hour)
			mustAwait(t, <-slept)
		},
		"Manual.AwaitTimers": func(t *testing.T) {
			m := passive()
			res := async(func() error { return m.AwaitTimers(t.Context(), 1) })
			synctest.Wait()
			m.AfterFunc(time.Hour, func() {})
			mustAwait(t, <-res)
		},
		"a context with the bubble's own timeout": func(t *testing.T) {
			m := passive()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for _, block := range []func() error{
				func() error { return m.Sleep(ctx, time.Hour) },
				func() error { return m.Wait(ctx, nil) },
				func() error { return m.Drive(ctx, func() bool { return false }) },
				func() error { return m.AwaitSleepers(ctx, 1) },
				func() error { return m.AwaitTimers(ctx, 1) },
			} {
				if err := block(); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			if m.Pending() != 0 {
				t.Error(m)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}
