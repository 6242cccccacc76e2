// Package registry holds the pipelines of a program and the policies that they
// share, by id: it gives them one clock, one timer wheel, one configuration and
// one place to look.
//
// A program makes one registry with [New], builds its pipelines on it (see
// package pipeline) before it starts to serve, asks [Registry.Check] whether the
// settings contradict each other, and keeps it until it ends. [Registry.Drain]
// and [Registry.Close] are for programs that end in an orderly way; neither is
// needed for the garbage collector.
//
// Two pipelines that name the same instance, as by ratelimit.Name("backend"),
// share its limit, its rate, its window or its budget. The first one that is
// built makes the instance. One that gives only the name joins it; one that gives
// settings must give the same. What belongs to the layer is each pipeline's own:
// how long to wait, and what to retry. The queue of a bulkhead is the instance's:
// if nobody gives it, it is there for those layers that have a wait. A queue that
// a later layer gives holds for the layers that are built from then on.
//
// Do not make an id for each user, tenant or request: ids live as long as the
// registry. Do not make a registry for each call; for a single policy without a
// pipeline call New of its package. A registry that is used inside a synctest
// bubble must be made there.
//
// # Guarantees
//
//	what                                                           proved by
//	a rush for one id makes one instance                           TestField_CF03_ARushMakesOneInstance
//	other settings for an id name both values and both places      TestField_CF05_OtherSettingsAreAnError
//	layers that share a bulkhead wait as each of them says         TestBuild_B2_G1_LayersThatShareABulkheadWaitAsEachSays
//	a mistake registers nothing, and all come at once              TestField_CF10_AMistakeRegistersNothing
//	a reload changes all or nothing; handles and state survive     TestReload_G7_…
//	each value says where it came from                             TestExplain_G9_…
//	contradictions are found, with the arithmetic                  TestCheck_G8_…
//	a snapshot shares nothing, and lists are never null            TestField_SN02_ASnapshotSharesNothing
//	a snapshot of ten thousand instances puts nothing in order     TestSnapshot_S1_TenThousandInstances
//	numbers hold together while calls run                          TestSnapshot_S2_NumbersHoldTogether
//	Close ends what waits, from anywhere, and waits for nothing    TestField_WH09_…
//	Drain waits for calls and abandoned work, however many drain   TestDrain_X1_…
//	no goroutine is left, also without Close                       TestMain, TestBubble…
package registry
