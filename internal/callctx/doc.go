// Package callctx is the context that a protected function receives. It costs
// one allocation of 64 bytes; a done channel is made when somebody asks for it;
// it holds no runtime timer and no goroutine. Not for anything but one attempt
// of one call: it ends when the attempt has returned.
//
// # Who decides how it ends
//
// A context with a deadline lies in a slot: an atomic pointer that the timer
// wheel owns. "Live" means that the slot still points to the context. Whoever
// takes it out with a compare-and-swap decides: the call, when it returns, or
// the wheel, when the deadline has passed. The address that is compared belongs
// to a context which the comparing side still holds, so the garbage collector
// rules out that another context has the same one (no ABA). That would end the
// day contexts were pooled; they never are, so what a function retains stays
// safe for ever.
//
// A context without a deadline has no slot. There the call stores that it has
// finished, then looks for a watch; whoever makes a watch or cancels looks in the
// reverse order. So either the call finds the watch, and the two settle by
// compare-and-swap on its end, or the others find that the call has finished.
//
// The wheel puts [Firing] into the slot while it settles the context; those who
// look meanwhile wait for the few instructions that this takes. No foreign code
// runs in between, and none ever runs with a lock held.
//
// A decision is told afterwards: the channel is closed and those who registered
// are called, once, by whoever decided, or by the call when it returns. Readers
// of Err decide, too, that the caller's context has ended; they close the
// channel and call nobody.
//
// # What a derived context costs
//
// No goroutine, where it is derived from this context: the standard library
// finds the AfterFunc method. Below a value (context.WithValue, then
// context.WithCancel) it can't, and starts one per context until that is
// cancelled, as for any context that is not its own.
//
// # Guarantees
//
//	what                                                           proved by
//	Deadline is the earlier of the caller's and ours               TestDeadlineIsTheEarlierOne
//	Err after our deadline is DeadlineExceeded, Cause is the plan's TestExpiryIsSeenByDerivedContexts
//	the caller's end passes through with error and cause           TestTheCallersEndPassesThrough
//	our deadline is void after the caller's end                    TestOurDeadlineIsVoidAfterTheCallersEnd
//	after the call: Canceled, nothing left on the caller's context TestAfterTheCallNothingStaysRegistered, TestAFinishedContextIsCollectableWhileItsParentLives
//	derived contexts cost no goroutine                             TestDerivedContextsCostNoGoroutine
//	a retained context stays safe                                  TestARetainedContextStaysSafe
//	Err and Cause never change once seen, and agree with Finish    TestFinishAgainstExpireHasOneWinner, TestAnAnswerThatWasGivenStands, TestTheCauseThatWasSeenStands
//	where Err is not nil, Done is closed                           TestFinishAgainstExpireHasOneWinner, TestFinishInTheMiddle
//	the end is there before the slot is free                       TestTheEndComesBeforeTheSlotIsFree
//	every child is told, whenever it comes                         TestChildrenThatComeWhileItEndsAreTold
//	a foreign parent that panics, blocks or exits harms nobody else TestForeignParentWhoseErrPanics, TestForeignParentWhoseErrBlocks, TestForeignParentWhoseErrExitsTheGoroutine
//	foreign code runs with no lock held                            TestForeignParentThatEndsUsWhileWeRegister, TestForeignParentWhoseDoneDoesNotReturn
//	another synctest bubble's channel is never touched             TestNobodyTouchesAnotherBubblesChannel
//	one idempotency key for all attempts of a call          TestIdempotencyKey_R15_IsOneForAllAttempts
//	one allocation of 64 bytes                                     TestOneAllocationOf64Bytes
package callctx
