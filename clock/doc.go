// Package clock is the time that this module lives by: every timeout, backoff,
// wait and window reads a [Clock], so that a test can hold time in its hand.
//
//   - [System] is the wall clock and the default everywhere.
//   - [Manual] moves only when told to. A test on one goroutine runs through
//     hours of timeouts and backoffs at once, with exact results.
//   - [From] adapts a clock of github.com/benbjohnson/clock.
//
// # When not to use it
//
// Code under test that reads time by itself (time.Sleep, context.WithTimeout, a
// client's own timers) does not see a Manual; put such a test into a
// testing/synctest bubble with the system clock instead, which serves this
// module just as well. Bubbles are also the better choice where many goroutines
// work at once. A Manual is the better one for stepping through a single call,
// and where a bubble cannot be used. It is no clock for production: one lock
// guards it.
//
// # Testing with a Manual
//
// A slow dependency is a call of Sleep with the context that the function
// received:
//
//	clk := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
//	… // a pipeline on clk with a timeout of two seconds, and in its function:
//	err := clk.Sleep(ctx, 5*time.Second) // ends with ctx at exactly two seconds
//
// Sleep drives the clock through whatever is due on the way, the timeout
// included. Advance in its place is code that ignores its context: the clock
// ends at five seconds and the result comes too late. Pending() == 0 at the end
// of the test proves that no timer was left behind.
//
// When several goroutines take part (ExecuteAsync starts one), a Passive clock
// lets one of them move time for all: the others park in Sleep, AwaitSleepers
// and AwaitTimers tell when they have got there, Advance moves on.
//
// # Guarantees
//
//	K-1  Sleep fires in order, Now() is each deadline,   TestManualSleep_K1_StopsAtTheInstantTheContextEnds,
//	     and stops at the instant its context ends       TestManualSleep_K1_TieGoesToTheContext
//	     or one that its context was derived from        TestManualSleep_K1_HearsThroughDerivedContexts,
//	                                                     TestManualPassive_K1_HearsThroughDerivedContexts,
//	                                                     TestManualAwaitSleepers_K6_ForgetsThoseWithDerivedContexts
//	     a context that is done without an error has     TestSleepAndWait_K1_DoneWithoutAnErrorIsCanceled
//	     ended: context.Canceled
//	K-2  Advance takes no notice of contexts             TestManualAdvance_K2_IgnoresTheInterrupt
//	K-3  what was due is done when Advance returns, on   TestManualAdvance_K3_FiresOnTheAdvancingGoroutine,
//	     its goroutine; ties in arming order; callbacks  TestManualAdvance_K3_TiesFireInArmingOrder,
//	     may use every method, and may panic             TestManualCallback_K3_MayUseEveryMethod, TestField_CL01_CallbackUsesItsClock,
//	                                                     TestManualCallback_PanicLeavesTheClockUsable
//	K-4  time never goes back; overlapping and nested    TestManualAdvance_K4_ConcurrentCallsAddUp,
//	     Advances add up                                 TestManualAdvance_K4_NestedCallsAddUp, TestManualNow_K4_NeverGoesBack
//	K-5  Wait drives event by event, parks without one   TestManualWait_K5_DrivesUntilReady, TestManualWait_K5_ParksWithoutEvents
//	     and never jumps
//	K-6  AwaitSleepers never counts one that was woken   TestManualAwaitSleepers_K6_ForgetsTheWokenAtOnce
//	     a far deadline never fires early                TestManualAfterFunc_FarDeadlinesNeverFireEarly
//	     Stop reports true only if it prevented the call TestManualStop_ReportsWhetherItPreventedTheCall,
//	                                                     TestFromMock_StopIsTrueOnlyIfTheCallWasPrevented
//	     all of it agrees with a simple model            FuzzManual
//	     nothing hangs in a synctest bubble              TestBubble
package clock
