package pipeline_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// form is how a call is made.
type form string

const (
	inline form = "Execute"
	async  form = "ExecuteAsync"
	staged form = "ExecuteFuture"
)

var forms = []form{inline, async, staged}

// arena is a world in a synctest bubble, for what holds in every form of a call
// and on every clock: the bubble says when all that runs has come to a wait.
type arena struct {
	*world
	form   form
	manual *clock.Manual // passive; nil: the system's clock, as the bubble has it
	clock  clock.Clock
	begun  time.Time
}

// inEveryForm runs the test once for each form and clock.
func inEveryForm(t *testing.T, test func(a *arena)) {
	t.Helper()
	inForms(t, forms, test)
}

func inForms(t *testing.T, forms []form, test func(a *arena)) {
	t.Helper()
	for _, clk := range []string{"system", "manual"} {
		for _, f := range forms {
			t.Run(clk+"/"+string(f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(newArena(t, f, clk == "manual")) })
			})
		}
	}
}

func newArena(t *testing.T, f form, manual bool) *arena {
	t.Helper()
	a := &arena{world: &world{T: t, clk: clock.NewManual(epoch).Passive()}, form: f, clock: clock.System()}
	if manual {
		a.manual, a.clock = a.clk, a.clk
	}
	reg, err := registry.New(registry.WithClock(a.clock), registry.WithListener(a.hear))
	if err != nil {
		t.Fatal(err)
	}
	a.reg, a.begun = reg, a.clock.Now()
	t.Cleanup(func() {
		synctest.Wait()
		a.mustBeSettled()
	})
	return a
}

func (a *arena) at() time.Duration { return a.clock.Now().Sub(a.begun) }

// advance lets d pass, with everything that happens meanwhile.
func (a *arena) advance(d time.Duration) {
	synctest.Wait()
	if a.manual == nil {
		_ = a.clock.Sleep(context.Background(), d)
		synctest.Wait()
		return
	}
	until := a.manual.Now().Add(d)
	for next, ok := a.manual.Next(); ok && !next.After(until); next, ok = a.manual.Next() {
		a.manual.Set(next)
		synctest.Wait()
	}
	a.manual.Set(until)
	synctest.Wait()
}

// withTimeout is context.WithTimeout on the arena's clock.
func (a *arena) withTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	if a.manual == nil {
		return context.WithTimeout(a.Context(), d)
	}
	ctx, cancel := context.WithCancel(a.Context())
	c := &deadlineCtx{Context: ctx, end: a.manual.Now().Add(d), done: make(chan struct{})}
	c.over = sync.OnceFunc(func() {
		c.err = context.DeadlineExceeded
		if ctx.Err() != nil {
			c.err = ctx.Err()
		}
		close(c.done)
	})
	t := a.manual.AfterFunc(d, c.over)
	return c, func() { t.Stop(); cancel(); c.over() }
}

// deadlineCtx is a context with a deadline on a manual clock.
type deadlineCtx struct {
	context.Context
	end  time.Time
	done chan struct{}
	over func()
	err  error // written before done is closed
}

func (c *deadlineCtx) Deadline() (time.Time, bool) { return c.end, true }
func (c *deadlineCtx) Done() <-chan struct{}       { return c.done }
func (c *deadlineCtx) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// running is a call under way.
type running struct {
	a      *arena
	future *pipeline.Future[int] // nil for Execute
	done   chan struct{}
	over   time.Duration // when it ended

	v        int
	err      error
	panicked any
}

// start makes a call, and returns when it waits or has ended.
func (a *arena) start(ctx context.Context, p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) *running {
	r := &running{a: a, done: make(chan struct{})}
	switch a.form {
	case async:
		r.future = p.ExecuteAsync(ctx, fn)
	case staged:
		r.future = p.ExecuteFuture(ctx, stageOf(fn))
	case inline:
	}
	go func() {
		defer close(r.done)
		defer func() { r.over = a.at() }()
		if r.future != nil {
			r.v, r.err = r.future.Get(context.Background())
			return
		}
		defer func() { r.panicked = recover() }()
		r.v, r.err = p.Execute(ctx, fn)
	}()
	synctest.Wait()
	return r
}

// stageOf has fn's work done by somebody else.
func stageOf(fn func(context.Context) (int, error)) func(context.Context) *pipeline.Future[int] {
	return func(ctx context.Context) *pipeline.Future[int] {
		p := pipeline.NewPromise[int]()
		go func() {
			p.Complete(fn(ctx))
		}()
		return p.Future()
	}
}

// ended reports whether the call has ended.
func (r *running) ended() bool {
	synctest.Wait()
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// end waits for the call's end and returns its result. Time passes as needed.
func (r *running) end() (int, error) {
	r.a.Helper()
	for !r.ended() {
		if r.a.manual == nil {
			<-r.done
			continue
		}
		next, ok := r.a.manual.Next()
		if !ok {
			r.a.Fatal("the call hangs: nothing is pending")
		}
		r.a.manual.Set(next)
	}
	return r.v, r.err
}

// call makes a call and waits for its end.
func (a *arena) call(ctx context.Context, p *pipeline.Pipeline[int], fn func(context.Context) (int, error)) (int, error) {
	a.Helper()
	return a.start(ctx, p, fn).end()
}

// step is what a function does in one attempt.
type step struct {
	takes  time.Duration
	deaf   bool // it does not look at its context
	v      int
	err    error
	panics any
}

// work is a function with a plan: one step for each attempt, the last one for
// all that follow.
type work struct {
	a     *arena
	steps []step

	mu   sync.Mutex
	at   []time.Duration // when each attempt began
	ctxs []context.Context
}

func (a *arena) plan(steps ...step) *work { return &work{a: a, steps: steps} }

// fails is a plan of n failures; then it returns 7.
func (a *arena) fails(n int) *work {
	w := a.plan()
	for range n {
		w.steps = append(w.steps, step{err: errBoom})
	}
	w.steps = append(w.steps, step{v: 7})
	return w
}

func (w *work) run(ctx context.Context) (int, error) {
	w.mu.Lock()
	s := w.steps[min(len(w.at), len(w.steps)-1)]
	w.at = append(w.at, w.a.at())
	w.ctxs = append(w.ctxs, ctx)
	w.mu.Unlock()
	if s.deaf {
		ctx = context.Background()
	}
	if err := w.a.clock.Sleep(ctx, s.takes); err != nil {
		return 0, err
	}
	if s.panics != nil {
		panic(s.panics)
	}
	return s.v, s.err
}

func (w *work) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.at)
}

// began returns when each attempt began.
func (w *work) began() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.at...)
}

// ctx is the context of attempt n, from 1.
func (w *work) ctx(n int) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ctxs[n-1]
}

var errClosed = registry.ErrClosed
