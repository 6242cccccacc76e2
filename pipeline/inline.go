package pipeline

// Generic code is compiled in the package that uses it. Functions of a package
// which that one does not import are inlined there only if this package has done
// so first: the compiler hands their bodies on with what it has inlined itself
// (exportBody in cmd/compile/internal/noder/linker.go), and it compiles nothing
// generic here unless something here uses it. These uses do; without them a call
// through a pipeline costs a tenth more. The linker drops them.
var (
	_ = (*Pipeline[struct{}]).Execute
	_ = (*Pipeline[struct{}]).Run
	_ = (*Pipeline[struct{}]).ExecuteAsync
	_ = (*Pipeline[struct{}]).ExecuteFuture
	_ = (*Promise[struct{}]).Complete
	_ = (*Future[struct{}]).Get
	_ = (*Future[struct{}]).Cancel
)
