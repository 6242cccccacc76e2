// Package timeout bounds how long one attempt of a call may take. A sync call
// is asked to stop through its context and never killed; an async call's future
// fails at the deadline, whatever the function does.
//
// Use it where a dependency can hang and where waiting for ever is worse than
// an error. Do not use it to stop code that ignores its context: nothing in Go
// can. Prefer the client's own timeouts where it has them, and keep this one as
// the upper bound.
//
// An [Error] proves that the caller stopped waiting. It does not prove that the
// work stopped, and never that it had no effect: see Error.Started.
//
// # Guarantees
//
//	what                                                       proved by
//	never early; exact under a manual clock                    TestDo_T7_TheDeadlineItselfIsTooLate
//	a function that honors its context returns with its error  TestDo_T2_TheErrorCarriesTheFunctionsOwn
//	a function that ignores it runs to its end                 TestDo_T3_ALateValueIsDropped
//	the caller's own end is never reported as a timeout        TestDo_T10_TheCallersEndIsTheCallers
//	errors.Is(err, context.DeadlineExceeded), not Canceled     TestError_T9_Kinds
//	the function sees the earlier deadline, and the cause      TestDo_T11_TheFunctionSeesDeadlineAndCause
//	whatever comes after the deadline is a timeout             TestDo_T8_WhateverComesAfterIsATimeout
//	only the timeout that fired is named and counted           TestDo_T10_NestedTimeoutsNameTheOneThatFired
//	nothing of a call in time is left, or published            TestDo_T4_NothingIsLeft, TestExceeded_IsPublishedOnce
//	Func is asked once per attempt; if it panics, Value holds  TestConform_29_FuncIsAskedOncePerAttempt, TestFunc_APanicIsReported
//	one allocation on a registry's wheel                       TestDo_OneAllocationOnTheWheel
//	a negative or zero limit is refused                        TestConfig_T12_LimitsThatAreNone
//	the longest limit neither fires at once nor overflows      TestField_TO06_HugeLimitsDoNotFire
//	nothing stays armed after a panic or Goexit                TestField_TO10_PanicAndGoexitPassThrough
package timeout
