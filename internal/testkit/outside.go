package testkit

import "testing"

// Outside returns a function that runs f outside of the synctest bubble that its
// caller is in, and waits for the end of it; the time of the bubble stands still
// meanwhile. Call Outside itself where f is to run, before the bubble begins.
func Outside(tb testing.TB) (run func(f func())) {
	tb.Helper()
	work, done := make(chan func()), make(chan struct{})
	go func() {
		for f := range work {
			f()
			done <- struct{}{}
		}
	}()
	tb.Cleanup(func() { close(work) })
	return func(f func()) { work <- f; <-done }
}
