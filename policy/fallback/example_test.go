package fallback_test

import (
	"errors"
	"fmt"

	"resilience4cata.dev/go/policy/fallback"
)

// When the fallback fails too, the caller can ask for either error.
func ExampleJoin() {
	unreachable, noCache := errors.New("backend unreachable"), errors.New("nothing cached")
	err := fallback.Join(unreachable, noCache)
	fmt.Println(err)
	fmt.Println(errors.Is(err, unreachable), errors.Is(err, noCache))
	// Output:
	// fallback failed: nothing cached (asked because of: backend unreachable)
	// true true
}

// Options are data: they add up, and print as they are written.
func ExampleConfig_Apply() {
	unreachable, notFound := errors.New("unreachable"), errors.New("not found")
	opts := []fallback.Option{fallback.On(unreachable), fallback.SkipOn(notFound)}
	c := fallback.Default()
	fmt.Println(opts)
	fmt.Println(c.Apply(opts...), c.On, c.SkipOn)
	// Output:
	// [on["unreachable"] skipOn["not found"]]
	// [on skipOn] [unreachable] [not found]
}

// A sentinel that was not set yet is found before the first call.
func ExampleConfig_Validate() {
	var errNotSet error
	c := fallback.Default()
	c.Apply(fallback.On(errNotSet))
	fmt.Println(c.Validate())
	// Output: fallback: on[0]: nil is no error (give the error to compare with) [R4C-ATR-003]
}
