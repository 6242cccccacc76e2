// Package readme keeps README.md and the pages of docs honest: each Go snippet in them must be a piece of source that
// the tests run, and each link to a file or a heading of this repository must lead somewhere.
//
// A snippet names its origin in an HTML comment on the line above its fence:
//
//	<!-- from: pipeline/example_test.go ExamplePipeline_Execute -->
//	<!-- from: examples/quickstart/main.go -->
//
// With a function, the block equals the body of that function without its braces, one level of indentation and the
// // Output: comment at its end. Without one, it equals the whole file. A Go block without an origin is an error. An
// origin may be in another module of the repository, such as bench/peers. To write all blocks from their origins:
//
//	go test ./internal/readme -run Snippets -update
//
// Guarantees, and the tests that prove them:
//
//	the pages' snippets equal tested source                   TestSnippetsComeFromTestedCode
//	the pages are short, but for those to look things up in   TestPagesAreShort
//	README.md has the two commands that .ci/run runs          TestREADMEHasItsCommands
//	links between the pages lead somewhere                    TestLinksLeadSomewhere, TestLinksFindsWhatLeadsNowhere
//	a block without origin is refused                         TestSnippetsNeedsAnOrigin
//	a snippet that differs from its origin is noticed         TestCheckNoticesEveryDifference
//	-update writes the origin and nothing else                TestUpdateWritesTheOrigins
package readme
