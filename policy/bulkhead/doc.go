// Package bulkhead bounds how many calls run at once, so that one slow
// dependency cannot take all connections, memory or goroutines of a process. A
// call that finds no free slot is refused at once, or waits in a strict first-in,
// first-out queue that is bounded by number, by time, or both.
//
// It bounds concurrency, not rate: a thousand calls a second that take a
// millisecond each need one slot. When not to use it:
//
//   - to bound calls a second, which is what package ratelimit does;
//   - where a pool bounds the same thing already, such as a database's
//     connections, unless a refusal at once is better than the pool's own wait;
//   - one per user or request: an instance lives as long as its registry;
//   - to limit several processes together: it knows of this one only;
//   - as a mutual exclusion with MaxConcurrent(1) around code that calls itself:
//     the inner call waits for the outer one.
//
// In a pipeline the bulkhead is the innermost layer: waiting for a slot counts
// against the timeout, each attempt of a retry comes in anew at the back of the
// queue, and the slot stands for running work. An asynchronous function that goes
// on after its timeout keeps the slot until it has returned; see [FreeOnTimeout].
//
// # Waiting
//
//	options               waits
//	neither               nobody
//	Queue(n)              n calls, each as long as its context allows
//	MaxWait(d)            any number of calls, each at most d
//	both                  n calls, each at most d
//	a zero of either      nobody
//
// In a [Config] written out by hand 0 means no waiting and -1 no bound of its
// kind, so it has to give both.
//
// Where layers share a bulkhead, the queue is the bulkhead's and the wait each
// layer's own. A queue that nobody gives is there for those that have a wait; if
// it is given, a layer without a wait waits as long as its context allows.
//
// # Guarantees
//
//	what                                                  proved by
//	never more inside than the limit, whatever the rush   TestField_BH03_B1_RushNeverExceedsTheLimit
//	the queue is exact under a rush                       TestField_BH09_QueueIsExactUnderARush
//	nobody passes one who waits                           TestWait_B2_NoNewcomerPassesAWaiter
//	a grant that meets a cancellation has one winner      TestField_BH11_B3_GrantAgainstCancel
//	those who gave up take no place and no slot           TestField_BH01_…, TestField_BH08_…, TestQueue_B7_…
//	lowering the limit never blocks, raising wakes        TestSetLimit_B6_…
//	no call gets in under a limit that was taken away     TestSetLimit_B6_NobodySlipsInUnderTheOldLimit
//	a Release too many panics and changes nothing         TestRelease_B5_OverReleasePanicsAndChangesNothing
//	snapshots are consistent, counters exact              TestAdmittedIsMonotoneUnderLoad
//	a wait takes part in a manual clock's time            TestWait_K5_…, TestEnterAsync_K3_…
//	closing the registry ends every wait                  TestClose_X1_EndsEveryWait
//	no allocation on success nor on refusal               TestAllocations
//	any sequence of commands does what a plain model does FuzzCommands
package bulkhead
