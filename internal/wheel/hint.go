package wheel

import "unsafe"

// hint spreads goroutines over the slots: a hash of the address of a local
// variable, so of the goroutine's stack (about 1.5 ns; a random number costs
// ten). Stacks are at least 2 KiB apart, hence the shift; the multiplier is 2^64
// divided by the golden ratio. The pointer becomes a number and never a pointer
// again.
//
// One goroutine gets one hint until its stack moves. So whoever finds his slot
// taken must go on at random: see Level.probe.
func hint() uint64 {
	var x byte
	return uint64(uintptr(unsafe.Pointer(&x))>>10) * 0x9E3779B97F4A7C15
}
