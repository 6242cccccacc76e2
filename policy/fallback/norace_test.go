//go:build !race

package fallback_test

// raceEnabled says that the detector is on, under which allocations differ.
const raceEnabled = false
