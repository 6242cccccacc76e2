// Package ratelimit bounds how many calls begin in a time: so many per period,
// evenly spaced, and a burst of some more after an idle spell. Calls beyond that
// are refused at once with the time after which to come again, or wait for their
// turn, if they may.
//
// Do not use it to bound how many calls run at once; that is package bulkhead: a
// backend that becomes slow gets ever more calls at the same rate. Do not use it
// where each process having its own share is not what is meant: the rate is that
// of one instance in one process. And do not make one per user or request: an id
// lives as long as its registry.
//
// # The model
//
// A token bucket: it holds up to Burst permits, starts full, and one permit comes
// each Period/Limit, while there is room. It is kept by the generic cell rate
// algorithm (GCRA, ITU-T Recommendation I.371), whose whole state is one instant,
// in one atomic word: a free permit costs a reading of the clock and one
// compare-and-swap. Nothing runs in the background.
//
// Time is counted in fractions of a nanosecond that divide the interval, so that
// three per second are exactly three per second, for years. Only settings beyond
// what 63 bits can hold so (a prime number of millions per day, more than 10^12
// per second) are rounded, to the slower side.
//
// Calls that wait stand in one queue, each with its permit reserved. Who leaves it
// gives its reservation back, and all behind move up. A wait that cannot end in
// time is not begun: longer than MaxWait, or not before the caller's deadline.
//
// On a clock that goes back, which the system's does not, nothing is admitted
// until the old time is reached again, if that is within a second. From further
// back the limiter goes on as the clock does, and drops the difference once the
// clock has caught up.
//
// # Guarantees
//
//	what                                                          proved by
//	never more than burst + rate × time, in any window            TestNoWindowAdmitsMore, FuzzModel
//	exactly limit per period, without a drift                     TestExactOverLongSpans, TestPermitsComeAtTheirNanosecond
//	exact under a rush                                            TestRushAdmitsExactlyTheBurst, TestField_RL12_…
//	no more than the burst is ever stored                         TestField_RL06_LimitsAfterAnIdleSpell
//	a refusal comes at once and changes nothing                   TestRefusesAtOnceAndChangesNothing
//	exactly MaxWait fits, exactly the deadline does not           TestExactlyMaxWaitFits, TestExactlyTheDeadlineDoesNotFit
//	nobody passes those who wait                                  TestNobodyPassesTheQueue
//	who leaves gives its place back                               TestField_RL10_…
//	granted or left, never both and never neither                 TestGrantAgainstLeave, TestField_RL12_LeavesAtItsDueInstant
//	a new rate plans those who wait anew                          TestSetRatePlansWaitersAnew, TestSetRate_L5_AgainstTheModel
//	a lower burst drops what is stored above it                   TestSetRateAndTheStore
//	a clock that goes back mints nothing and makes no long wait   TestClockGoingBackMintsNothing, TestField_RL03_…
//	extreme settings saturate                                     TestExtremeRatesSaturate
//	a free permit allocates nothing, a refusal its error at most  TestAllocations
package ratelimit
