// Package pipeline puts a fixed order of policies around any function:
//
//	fallback > retry > circuit breaker > rate limiter > timeout > bulkhead > function
//
// The inner four run once per attempt. Build a [Pipeline] once per dependency
// and kind of call, with a registry that holds what pipelines share, and call it
// in one of three forms: [Pipeline.Execute] on the caller's goroutine,
// [Pipeline.ExecuteAsync] on one of its own, [Pipeline.ExecuteFuture] for work
// that somebody else completes.
//
// Do not use it to stop code that ignores its context: a sync call is asked to
// stop, an async one is given up while it runs on. What became of it stays
// visible: see [Work], the late events, and "abandoned" in the snapshot. And do
// not retry what may not be repeated: see package retry.
//
// To follow one call, read pipeline.go from top to bottom. The async forms take
// the same way without holding a goroutine while they wait: call.go, step.go,
// settle.go; who may end them from outside is in stop.go.
//
// # Guarantees
//
//	what                                                          proved by
//	never early; exact under a manual clock                       TestTimeout_T7_OneNanosecondDecides
//	a function that honors its context returns at the deadline    TestTimeout_T2_K1_AFunctionThatHonorsItsContextReturnsAtTheDeadline
//	a late value is discarded once, and told                      TestTimeout_T3_K2_ALateValueIsDiscardedOnce
//	the caller's own end is never a timeout                       TestField_TO03_TheCallersCancellationIsNoTimeout
//	a call that times out in a queue never runs                   TestField_TO07_ACallThatTimesOutInTheQueueNeverRuns
//	a future fails at its deadline, and the work is still known   TestAsync_A1_A2_TheFutureFailsAtTheDeadlineAndTheWorkGoesOn
//	a panic or Goexit in async code completes the future          TestAsync_A7_PanicAndGoexit
//	a stage is cancelled after its future has failed, once        TestStage_A9_AllFuturesFailBeforeTheSharedStageIsCancelledOnce
//	a closed registry ends what waits and refuses what comes      TestField_WH09_CloseEndsFuturesAndRefusesCalls
//	what is left of MaxDuration bounds attempts and delays        TestRetry_Seed1_R8_WhatIsLeftBoundsTheAttempts
//	a done context takes nothing from any layer                   TestField_TO02_O5_ADoneContextTakesNothingFromAnyLayer
//	what was produced is delivered or discarded, never both       TestField_TO11_T14_DeliveredAndDiscardedAddUp
//	every call counts once, by its final outcome                  TestCounts_S5_EveryCallOnceByItsFinalOutcome
//	all forms of a call do the same                               TestForms_AgreeOnRandomCalls
//
// What holds for every combination of layers, outcomes and forms is in
// internal/conform.
package pipeline
