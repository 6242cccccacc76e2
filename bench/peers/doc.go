// Package peers holds benchmarks of this library beside others, and beside what
// people write by hand. It is a module of its own, so that nobody who uses the
// library downloads the others.
//
// Each benchmark is one operation. Its sub-benchmarks are the ways to do it, in
// one file and next to each other: lib=ours and the peers. All have the same
// settings, and each peer gets its cheapest form that does the same: what can be
// made before the loop is made before it. Benchmarks whose names end in Parallel
// call from all processors and are meant for -cpu 1,2.
//
//	go run ./cmd/compare          the table of ratios, with all passes
//	go run ./cmd/compare -quick   the same in under a minute, less exact
//	go test -bench 'FullStack$'   one operation
package peers
