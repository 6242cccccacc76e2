// Package docs has no code. It holds the pages of this folder, and the tests that their Go blocks come from: each block
// names its origin, and internal/readme compares the two. The figures that the pages give are computed by tests as well.
//
// Begin with README.md. Do not import the package.
package docs
