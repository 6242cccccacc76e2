// Package readme keeps README.md honest: each Go snippet in it must be a piece of source that the tests run.
//
// A snippet names its origin in an HTML comment on the line above its fence:
//
//	<!-- from: pipeline/example_test.go ExamplePipeline_Execute -->
//	<!-- from: examples/quickstart/main.go -->
//
// With a function, the block equals the body of that function without its braces, one level of indentation and the
// // Output: comment at its end. Without one, it equals the whole file. A Go block without an origin is an error.
//
// Guarantees, and the tests that prove them:
//
//	the README's snippets equal tested source                 TestSnippetsComeFromTestedCode
//	it is short and has the two commands that .ci/run runs    TestREADMEIsShort, TestREADMEHasItsCommands
//	a block without origin is refused                         TestSnippetsNeedsAnOrigin
//	a snippet that differs from its origin is noticed         TestCheckNoticesEveryDifference
package readme
