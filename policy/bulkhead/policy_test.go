package bulkhead_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
)

func TestErrorIsARefusalBeforeTheStart(t *testing.T) {
	p, _ := newManual(t, bulkhead.Config{MaxConcurrent: 1})
	mustAcquire(t, p)
	err := fmt.Errorf("calling: %w", p.Acquire(t.Context()))
	var e policy.Error
	if !errors.As(err, &e) || e.Policy() != "bulkhead" || e.ID() != "b" || e.Started() {
		t.Errorf("%+v", e)
	}
	if !errors.Is(err, bulkhead.ErrFull) || errors.Is(err, context.DeadlineExceeded) || !policy.NotStarted(err) {
		t.Errorf("%v matches the wrong things", err)
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*bulkhead.Error{
		`bulkhead "reports": full (limit 10, queue 20)`:            {Instance: "reports", Limit: 10, Queue: 20},
		`bulkhead "a\"b": full (limit 0)`:                          {Instance: `a"b`},
		`bulkhead "b": full after waiting 100ms (limit 1)`:         {Instance: "b", Limit: 1, Queue: -1, Waited: 100 * ms},
		`bulkhead "b": full after waiting 1m0s (limit 1, queue 5)`: {Instance: "b", Limit: 1, Queue: 5, Waited: time.Minute},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A refusal publishes one Full with the context of its call, by every way in;
// TryAcquire has no context, and only counts.
func TestFullIsPublishedWithTheCallsContext(t *testing.T) {
	p, s, m, l := newIn(t, bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: 10 * ms})
	type key struct{}
	ctxOf := func(name string) context.Context { return context.WithValue(t.Context(), key{}, name) }
	mustAcquire(t, p)

	_ = p.TryAcquire()
	_ = p.Enter(ctxOf("no wait"), 0)
	_, _ = p.EnterAsync(ctxOf("no wait, async"), 0, waitq.New(nil))

	result := make(chan error, 1)
	go func() { result <- p.Acquire(ctxOf("waited")) }()
	awaitSleepers(t, m, 1)
	_ = p.Acquire(ctxOf("queue full"))
	_, _ = p.EnterAsync(ctxOf("queue full, async"), time.Hour, waitq.New(nil))
	m.Advance(10 * ms)
	if err := <-result; !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("waited: %v", err)
	}

	w := queued{woken: make(chan struct{})}
	w.Waiter = waitq.New(func() { close(w.woken) })
	if entered, err := p.EnterAsync(ctxOf("waited, async"), 20*ms, w.Waiter); entered || err != nil {
		t.Fatal(entered, err)
	}
	m.Advance(20 * ms)
	<-w.woken

	// No refusals: cancelled, closed.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = p.Enter(ctx, unbounded)
	s.Close()
	_ = p.Enter(t.Context(), unbounded)

	var got []string
	ctxs := l.Contexts()
	for i, e := range l.Events() {
		full, ok := e.(bulkhead.Full)
		if !ok || full.Policy() != "bulkhead" || full.ID() != "b" {
			t.Errorf("event %d: %#v", i, e)
		}
		got = append(got, fmt.Sprint(ctxs[i].Value(key{}), " at ", full.At().Sub(start)))
	}
	want := []string{
		"no wait at 0s", "no wait, async at 0s", "queue full at 0s", "queue full, async at 0s",
		"waited at 10ms", "waited, async at 30ms",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := p.Snapshot().Rejected; got != 7 {
		t.Errorf("rejected %d, want 7", got)
	}
}

// a listener is called with no lock held, and a panic costs nothing.
func TestListener_X3_MayCallBackAndPanic(t *testing.T) {
	var p *bulkhead.Policy
	heard := 0
	s := scope.New(clock.NewManual(start), func(_ context.Context, e policy.Event) {
		if _, ok := e.(bulkhead.Full); ok {
			heard++
			p.Release()
			setLimit(t, p, 2)
			_ = p.Snapshot()
			panic("boom")
		}
	})
	p, err := bulkhead.NewIn(s, "b", bulkhead.Config{MaxConcurrent: 1})
	if err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, p)
	if err := p.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := p.Snapshot(); heard != 1 || got.Available != 2 {
		t.Errorf("heard %d, %+v", heard, got)
	}
}

// closing ends every wait at once with ErrClosed, later waits too; a free
// slot is still given, slots in use are given back, refusals stay refusals.
func TestClose_X1_EndsEveryWait(t *testing.T) {
	p, s, m, l := newIn(t, bulkhead.Config{MaxConcurrent: 1, Queue: 2, MaxWait: time.Hour})
	mustAcquire(t, p)
	sync := acquire(t.Context(), p)
	awaitSleepers(t, m, 1)
	async := enqueue(t, p, time.Hour)
	s.Close()
	s.Close()
	if err := <-sync; !errors.Is(err, scope.ErrClosed) {
		t.Errorf("sync waiter: %v", err)
	}
	<-async.woken
	if async.State() != waitq.Refused || !errors.Is(async.Err(), scope.ErrClosed) || p.Leave(async.Waiter) {
		t.Errorf("async waiter: %v, %v", async.State(), async.Err())
	}
	if m.Pending() != 0 {
		t.Error(m)
	}
	if err := p.Acquire(t.Context()); !errors.Is(err, scope.ErrClosed) {
		t.Errorf("a later wait: %v", err)
	}
	if entered, err := p.EnterAsync(t.Context(), unbounded, waitq.New(nil)); entered || !errors.Is(err, scope.ErrClosed) {
		t.Errorf("a later async wait: %v, %v", entered, err)
	}
	if err := p.Enter(t.Context(), 0); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("a later call that would not wait: %v", err)
	}
	p.Release()
	if err := p.Acquire(t.Context()); err != nil {
		t.Errorf("a later call with a free slot: %v", err)
	}
	want := counts{Limit: 1, InUse: 1, Admitted: 2, Rejected: 1}
	if diff := cmp.Diff(want, countsOf(p)); diff != "" || l.Len() != 1 {
		t.Errorf("%d events (-want +got)\n%s", l.Len(), diff)
	}
}

func TestClose_X1_BeforeItIsMade(t *testing.T) {
	_, s, _, _ := newIn(t, bulkhead.Config{MaxConcurrent: 1})
	s.Close()
	p, err := bulkhead.NewIn(s, "late", bulkhead.Config{MaxConcurrent: 1, Queue: 1, MaxWait: unbounded})
	if err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, p)
	if err := p.Acquire(t.Context()); !errors.Is(err, scope.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestAcquireWithoutAContextPanicsAndTakesNothing(t *testing.T) {
	p, _ := newManual(t, bulkhead.Config{MaxConcurrent: 1})
	func() {
		defer func() {
			if text, _ := recover().(string); text != "bulkhead: nil ctx in Acquire" {
				t.Errorf("panicked with %q", text)
			}
		}()
		_ = p.Acquire(nil) //nolint:staticcheck // the mistake itself
	}()
	if diff := cmp.Diff(counts{Limit: 1, Available: 1}, countsOf(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// S-3: the keys of the snapshot's JSON are fixed.
func TestSnapshot_S3_JSON(t *testing.T) {
	p, _ := newManual(t, bulkhead.Config{MaxConcurrent: 10})
	mustAcquire(t, p)
	got, err := json.Marshal(p.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"b","config":{"maxConcurrent":10,"queue":0,"maxWait":"0s"},` +
		`"limit":10,"inUse":1,"available":9,"waiting":0,"admitted":1,"rejected":0}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLogValues(t *testing.T) {
	p, _ := newManual(t, bulkhead.Config{MaxConcurrent: 1, Queue: 2})
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		},
	}))
	log.Info("", "s", p.Snapshot())
	log.Info("", "err", &bulkhead.Error{Instance: "b", Limit: 1, Queue: 2, Waited: time.Second})
	log.Info("", "e", bulkhead.Full{Meta: policy.NewMeta("bulkhead", "b", start)})
	want := []string{
		"s.id=b s.limit=1 s.inUse=0 s.available=1 s.waiting=0 s.admitted=0 s.rejected=0",
		"err.policy=bulkhead err.id=b err.limit=1 err.queue=2 err.waited=1s",
		"e.policy=bulkhead e.id=b",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(text.String()), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
