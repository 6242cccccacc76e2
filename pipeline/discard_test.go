package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/policy/fallback"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// bin is an OnDiscard hook that remembers.
type bin struct {
	mu     sync.Mutex
	values []int
}

func (b *bin) put(v int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values = append(b.values, v)
}

func (b *bin) got() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.values)
}

func always(int, error) bool { return true }

func TestField_TO11_T14_ALateValueIsDiscardedOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		step step
		want []int // discarded
	}{
		{"late", step{takes: 80 * ms, deaf: true, v: 7}, []int{7}},
		{"in time", step{takes: 10 * ms, v: 7}, nil},
		{"late, with an error", step{takes: 80 * ms, deaf: true, v: 7, err: errBoom}, nil},
		{"in time, with an error", step{takes: 10 * ms, v: 7, err: errBoom}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				var b bin
				p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
					return l.Timeout(20 * ms).OnDiscard(b.put)
				})
				_, err := a.call(a.Context(), p, a.plan(c.step).run)
				a.advance(s)
				if late := c.step.takes > 20*ms; errors.Is(err, timeout.ErrExceeded) != late {
					a.Errorf("got %v", err)
				}
				want := c.want
				if a.form == staged { // the stage was cancelled, Complete said so, and the value stays the producer's
					want = nil
				}
				if diff := cmp.Diff(want, b.got()); diff != "" {
					a.Error(diff)
				}
			})
		})
	}
}

// The value and the deadline come at the same moment, each from a goroutine of
// its own: what was produced is delivered or discarded, never both.
func TestField_TO11_T14_DeliveredAndDiscardedAddUp(t *testing.T) {
	const rounds = 2000
	for _, f := range forms {
		t.Run(string(f), func(t *testing.T) {
			w := newWorld(t)
			var b bin
			p := build(w, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] { return l.Timeout(s).OnDiscard(b.put) })
			delivered, kept := map[int]int{}, map[int]int{}
			for v := range rounds {
				entered, barrier := make(chan struct{}), make(chan struct{})
				var mu sync.Mutex
				fn := func(context.Context) (int, error) { close(entered); <-barrier; return v, nil }
				result := make(chan error, 1)
				over := make(chan struct{})
				go func() {
					var err error
					var got int
					switch f {
					case inline:
						got, err = p.Execute(t.Context(), fn)
					case async:
						fu := p.ExecuteAsync(t.Context(), fn)
						got, err = fu.Get(t.Context())
						<-fu.Work().Done()
					case staged:
						got, err = p.ExecuteFuture(t.Context(), func(ctx context.Context) *pipeline.Future[int] {
							promise := pipeline.NewPromise[int]()
							go func() {
								defer close(over)
								v, _ := fn(ctx)
								if !promise.Complete(v, nil) {
									mu.Lock()
									kept[v]++
									mu.Unlock()
								}
							}()
							return promise.Future()
						}).Get(t.Context())
						<-over
					}
					if err == nil {
						mu.Lock()
						delivered[got]++
						mu.Unlock()
					}
					result <- err
				}()
				<-entered
				if f == staged {
					_ = w.clk.AwaitTimers(t.Context(), 1)
				}
				advanced := make(chan struct{})
				go func() { <-barrier; w.clk.Advance(s); close(advanced) }()
				close(barrier)
				if err := <-result; err != nil && !errors.Is(err, timeout.ErrExceeded) {
					t.Fatal(err)
				}
				<-advanced
			}
			discarded := map[int]int{}
			for _, v := range b.got() {
				discarded[v]++
			}
			for v := range rounds {
				if delivered[v]+discarded[v]+kept[v] != 1 {
					t.Fatalf("value %d: delivered %d, discarded %d, left to its producer %d", v, delivered[v], discarded[v], kept[v])
				}
			}
			if len(delivered) == rounds || len(delivered) == 0 {
				t.Logf("%d of %d in time: no race", len(delivered), rounds)
			}
		})
	}
}

func TestConform_19_R13_T14_SupersededValuesAreDiscardedOnceEach(t *testing.T) {
	six := []step{{v: 1}, {v: 2}, {v: 3}, {v: 4}, {v: 5}, {v: 6}}
	for _, c := range []struct {
		name    string
		steps   []step
		retryIf func(int, error) bool
		opts    []retry.Option
		v       int
		err     error
		want    []int // discarded
	}{
		{"the last one comes back", six, always, []retry.Option{retry.MaxAttempts(6)}, 6, nil, []int{1, 2, 3, 4, 5}},
		{"good in the end", six, func(v int, _ error) bool { return v < 3 }, []retry.Option{retry.MaxAttempts(6)}, 3, nil, []int{1, 2}},
		{"stopped by time", six, always, []retry.Option{retry.MaxAttempts(6), retry.Constant(400 * ms), retry.MaxDuration(s)}, 3, nil, []int{1, 2}},
		{"stopped by the budget", six, always, []retry.Option{retry.MaxAttempts(6), retry.Budget(0, 2)}, 3, nil, []int{1, 2}},
		{"a value that RetryIf looked at, with its error", []step{{v: 1, err: errBoom}, {v: 2}}, func(_ int, err error) bool { return err != nil }, []retry.Option{retry.MaxAttempts(6)}, 2, nil, []int{1}},
		{"with their errors to the end", []step{{v: 1, err: errBoom}, {v: 2, err: errBoom}}, always, []retry.Option{retry.MaxAttempts(2)}, 0, errBoom, []int{1, 2}},
		{"an error that RetryIf lets pass brings its value", []step{{v: 1}, {v: 2, err: errBoom}}, func(_ int, err error) bool { return err == nil }, []retry.Option{retry.MaxAttempts(6)}, 2, errBoom, []int{1}},
		{"errors alone", []step{{v: 1, err: errBoom}, {v: 2}}, nil, []retry.Option{retry.MaxAttempts(6)}, 2, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				var b bin
				p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
					l.Retry(append([]retry.Option{retry.Constant(0)}, c.opts...)...).OnDiscard(b.put)
					if c.retryIf != nil {
						l.RetryIf(c.retryIf)
					}
					return l
				})
				r := a.start(a.Context(), p, a.plan(c.steps...).run)
				v, err := r.end()
				if r.future != nil { // the work's own outcome, less what was discarded
					v, over, err := r.future.Work().Poll()
					if v != c.v || !over || err != c.err { //nolint:errorlint // unchanged
						a.Errorf("work: %d, %v, %v; want %d, %v", v, over, err, c.v, c.err)
					}
				}
				if v != c.v || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					a.Errorf("got %d, %v; want %d, %v", v, err, c.v, c.err)
				}
				if diff := cmp.Diff(c.want, b.got()); diff != "" {
					a.Error(diff)
				}
				a.counted(map[bool]string{true: "succeeded", false: "failed"}[c.err == nil])
			})
		})
	}
}

// Who was superseded is not brought back when the next attempt has no success.
func TestDiscard_R8_R11_T14_ASupersededValueIsNotBroughtBack(t *testing.T) {
	for name, end := range map[string]func(a *arena, r *running, cancel func()){
		"cancelled in the backoff":    func(a *arena, _ *running, cancel func()) { a.advance(s); cancel() },
		"cancelled in the next":       func(a *arena, _ *running, cancel func()) { a.advance(3 * s); cancel() },
		"the next passes its timeout": func(a *arena, _ *running, _ func()) { a.advance(20 * s) },
		"closed in the backoff":       func(a *arena, _ *running, _ func()) { a.advance(s); _ = a.reg.Close() },
		"closed while the next is on": func(a *arena, _ *running, _ func()) { a.advance(3 * s); _ = a.reg.Close() },
		"MaxDuration ends the next":   func(a *arena, _ *running, _ func()) { a.advance(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				var b bin
				p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
					l.Retry(retry.MaxAttempts(2), retry.Constant(2*s), retry.MaxDuration(time.Minute)).RetryIf(func(v int, _ error) bool { return v == 1 }).OnDiscard(b.put)
					if name != "MaxDuration ends the next" {
						l.Timeout(10 * s)
					}
					return l
				})
				ctx, cancel := context.WithCancel(a.Context())
				defer cancel()
				r := a.start(ctx, p, a.plan(step{v: 1}, step{takes: time.Hour}).run)
				if diff := cmp.Diff([]int{1}, b.got()); diff != "" {
					a.Errorf("not discarded when it was superseded: %s", diff)
				}
				end(a, r, cancel)
				v, err := r.end()
				if v != 0 || err == nil {
					a.Errorf("got %d, %v", v, err)
				}
				a.advance(2 * time.Hour)
				if r.future != nil {
					if v, over, _ := r.future.Work().Poll(); v != 0 || !over {
						a.Errorf("A-2: Work gives %d, %v, which was discarded", v, over)
					}
				}
				// RetryIf may have looked at the zero value that came with the second
				// attempt's error.
				if diff := cmp.Diff([]int{1}, slices.DeleteFunc(b.got(), func(v int) bool { return v == 0 })); diff != "" {
					a.Errorf("discarded twice: %s", diff)
				}
			})
		})
	}
}

func TestAsync_A8_ALateResultDoesNotTouchTheNextAttempt(t *testing.T) {
	inForms(t, []form{async}, func(a *arena) {
		var b bin
		p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
			return l.Timeout(s).Retry(retry.MaxAttempts(2), retry.Constant(0)).OnDiscard(b.put)
		})
		fn := a.plan(step{takes: 1500 * ms, deaf: true, v: 1}, step{takes: 900 * ms, v: 2})
		r := a.start(a.Context(), p, fn.run)
		a.advance(1600 * ms)
		if r.ended() {
			a.Fatalf("ended by the first attempt's late result: %d, %v", r.v, r.err)
		}
		if diff := cmp.Diff([]int{1}, b.got()); diff != "" {
			a.Error(diff)
		}
		if err := fn.ctx(2).Err(); err != nil {
			a.Errorf("the second attempt's context: %v", err)
		}
		if v, err := r.end(); v != 2 || err != nil || r.over != 1900*ms {
			a.Errorf("got %d, %v at %v", v, err, r.over)
		}
		if v, over, err := r.future.Work().Poll(); v != 2 || !over || err != nil {
			a.Errorf("work: %d, %v, %v", v, over, err)
		}
		late := heard[pipeline.LateSuccess](a.world)
		if len(late) != 1 || late[0].Attempt != 1 || late[0].Late != 500*ms {
			a.Errorf("%+v", late)
		}
		a.counted("succeeded")
	})
}

func TestDiscard_T14_RunMakesNoValues(t *testing.T) {
	inForms(t, []form{inline}, func(a *arena) {
		var b bin
		p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
			return l.Timeout(s).Retry(retry.MaxAttempts(3), retry.Constant(0)).RetryIf(always).OnDiscard(b.put)
		})
		calls := 0
		_, err := a.call(a.Context(), p, func(ctx context.Context) (int, error) {
			return 0, p.Run(ctx, func(context.Context) error { calls++; return nil })
		})
		if err != nil || calls != 9 {
			a.Errorf("%d calls, %v", calls, err)
		}
		if got := b.got(); len(got) != 2 { // the outer call's own
			a.Errorf("discarded %v", got)
		}
	})
}

// A value beside an error has been looked at by RetryIf, and so is the call's own:
// whoever replaces it owes it to the hook. Nobody else does.
func TestDiscard_T14_O7_AValueBesideAnErrorThatIsReplaced(t *testing.T) {
	no := func(int, error) bool { return false }
	nine := func(context.Context, error) (int, error) { return 9, nil }
	fails := func(context.Context, error) (int, error) { return 0, errNotFound }
	for _, c := range []struct {
		name  string
		build layers
		v     int
		err   error
		want  []int // discarded
	}{
		{"by a fallback", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.RetryIf(no).Fallback(nine) }, 9, nil, []int{1}},
		{"by a fallback that fails", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.RetryIf(no).Fallback(fails) }, 0, errNotFound, []int{1}},
		{"delivered: no fallback", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.RetryIf(no) }, 1, errBoom, nil},
		{"delivered: skipped", func(b *pipeline.Builder[int]) *pipeline.Builder[int] {
			return b.RetryIf(no).Fallback(nine, fallback.SkipOn(errBoom))
		}, 1, errBoom, nil},
		{"nobody has looked", func(b *pipeline.Builder[int]) *pipeline.Builder[int] { return b.Fallback(nine) }, 9, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryForm(t, func(a *arena) {
				var b bin
				p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
					return c.build(l.Retry(retry.MaxAttempts(1)).OnDiscard(b.put))
				})
				v, err := a.call(a.Context(), p, returns(1, errBoom))
				if v != c.v || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					a.Errorf("got %d, %v; want %d, %v", v, err, c.v, c.err)
				}
				if diff := cmp.Diff(c.want, b.got()); diff != "" {
					a.Error(diff)
				}
			})
		})
	}
}

// The end of the call comes while RetryIf looks at the value beside an error.
func TestDiscard_T14_A6_AnEndWhileRetryIfLooks(t *testing.T) {
	for _, yes := range []bool{false, true} {
		for name, end := range map[string]func(f *pipeline.Future[int], cancel func()){
			"Cancel":  func(f *pipeline.Future[int], _ func()) { f.Cancel() },
			"context": func(_ *pipeline.Future[int], cancel func()) { cancel() },
		} {
			t.Run(fmt.Sprint(name, " ", yes), func(t *testing.T) {
				inEveryForm(t, func(a *arena) {
					if a.form == inline && name == "Cancel" {
						return // a future's
					}
					var b bin
					var r atomic.Pointer[running]
					ctx, cancel := context.WithCancel(a.Context())
					defer cancel()
					p := build(a.world, "x", func(l *pipeline.Builder[int]) *pipeline.Builder[int] {
						return l.Retry(retry.MaxAttempts(2), retry.Constant(0)).OnDiscard(b.put).RetryIf(func(int, error) bool {
							if a.form == inline { // there is no future that anybody could end
								cancel()
								return yes
							}
							end(r.Load().future, cancel)
							<-r.Load().future.Done()
							return yes
						})
					})
					r.Store(a.start(ctx, p, a.plan(step{takes: s, v: 1, err: errBoom}).run))
					a.advance(s)
					_, err := r.Load().end()
					a.is(err, context.Canceled, errBoom)
					if diff := cmp.Diff([]int{1}, b.got()); diff != "" {
						a.Error(diff)
					}
					if f := r.Load().future; f != nil {
						if v, over, err := f.Work().Poll(); v != 0 || !over || err != errBoom { //nolint:errorlint // the function's own
							a.Errorf("A-2: work: %d, %v, %v", v, over, err)
						}
					}
				})
			})
		}
	}
}
