package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	bclock "github.com/benbjohnson/clock"

	"resilience4cata.dev/go/clock"
)

// nested hides the real clock's type, as a user's own wrapper would.
type nested struct{ bclock.Clock }

func TestFrom_RealClockIsTheSystemClock(t *testing.T) {
	if clock.From(bclock.New()) != clock.System() {
		t.Error("From(New()) is not System()")
	}
	if clock.From(bclock.NewMock()) == clock.System() {
		t.Error("From(Mock) is System()")
	}
	wrapped := clock.From(nested{bclock.New()})
	if wrapped == clock.System() {
		t.Error("a wrapper's own methods were bypassed")
	}
	if err := wrapped.Sleep(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func TestFrom_NilArgumentsPanicAtOnce(t *testing.T) {
	var none context.Context
	c := clock.From(bclock.NewMock())
	var mock *bclock.Mock
	for want, f := range map[string]func(){
		"clock: nil c in From":      func() { clock.From(nil) },
		"clock: nil *Mock in From":  func() { clock.From(mock) },
		"clock: nil ctx in Sleep":   func() { _ = c.Sleep(none, 0) },
		"clock: nil f in AfterFunc": func() { c.AfterFunc(1, nil) },
	} {
		if got := recovered(f); got != want {
			t.Errorf("recovered %v, want %q", got, want)
		}
	}
}

func TestFromMock_NowIsTheMocks(t *testing.T) {
	mock := bclock.NewMock()
	mock.Set(start)
	if got := clock.From(mock).Now(); !got.Equal(start) {
		t.Errorf("Now: %v", got)
	}
}

// sleepOn parks a Sleep on the mock and returns once its timer is armed: the
// clock that From sees reports it.
func sleepOn(ctx context.Context, mock *bclock.Mock, d time.Duration) <-chan error {
	armed := make(chan struct{})
	c := clock.From(reporting{mock, armed})
	res := async(func() error { return c.Sleep(ctx, d) })
	<-armed
	return res
}

type reporting struct {
	*bclock.Mock
	armed chan struct{}
}

func (r reporting) Timer(d time.Duration) *bclock.Timer {
	defer close(r.armed)
	return r.Mock.Timer(d)
}

func TestFromMock_SleepEndsWithTheMocksTime(t *testing.T) {
	mock := bclock.NewMock()
	res := sleepOn(t.Context(), mock, 5*time.Second)
	mock.Add(5*time.Second - 1)
	select {
	case err := <-res:
		t.Errorf("woke early: %v", err)
	default:
	}
	mock.Add(1)
	if err := <-res; err != nil {
		t.Error(err)
	}
}

func TestFromMock_SleepEndsWithItsContext(t *testing.T) {
	mock := bclock.NewMock()
	ctx, cancel := context.WithCancel(t.Context())
	res := sleepOn(ctx, mock, 5*time.Second)
	clock.From(mock).AfterFunc(2*time.Second, cancel)
	mock.Add(2 * time.Second)
	if err := <-res; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	mock.Add(time.Hour) // would hang, holding the Mock's lock, if the timer were still there and full
	if err := clock.From(mock).Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep with an ended context: %v", err)
	}
	if err := clock.From(mock).Sleep(t.Context(), 0); err != nil {
		t.Errorf("Sleep(0): %v", err)
	}
}

// Neither waits for the next Add, and the Mock does not go back.
func TestFromMock_AfterFuncZeroAndNegativeFireAtOnce(t *testing.T) {
	mock := bclock.NewMock()
	c := clock.From(mock)
	before := mock.Now()
	for _, d := range []time.Duration{0, -time.Hour} {
		fired := make(chan struct{})
		timer := c.AfterFunc(d, func() { close(fired) })
		<-fired
		if timer.Stop() {
			t.Errorf("AfterFunc(%v): Stop after the call: true", d)
		}
	}
	mock.Add(0)
	if got := mock.Now(); !got.Equal(before) {
		t.Errorf("the mock moved from %v to %v", before, got)
	}
}

func TestFromMock_AfterFuncAndStop(t *testing.T) {
	mock := bclock.NewMock()
	c := clock.From(mock)
	fired := make(chan struct{})
	timer := c.AfterFunc(time.Second, func() { close(fired) })
	stopped := c.AfterFunc(time.Second, func() { t.Error("stopped, yet called") })
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop: want true, then false")
	}
	mock.Add(time.Second)
	<-fired
	if timer.Stop() {
		t.Error("Stop after the call: true")
	}
}

// captured keeps what AfterFunc was given, to be called as the Mock calls it.
type captured struct {
	*bclock.Mock
	call func()
}

func (c *captured) AfterFunc(d time.Duration, f func()) *bclock.Timer {
	c.call = f
	return c.Mock.AfterFunc(d, f)
}

// The Mock picks a timer, unlocks, and calls its function whatever happens in
// between: there, its own Stop reports true although the call comes.
func TestFromMock_StopIsTrueOnlyIfTheCallWasPrevented(t *testing.T) {
	mock := &captured{Mock: bclock.NewMock()}
	c := clock.From(mock)
	called := 0
	timer := c.AfterFunc(time.Second, func() { called++ })
	if !timer.Stop() {
		t.Error("Stop before the call: false")
	}
	mock.call()
	if called != 0 {
		t.Error("called after Stop had reported true")
	}
	timer = c.AfterFunc(time.Second, func() { called++ })
	mock.call()
	if timer.Stop() {
		t.Error("Stop after the call: true")
	}
	mock.call()
	if called != 1 {
		t.Errorf("called %d times", called)
	}
}
