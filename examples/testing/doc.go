// Package prices is a small client, and its tests are the example: they show how
// to test code that has timeouts, retries and a breaker, without waiting for any
// of them.
//
//	go test -v ./examples/testing
//
// What to look at, in this order:
//
//	manual_test.go    one goroutine on a manual clock: the dependency "takes" its time by clk.Sleep
//	passive_test.go   async calls on a passive clock: the test alone moves the time
//	bubble_test.go    the same in testing/synctest bubbles, for code that uses the system's time
//	leak_test.go      goleak, without options and without a Close
//
// The client does not know that it is tested: it takes a registry, and the
// registry has a clock.
//
// Which one to choose: the manual clock where the dependency is a fake that can be
// handed a clock, and where a step by step account is wanted; a bubble where real
// code sleeps, or where goroutines wait for each other.
package prices
