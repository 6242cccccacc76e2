// Package circuitbreaker stops calling a service that is failing, and finds out
// with a few probes when it is well again: callers get an answer at once
// instead of waiting for another failure, and the service gets a rest.
//
// A breaker is closed, open or half-open. Closed, every call passes and its
// outcome is a sample. It opens when, after a sample,
//
//	samples in the window >= MinCalls  and
//	failures / samples >= FailureRatio  (or slow calls / samples >= SlowRatio)
//
// The window is the last Window samples or, with TimeWindow, those of the last
// so many seconds. Open, every call is refused for OpenFor; after that it is
// half-open: at most HalfOpenCalls calls pass, as probes. It closes when all of
// them have been recorded and their ratios are below the same limits, and opens
// again as soon as that can't happen any more. A probe whose outcome is ignored
// gives its place to another call; when all places have been taken for OpenFor
// and the breaker is still undecided, the probes are given up and new ones pass.
//
// In a pipeline the breaker sees each attempt of a retry by itself, a timeout
// as a failure at the moment it happens, and refusals of the limiter and the
// bulkhead behind it not at all.
//
// # When not to use it
//
// Not for one user's or one request's own errors: a breaker speaks of a service
// that all its calls share (use Ignore or FailIf for "not found" and the like).
// Not with less traffic than MinCalls in the window, where a retry with a budget
// does more. Not in front of work in the same process: that is a bulkhead's or
// a limiter's task. One breaker for several hosts refuses the good ones too.
//
// # Guarantees
//
//	what                                                         proved by
//	opens exactly at the ratio, not before MinCalls (C-1)        TestOpensExactlyAtTheRatioOnceEnoughCallsWereSeen
//	agrees with a naive model in any sequence (C-1, C-3, C-4)    FuzzAgainstModel
//	no sample is lost or counted twice under a rush              TestWindowsNeverLoseNorDoubleASample
//	a rush of failures always opens                              TestRushOfFailuresAlwaysOpens
//	State is true to the clock without traffic (C-4)             TestStateIsTrueToTheClockWithoutTraffic
//	RetryAfter is exactly when the next probe may pass (C-4)     TestRetryAfterIsExactlyWhenTheNextProbeIsAllowed
//	a late result of an old generation changes nothing (C-3)     TestLateSuccessOfAnOldGenerationDoesNotClose
//	never more probes than places                                TestRushOnHalfOpenLetsExactlyTheProbesThrough
//	ignored probes give their place back (C-3)                   TestIgnoredProbeGivesItsPlaceBack
//	not stuck after a panic, Goexit or lost probe (C-3)          TestHalfOpenIsNotStuckAfterPanicOrGoexit
//	a probe recorded twice counts once                           TestProbeRecordedTwiceCountsOnce
//	commands stay in force until taken back                      TestForceOpenStaysUntilTakenBack
//	listeners may call back (C-4, X-3)                           TestListenersMayCallBack
//	each change is told once, in order                           TestEventsFormAChainUnderStress
//	new settings keep state and samples (G-7)                    TestReconfigureKeepsStateAndSamples
//	a call on a closed breaker does not allocate                 TestClosedPathDoesNotAllocate
//	nothing is left behind in a synctest bubble            TestBubble
package circuitbreaker
