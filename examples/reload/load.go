package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
)

// load is a number of goroutines that call through one pipeline without pause.
type load struct {
	reg     *registry.Registry
	reports *pipeline.Pipeline[string]
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	inside int
	most   int           // inside at once since the last reset
	more   chan struct{} // closed and made anew when most rises
	errs   []error
}

func startLoad(ctx context.Context, reg *registry.Registry) (*load, error) {
	p, err := pipeline.Configured[string](reg, "reports").Build()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &load{reg: reg, reports: p, end: cancel, more: make(chan struct{})}
	for range callers {
		l.running.Go(func() {
			for ctx.Err() == nil {
				if _, err := l.reports.Execute(ctx, l.report); err != nil && ctx.Err() == nil {
					l.mu.Lock()
					l.errs = append(l.errs, err)
					l.mu.Unlock()
				}
			}
		})
	}
	return l, nil
}

// report is the protected function. It counts how many run at once.
func (l *load) report(context.Context) (string, error) {
	l.mu.Lock()
	l.inside++
	if l.inside > l.most {
		l.most = l.inside
		close(l.more)
		l.more = make(chan struct{})
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inside--
	}()
	time.Sleep(time.Millisecond) // the dependency
	return "report", nil
}

// peak waits until as many calls as want run at once, and fails if ctx ends before
// or if there are more of them. After a limit was lowered, the calls that hold a
// permit may end first.
func (l *load) peak(ctx context.Context, want int) (int, error) {
	if err := l.settle(ctx, want); err != nil {
		return 0, err
	}
	for {
		l.mu.Lock()
		most, more := l.most, l.more
		l.mu.Unlock()
		if most > want {
			return most, fmt.Errorf("%d calls at once, and the limit is %d", most, want)
		}
		if most == want {
			return most, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return most, fmt.Errorf("%d calls at once, not %d: %w", most, want, ctx.Err())
		}
	}
}

// settle waits until no more than limit permits are in use, and counts from there.
// It asks the bulkhead and not l.inside: a caller with a permit of the old limit
// may not have come as far as the function yet.
func (l *load) settle(ctx context.Context, limit int) error {
	for ctx.Err() == nil {
		if l.reg.Snapshot().Bulkheads[0].InUse <= limit {
			l.mu.Lock()
			l.most = 0
			l.mu.Unlock()
			return nil
		}
		time.Sleep(100 * time.Microsecond)
	}
	return ctx.Err()
}

// stop ends the callers and waits for them.
func (l *load) stop() {
	l.end()
	l.running.Wait()
}

// err returns what went wrong for the callers.
func (l *load) err() error { return errors.Join(l.errs...) }
