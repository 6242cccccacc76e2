// Package scope is what a registry hands to its policies: the clock and a cheap
// reading of it, timers, the one way to wait, the listener, and the news that
// the registry was closed. A policy that stands alone has a scope of its own.
//
// # Guarantees
//
//	what                                                          proved by
//	a wait drives a manual clock and parks on the system's        TestWaitDrivesAManualClock
//	a sleep ends at once when the scope closes                    TestSleepEndsWithClose
//	a hook that registers while the scope closes still runs       TestOnCloseAfterCloseRunsAtOnce
//	a panicking listener is contained and reported once           TestPublishContainsAPanickingListener
package scope
