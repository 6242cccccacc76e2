//go:build !race

package callctx_test

const raceEnabled = false
