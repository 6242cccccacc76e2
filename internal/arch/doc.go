// Package arch holds the rules about the shape of this repository that a compiler does not check: which package may
// import which, which modules the root module may require, where a policy keeps its types, and what every package owes
// its reader.
//
// It is used by its own tests only, which run with everybody else's: a wrong arrow fails go test ./... with a text that
// says which import is wrong and what the package may import instead. The table is [Rules]; adding a package means
// adding a row there.
//
// Guarantees, and the tests that prove them:
//
//	the tree of this repository keeps every rule        TestRepository
//	a wrong arrow is found, wherever it points          TestImportsFindsWrongArrow
//	a table of guarantees that lies is found            TestGuaranteesFindsTablesThatLie
//	an exported name without a comment is found         TestCommentsFindsNamesWithout
//	every other check finds what it is there to find    TestChecksFindWhatTheyAreFor
package arch
