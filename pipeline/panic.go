package pipeline

import (
	"errors"
	"fmt"
)

// PanicError is how a future completes when its function panicked. The sync
// forms never make one: there a panic passes through with its own value.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // where, as from runtime/debug.Stack
}

// Error says what the function panicked with; the stack is in its field.
func (e *PanicError) Error() string {
	return fmt.Sprintf("pipeline: the function panicked: %v", e.Value)
}

// Unwrap returns the value if the function panicked with an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

var (
	// ErrGoexit is how a future completes when its function called
	// runtime.Goexit, as t.FailNow does.
	ErrGoexit = errors.New("pipeline: the function called runtime.Goexit")

	// ErrNilStage is how a future completes when the function given to
	// ExecuteFuture returned nil.
	ErrNilStage = errors.New("pipeline: the function returned a nil stage")
)
