package bulkhead_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
)

// B-5: a Release too many panics with a clear text and changes nothing.
func TestRelease_B5_OverReleasePanicsAndChangesNothing(t *testing.T) {
	overRelease := func(p *bulkhead.Policy) (value any) {
		defer func() { value = recover() }()
		p.Release()
		return nil
	}
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 2, Queue: 1, MaxWait: unbounded})
	mustAcquire(t, p)
	p.Release()
	before := countsOf(p)
	for range 3 {
		text, _ := overRelease(p).(string)
		if !strings.HasPrefix(text, `bulkhead "b": Release without a slot in use`) {
			t.Fatalf("panicked with %q", text)
		}
	}
	if diff := cmp.Diff(before, countsOf(p)); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}

	// The same while somebody waits for the limit to rise.
	setLimit(t, p, 0)
	w := enqueue(t, p, unbounded)
	if overRelease(p) == nil {
		t.Error("no panic while somebody waits")
	}
	if w.State() != waitq.Waiting || p.Snapshot().Waiting != 1 {
		t.Errorf("the waiter was touched: state %v", w.State())
	}
	setLimit(t, p, 2)
	<-w.woken
	mustAcquire(t, p)
	if p.TryAcquire() {
		t.Error("an over-release made a slot")
	}
}

// B-6: lowering never blocks, and admits nobody until enough have left; available
// reads 0 and never less.
func TestSetLimit_B6_LoweringAdmitsNobodyUntilEnoughHaveLeft(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 5, Queue: unbounded, MaxWait: unbounded})
	for range 5 {
		mustAcquire(t, p)
	}
	setLimit(t, p, 2)
	w := enqueue(t, p, unbounded)
	for inUse := 5; inUse > 2; inUse-- {
		want := counts{Limit: 2, InUse: inUse, Waiting: 1, Admitted: 5}
		if diff := cmp.Diff(want, countsOf(p)); diff != "" {
			t.Errorf("%d in use (-want +got)\n%s", inUse, diff)
		}
		p.Release()
		if w.State() != waitq.Waiting {
			t.Fatalf("admitted with %d in use and a limit of 2", inUse-1)
		}
	}
	p.Release() // 2 were in use: the waiter takes this place
	<-w.woken
	want := counts{Limit: 2, InUse: 2, Admitted: 6}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, snapshot := p.Config().MaxConcurrent, p.Snapshot().Config.MaxConcurrent; got != 2 || snapshot != 2 { // S-1
		t.Errorf("in force: %d, in the snapshot %d, want 2", got, snapshot)
	}
}

// B-6: raising wakes waiters at once, in order, as many as there is room for.
func TestSetLimit_B6_RaisingWakesAtOnceInOrder(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: unbounded, MaxWait: unbounded})
	mustAcquire(t, p)
	var line []queued
	for range 5 {
		line = append(line, enqueue(t, p, unbounded))
	}
	setLimit(t, p, 4)
	for i, w := range line {
		if granted := w.State() == waitq.Granted; granted != (i < 3) {
			t.Errorf("waiter %d: granted = %v", i, granted)
		}
	}
	setLimit(t, p, 100)
	for _, w := range line {
		<-w.woken
	}
	want := counts{Limit: 100, InUse: 6, Available: 94, Admitted: 6}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// B-6: SetLimit(0) is legal and lets nobody in; a negative limit is an error.
func TestSetLimit_B6_ZeroIsLegalNegativeIsNot(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 1})
	setLimit(t, p, 0)
	if p.TryAcquire() {
		t.Error("admitted with limit 0")
	}
	var refusal *bulkhead.Error
	if err := p.Acquire(t.Context()); !errors.As(err, &refusal) || refusal.Limit != 0 {
		t.Errorf("got %v, want a refusal that names limit 0", err)
	}
	var mistake *policy.ConfigError
	if err := p.SetLimit(-1); !errors.As(err, &mistake) || mistake.Code != "R4C-ATR-003" || mistake.ID != "b" {
		t.Errorf("SetLimit(-1) = %v", err)
	}
	if diff := cmp.Diff(counts{Rejected: 2}, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	setLimit(t, p, 1)
	mustAcquire(t, p)
}

func TestSetLimitTakesTheLargestNumbers(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: math.MaxInt})
	mustAcquire(t, p)
	want := counts{Limit: math.MaxInt, InUse: 1, Available: math.MaxInt - 1, Admitted: 1}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	setLimit(t, p, 1)
	if p.TryAcquire() {
		t.Error("admitted over the limit")
	}
}

// B-6: after SetLimit has lowered the limit, no call gets in under the old one,
// however the two race: what a reader sees in use never grows above the limit.
func TestSetLimit_B6_NobodySlipsInUnderTheOldLimit(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 8})
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if p.TryAcquire() {
					p.Release()
				}
			}
		})
	}
	for range 500 {
		setLimit(t, p, 0)
		for last := p.Snapshot().InUse; last > 0; runtime.Gosched() {
			now := p.Snapshot().InUse
			if now > last {
				t.Errorf("in use rose from %d to %d under limit 0", last, now)
			}
			last = now
		}
		admitted := p.Snapshot().Admitted
		if got := p.Snapshot(); got.InUse != 0 || got.Admitted != admitted {
			t.Errorf("admitted under limit 0: %+v", got)
		}
		setLimit(t, p, 4)
	}
	close(stop)
	callers.Wait()
}

// G-7: limit and queue may change on the living bulkhead; a waiter keeps its place
// and the wait it queued with; an invalid configuration changes nothing.
func TestReconfigure_G7_KeepsPlacesAndWaits(t *testing.T) {
	p, m := newPassive(t, bulkhead.Config{MaxConcurrent: 1, Queue: 3, MaxWait: 100 * ms})
	mustAcquire(t, p)
	first := acquire(t.Context(), p)
	awaitSleepers(t, m, 1)
	second, third := enqueue(t, p, 100*ms), enqueue(t, p, 100*ms)
	// The line is longer now than the new queue: all stay, nobody joins.
	if err := p.Reconfigure(bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: 10 * ms}); err != nil {
		t.Fatal(err)
	}
	m.Advance(99 * ms)
	if got := p.Snapshot(); got.Waiting != 3 || got.Config.Queue != 1 || got.Config.MaxWait != 10*ms {
		t.Errorf("%+v", got)
	}
	var e *bulkhead.Error
	if err := p.Acquire(t.Context()); !errors.As(err, &e) || e.Queue != 1 {
		t.Errorf("a newcomer got %v", err)
	}

	before := p.Snapshot()
	err := p.Reconfigure(bulkhead.Config{MaxConcurrent: 0, Queue: -5})
	if errs := policy.ConfigErrors(err); len(errs) != 2 || errs[0].ID != "b" {
		t.Errorf("invalid: %v", err)
	}
	if diff := cmp.Diff(before, p.Snapshot()); diff != "" {
		t.Errorf("an invalid configuration changed something\n%s", diff)
	}

	// A higher limit grants at once, in order.
	if err := p.Reconfigure(bulkhead.Config{MaxConcurrent: 3, Queue: 1, MaxWait: 10 * ms}); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Errorf("first in line: %v", err)
	}
	<-second.woken
	if third.State() != waitq.Waiting {
		t.Errorf("third in line: state %v", third.State())
	}
	m.Advance(1 * ms) // 100 since it queued
	<-third.woken
	if third.State() != waitq.Refused {
		t.Errorf("third in line: state %v after its own wait", third.State())
	}
}

// G-7: a limit set at run time stays, unless MaxConcurrent itself changed. The
// configuration says what is in force.
func TestReconfigure_G7_KeepsALimitSetAtRunTime(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 5})
	setLimit(t, p, 2)
	for i, step := range []struct{ give, want bulkhead.Config }{
		{bulkhead.Config{MaxConcurrent: 5, Queue: 7}, bulkhead.Config{MaxConcurrent: 2, Queue: 7}},
		{bulkhead.Config{MaxConcurrent: 5}, bulkhead.Config{MaxConcurrent: 2}},
		{bulkhead.Config{MaxConcurrent: 2}, bulkhead.Config{MaxConcurrent: 2}},
		{bulkhead.Config{MaxConcurrent: 5}, bulkhead.Config{MaxConcurrent: 5}}, // 2 was configured meanwhile
		{bulkhead.Config{MaxConcurrent: 6, Queue: 7}, bulkhead.Config{MaxConcurrent: 6, Queue: 7}},
		{bulkhead.Config{MaxConcurrent: 4}, bulkhead.Config{MaxConcurrent: 4}},
	} {
		if err := p.Reconfigure(step.give); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, p.Config()); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", i, diff)
		}
		want := bulkhead.Snapshot{ID: "b", Config: step.want, Limit: step.want.MaxConcurrent, Available: step.want.MaxConcurrent}
		if diff := cmp.Diff(want, p.Snapshot()); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", i, diff)
		}
	}
}

// S-2: the admitted count goes on where the field in the state word ends.
func TestAdmittedIsExactAcrossCarries(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 3})
	for i := range 4 * bulkhead.Carried {
		mustAcquire(t, p)
		if got := p.Snapshot().Admitted; got != i+1 {
			t.Fatalf("admitted %d, want %d", got, i+1)
		}
		p.Release()
	}
}

// S-2: the same with many callers at once: monotone meanwhile, exact at the end.
func TestAdmittedIsMonotoneUnderLoad(t *testing.T) {
	p, _ := newPassive(t, bulkhead.Config{MaxConcurrent: 3, Queue: 2, MaxWait: unbounded})
	const callers, calls = 8, 5 * bulkhead.Carried / 2
	var wg sync.WaitGroup
	var mu sync.Mutex
	var admitted, rejected uint64
	for range callers {
		wg.Go(func() {
			var in, out uint64
			for range calls {
				if p.Acquire(t.Context()) != nil {
					out++
					continue
				}
				in++
				p.Release()
			}
			mu.Lock()
			defer mu.Unlock()
			admitted, rejected = admitted+in, rejected+out
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	watch(t, p, done)
	got := countsOf(p)
	want := counts{Limit: 3, Available: 3, Admitted: admitted, Rejected: rejected}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if admitted+rejected != callers*calls {
		t.Errorf("%d admitted and %d rejected of %d calls", admitted, rejected, callers*calls)
	}
}

// watch checks S-2 on snapshots until done is closed.
func watch(tb testing.TB, p *bulkhead.Policy, done <-chan struct{}) {
	tb.Helper()
	var last bulkhead.Snapshot
	for {
		select {
		case <-done:
			return
		default:
		}
		s := p.Snapshot()
		if s.InUse < 0 || s.InUse > s.Limit || s.Available != s.Limit-s.InUse {
			tb.Fatalf("slots: %+v", s)
		}
		if s.Waiting < 0 || s.Config.Queue >= 0 && s.Waiting > s.Config.Queue {
			tb.Fatalf("queue: %+v", s)
		}
		if s.Admitted < last.Admitted || s.Rejected < last.Rejected || s.Admitted < uint64(s.InUse) {
			tb.Fatalf("counters: %+v after %+v", s, last)
		}
		last = s
	}
}
