// Package scope is what a registry hands to its policies: the clock and a cheap
// reading of it, timers, deadlines, the one way to wait, the listener, and the
// news that the registry was closed. A policy that stands alone has a scope of
// its own. Not for users, and not for anything that is not a policy's.
//
// # Where deadlines are kept
//
// On the system clock a registry's scope has a wheel that all its calls share.
// Everywhere else a deadline is a timer of the clock: under a manual clock and
// others, where it is exact, and in the synctest bubble in which the scope was
// made. Other clocks than these promise no order among timers that are due at
// once. There, deadlines of one instant are also kept together: see moment.
//
// A scope that was made outside and is used in a bubble keeps the deadlines of
// calls there by timers of the bubble, from when their channel is asked for, or
// from the start where the wheel is quiet. That costs a reading of the clock,
// which a ticking wheel saves: there a call whose context is asked for nothing but
// Err is bound by real time. Make the registry in the bubble.
//
// # Guarantees
//
//	what                                                          proved by
//	a wait drives a manual clock and parks on the system's        TestWaitDrivesAManualClock
//	a grant wins over an ended context                            TestWaitEndsWithItsContext
//	a sleep ends at once when the scope closes                    TestSleepEndsWithClose
//	a hook that registers while the scope closes still runs, once TestOnCloseAfterCloseRunsAtOnce, TestOnCloseAgainstCloseRunsOnce
//	a panicking listener is contained and reported once           TestPublishContainsAPanickingListener
//	a panicking callback is contained, Goexit goes on             TestGuardContainsAPanic, TestGoexitOfACallbackGoesOn
//	an end matches the context's error and its cause              TestEndedMatchesErrorAndCause
//	a deadline is never early, and agrees with Deadline           TestArmExpiresAtTheLimit, TestArmUntilIsExact
//	a deadline that is set later begins then                      TestReserveHoldsWithoutADeadlineUntilBegin
//	nothing is left of a call that has ended                      TestFinishedBeforeTheLimitLeavesNothing
//	huge limits saturate                                          TestField_TO06_HugeLimitsSaturate, TestAfterSaturates
//	all that is due at once ends before what follows from it      TestSoonComesAfterAllThatIsDueNow
//	so also on a clock that promises no order                     TestMoment_A9_AllFuturesFailBeforeAStageIsCancelled, TestMoment_A9_FinishesAgainstExpiries
//	one that is stuck there holds up nobody                       TestMoment_X3_AStuckOneHoldsUpNobody, TestMoment_X3_GoexitLosesNothing
//	Each finds all that stay                                      TestEachFindsWhatStays
//	a foreign bubble has its own time and never kills the process TestForeignBubble_X2_DoneFiresAtTheBubblesTime, TestForeignBubble_X2_EndsFromOutside
//	nor do two of them                                            TestForeignBubble_X2_TwoBubbles, TestForeignBubble_X2_ManyAtOnce
//	a bubble of any age is known                                  TestBubble_X2_AScopeThatWasMadeInAnOldOneIsOfIt, TestForeignBubble_X2_AnOldOneIsForeign
//	readings of a clock that leaps go on                          TestNow_FarClocksNeitherWrapNorStop, TestNow_SaturatesAtBothEnds
package scope
