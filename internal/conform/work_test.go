package conform_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
)

var (
	errBoom     = errors.New("boom")
	errGone     = errors.New("the client went away")
	errFallback = errors.New("the fallback failed")
)

// form is one of the ways to call a pipeline.
type form string

const (
	direct form = "sync"
	async  form = "async"
	staged form = "stage"
)

var forms = []form{direct, async, staged}

// work is what a protected function does: it takes some time and then returns an
// error or a value, a new one each time.
type work struct {
	clk      clock.Clock
	takes    time.Duration
	stubborn bool // it does not look at its context, a stage not at its cancel
	err      error
	panics   any
	goexit   bool

	entered   atomic.Int64
	produced  atomic.Int64 // values that it got rid of, so that somebody must get them
	cancelled atomic.Int64 // stages
}

func (w *work) begin() {
	w.entered.Add(1)
	if w.panics != nil {
		panic(w.panics)
	}
	if w.goexit {
		runtime.Goexit()
	}
}

// run is the work as a function.
func (w *work) run(ctx context.Context) (int, error) {
	w.begin()
	if w.stubborn {
		ctx = context.Background()
	}
	if w.takes > 0 {
		if err := w.clk.Sleep(ctx, w.takes); err != nil {
			return 0, err
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return int(w.produced.Add(1)), nil
}

// start is the work as a stage. One that is not stubborn never ends once it was
// cancelled.
func (w *work) start(context.Context) *pipeline.Future[int] {
	w.begin()
	p := pipeline.NewPromise[int]()
	if w.takes == 0 {
		w.complete(p)
		return p.Future()
	}
	timer := w.clk.AfterFunc(w.takes, func() { w.complete(p) })
	p.OnCancel(func() {
		w.cancelled.Add(1)
		if !w.stubborn {
			timer.Stop()
		}
	})
	return p.Future()
}

func (w *work) complete(p *pipeline.Promise[int]) {
	if w.err != nil {
		p.Complete(0, w.err)
		return
	}
	// Counted first: whoever gets the value may look at once. One that was not
	// taken stays ours.
	if !p.Complete(int(w.produced.Add(1)), nil) {
		w.produced.Add(-1)
	}
}
