//go:build race

package bulkhead_test

const raceEnabled = true
