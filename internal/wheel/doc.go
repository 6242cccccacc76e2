// Package wheel keeps the deadlines of calls in flight: one lock-free timer
// wheel, shared by all timeouts of a registry. Arming and disarming a deadline
// is one compare-and-swap each, reads no clock while calls are frequent, and
// allocates nothing.
//
// Not for deadlines that need precision (a deadline fires up to two ticks late,
// a tick being 1 to 50 ms), not for fake clocks (they have ordered queues of
// their own), and not for a few timers an hour: there [time.AfterFunc] is as
// good.
//
// # Model
//
// A call in flight lies in a slot. A slot is an atomic pointer; 64 of them make
// a block, and every block keeps a lower bound of the deadlines in it. Blocks
// make a segment, segments a level; there is one level per magnitude of timeout,
// so that a million calls of 30 s are not looked through on behalf of one of
// 16 ms. A finished call clears its slot, and nothing of it is left: memory
// follows the calls in flight, never rate times timeout.
//
// A tick reads the clock, records it under the tick's number, and visits the
// blocks that are due. A call that starts between ticks j and j+1 notes j. Its
// deadline is the time of tick j+1 plus its limit: never early, because tick j+1
// read the clock after the call began, however long anything stalled; at most a
// tick late, and found due at the next tick: two ticks. (Hashed and hierarchical
// wheels: Varghese and Lauck, SOSP 1987. Here the levels do not cascade: each
// has exact deadlines and its own bound.)
//
// When calls are rare the wheel goes quiet: it stops ticking, calls read the
// clock, and one timer is set to the earliest bound. When nothing is pending
// there is no timer. There is never a goroutine at rest.
//
// # Guarantees
//
//	what                                                    proved by
//	never early, whatever stalls                            TestStalledTicksNeverFireEarly, TestNeverEarlyOnRealClock, FuzzAgainstHeap
//	at most two ticks late plus scheduling                  FuzzAgainstHeap, TestNeverEarlyOnRealClock
//	far and huge deadlines do not wrap                      TestField_WH02_HugeLimitsNeverFire, TestField_WH03_FarDeadlinesAreNeverEarly
//	no wake is lost when the wheel goes quiet or wakes      TestNoWakeIsLostBetweenModes
//	a finished call leaves nothing behind                   TestField_WH06_FinishedCallsLeaveNothing
//	a start or an arm in the middle of a tick is safe       TestArmInTheMiddleOfATick, TestWheelGoesQuietBetweenStartAndArm
//	one decision between finish and expiry                  TestFinishAgainstExpiry
//	a blocked or panicking expiry delays no other           TestField_WH08_PanicsAreContained, TestBlockedExpiryDelaysNoOther
//	Deadline agrees with the expiry and with itself         TestDeadlineIsFixedOnce, FuzzAgainstHeap
//	one goroutine's many entries do not make it grow        TestManyEntriesFromOneGoroutine
//	it shrinks after a peak; no entry is lost meanwhile     TestShrinksAfterPeak, TestStaleArmKeepsItsSegmentOrLeaves
//	no goroutine at rest, no wake-up at rest                TestQuietAtRest, TestNoGoroutineWhileTicking
//	arm and finish allocate nothing                         TestArmAllocatesNothing
//
// # Bubbles
//
// A wheel must be used in the synctest bubble in which it was made, or outside
// bubbles if it was made outside. In a foreign bubble the clock runs before the
// wheel's beginning; [Wheel.Foreign] says so, and [Wheel.Start] refuses where it
// reads the clock. Nothing here kills the process then, but a deadline must be
// kept by a timer of the bubble's own.
package wheel
