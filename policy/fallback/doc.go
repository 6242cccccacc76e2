// Package fallback decides which errors a pipeline's fallback is for: the
// outermost layer, which is asked once, after the last attempt, for a value in
// place of the error that the caller would get.
//
// The function itself is given to the pipeline's builder, because it returns
// the pipeline's own type:
//
//	pipeline.New[Report](reg, "reports").
//		Fallback(cached, fallback.On(circuitbreaker.ErrOpen, timeout.ErrExceeded)).
//
// Without options the fallback is for every error but the caller's own
// cancellation or deadline: who has left needs no answer. A closed registry is
// never an occasion for it.
//
// # When not to use it
//
// Not to hide that something is wrong: a fallback that always works makes an
// outage look like health, but for fallback.applied in the snapshot and the
// [Applied] event. Not for writes, where "the old value" is a lie. Not for work
// that can fail or hang like the first one did: no timeout bounds it, so give it
// a pipeline of its own if it calls out.
//
// # Guarantees
//
//	what                                                      proved by
//	SkipOn wins, On or If must match if given (O-7)           TestWhichErrorsAFallbackIsFor
//	never for a closed registry, whatever the options (O-7)   TestClosedRegistryIsNeverAnOccasion
//	not for the caller's own end unless asked (O-7)           TestWhichErrorsAFallbackIsFor
//	if it fails too, errors.Is finds both errors (O-7)        TestJoinKeepsBothErrorsReachable
//	a panicking If is contained and is no match         TestPanickingIfIsNoMatchAndIsToldOnce
package fallback
