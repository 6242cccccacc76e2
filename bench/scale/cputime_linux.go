package main

import (
	"syscall"
	"time"
	"unsafe"
)

// clockThreadCPU is CLOCK_THREAD_CPUTIME_ID of clock_gettime(2).
const clockThreadCPU = 3

// threadTime is the processor time that this thread has had. The difference of
// two readings on a locked thread is what was done in between, whatever else ran
// on the machine. On other systems it is the time of day, which is not.
func threadTime() time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
