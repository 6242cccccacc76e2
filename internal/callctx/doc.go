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
// The wheel puts [Firing] into the slot while it settles the context; those who
// look meanwhile wait for the few instructions that this takes.
//
// # Guarantees
//
//	what                                                           proved by
//	Deadline is the earlier of the caller's and ours               TestDeadlineIsTheEarlierOne
//	Err after our deadline is DeadlineExceeded, Cause is the plan's TestExpiryIsSeenByDerivedContexts
//	the caller's end passes through with error and cause           TestTheCallersEndPassesThrough
//	after the call: Canceled, nothing left on the caller's context TestAfterTheCallNothingStaysRegistered
//	derived contexts cost no goroutine                             TestDerivedContextsCostNoGoroutine
//	a retained context stays safe                                  TestARetainedContextStaysSafe
//	Err never changes once it was seen, and agrees with Finish     TestFinishAgainstExpireHasOneWinner
//	one allocation of 64 bytes                                     TestOneAllocationOf64Bytes
package callctx
