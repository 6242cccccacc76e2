package stripe

import "unsafe"

// Hint returns a number that spreads goroutines: a hash of the address of a
// local variable, so of the caller's stack. It costs about a nanosecond where
// a random number costs ten. Goroutines that start from the same place have
// different stacks; one goroutine gets the same number until its stack moves,
// so that code which probes from it must not probe deterministically: 64
// futures started by one goroutine all begin at the same place.
//
// The pointer is turned into a number and never back: the variable stays on the
// stack, and the number means nothing. Stacks are at least 2 KiB apart, hence
// the shift; the multiplier is 2^64 divided by the golden ratio (Fibonacci
// hashing, Knuth, The Art of Computer Programming, volume 3, section 6.4).
func Hint() uint32 {
	var x byte
	return uint32(uint64(uintptr(unsafe.Pointer(&x))>>10) * 0x9E3779B97F4A7C15 >> 32)
}
