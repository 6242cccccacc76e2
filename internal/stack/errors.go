package stack

import "errors"

// ErrBuilder is returned by a Check to say that the builder has mistakes of its
// own, which it reports itself: the registry adds its own to them and registers
// nothing.
var ErrBuilder = errors.New("stack: the builder has mistakes of its own")

// Check is asked, before anything is registered, whether the layers that the
// pipeline will have are enough for the builder's hooks.
type Check func(hasRetry, hasBreaker bool) error
