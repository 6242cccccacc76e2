//go:build !race

package circuitbreaker_test

// raceEnabled says that the detector is on, under which allocations differ.
const raceEnabled = false
