//go:build unix

package main

import (
	"syscall"
	"time"
)

func processUsage() (cpu time.Duration, wakeups int64) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), r.Nvcsw
}
