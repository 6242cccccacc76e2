// Package conform holds what is true of every policy, and of every stack of
// them, whichever way it is called: one suite, in tests alone. Nothing imports
// it. Not for what one policy promises by itself: that is tested beside it.
//
// A rule is written once, in the words of the semantics, and runs against each
// policy, behind a pipeline (Execute, ExecuteAsync, ExecuteFuture) and, where it
// can be used so, on its handle.
//
// # Guarantees
//
//	what                                                              proved by
//	each rule holds for each policy in each form                      TestSuite
//	64 stacks × outcomes × forms: nothing lost, all counted, none left TestMatrix
//	grant against cancel, 100,000 rounds a form: no slot is lost      TestField_BH11_GrantAgainstCancel
//	completion against deadline: delivered + discarded = produced     TestField_TO11_CompletionAgainstDeadline
//	completion, deadline, Cancel and Close at once: one of them wins  TestEndsAtOnce
//	a million mixed calls: every snapshot consistent, all comes back  TestStress
//
// # The long forms
//
//	go test -race ./internal/conform -run TestStress -timeout 1h -args -calls 1000000
//	go test -race ./internal/conform -run 'TestField|TestEndsAtOnce' -timeout 1h -args -rounds 100000
package conform
