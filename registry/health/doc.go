// Package health answers over HTTP how a registry is: its status, the reasons
// for it, and the snapshot.
//
// Mount the [Handler] where your own routes and your own access rules are; it
// registers itself nowhere:
//
//	mux.Handle("/healthz", health.Handler(reg))
//
// Do not use it as a liveness probe with critical instances: a process whose
// dependency is down does not get better by a restart. An open breaker or a full
// bulkhead is the library at work, so it only warns, unless the configuration
// marks the instance as critical.
//
// # Guarantees
//
//	what                                                          proved by
//	open, full and abandoned warn with 200; critical ones fail    TestHandler_S4_Status
//	no answer may be stored                                       TestHandler_S4_NoAnswerIsStored
//	GET and HEAD only                                             TestHandler_S4_Methods
//	an open breaker says when it tries again, unless by hand      TestHandler_S4_AnOpenBreakerSaysWhenTheNextProbeIs
//	policies in the words of events or of the configuration       TestHandler_S4_Filters
//	an unknown id is 404, with the nearest known one              TestHandler_S4_UnknownID
//	the body is the snapshot, with status and reasons             TestHandler_S3_TheBodyIsTheSnapshot
//	ten thousand instances are answered over a real connection    TestHandler_S1_TenThousandInstances
package health
