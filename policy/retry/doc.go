// Package retry calls a function again after it has failed. It bounds how often
// (MaxAttempts), for how long (MaxDuration, the caller's deadline), how fast
// (backoff, jitter, the server's hints) and how much all callers together may
// add to the load (Budget).
//
// # When not to use it
//
//   - Where the work may not be repeated. "May be retried" and "may be repeated"
//     are different questions: this package's rules answer the first, and only
//     the author of the work can answer the second. An error after a timeout or
//     a lost connection says nothing about what the other side has done. Use
//     [IdempotencyKey] with a server that honors it, a unique constraint, or
//     look before the next attempt; see [Attempt].
//   - At more than one level of a stack: three attempts on three levels are 27
//     calls. Retry next to the fault, or give every level a [Budget].
//   - Against overload without a [Budget] and jitter: retries are what turns a
//     short overload into a long one.
//
// # What is retried
//
// By default every error, timeouts included, except
//
//   - one marked by [Permanent];
//   - any error once the caller's own context has ended. That is judged by the
//     context, never by the error: a driver's own DeadlineExceeded is retried;
//   - the refusal of an open breaker, and of a full bulkhead if there is no delay,
//     unless [On] names it;
//   - a closed registry's ErrClosed and [ErrBudget];
//   - a panic, which passes through.
//
// [On] and [If] narrow that, [AbortOn] and [AbortIf] win over them. Matching is
// by errors.Is, so wrapped and joined errors are found.
//
// # What comes out
//
// The function's error that the rules do not retry comes back unchanged. If no
// attempt entered the function, the last refusal does. Every other unsuccessful
// end is an [*Error] with the reason and the function's last error.
//
// # Delays
//
// The delay after attempt n is a pure function of the settings, n and one random
// number: the backoff, capped, spread by the jitter, capped again. A hint of the
// server, a RetryAfter method on the error ([policy.RetryAfterer]), prolongs it
// up to the cap. A delay that does not fit in the time left, exactly the limit
// included, is not begun.
//
// # Guarantees
//
//	what                                                             proved by
//	never more than MaxAttempts calls, the first included            TestMaxAttemptsCountsTheFirstCall
//	sleeps lie between attempts only                                 TestField_RE04_SleepsLieBetweenAttempts
//	delays never overflow to zero or below, nor pass the cap         TestField_RE01_BackoffNeverOverflows, FuzzSchedule
//	without a cap or jitter, delays only grow                        TestScheduleIsMonotoneAndBounded
//	no attempt and no delay begins that cannot fit                   TestMaxDurationIsOneBudget
//	a running attempt ends with MaxDuration                          TestField_RE10_MaxDurationEndsTheRunningAttempt
//	a cancelled delay ends at once, with both errors                 TestCancelDuringTheDelay
//	over ten seconds, retries ≤ ratio × calls, plus the floor        TestBudgetNeverExceedsItsRatio
//	a mark never leaks into an outer retry                           TestField_RE12_PermanentStopsAtTheEdge
//	a success costs no allocation and, without time or budget, no    TestBeginAllocatesNothing,
//	reading of the clock                                             TestSuccessReadsNoClock
//	nothing is left behind                                           TestMain
package retry
