package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/timeout"
)

// What Func does wrong is reported, once, and the configured limit holds. X-3
func TestFunc_APanicIsReported(t *testing.T) {
	m := clock.NewManual(noon)
	c := timeout.Config{Value: time.Second, Func: func(context.Context) time.Duration { panic("boom") }}
	p, events := listened(t, c, m)
	err := p.Do(t.Context(), func(ctx context.Context) error { return m.Sleep(ctx, time.Minute) })
	wantError(t, err, &timeout.Error{Instance: "reports", Limit: time.Second, Cause: context.DeadlineExceeded})
	if e, ok := (*events)[0].(policy.CallbackPanic); !ok || e.Value != "boom" || e.Policy() != "timeout" || e.ID() != "reports" || len(*events) != 2 {
		t.Errorf("events %v", *events)
	}
}

func TestFunc_GoexitGoesOn(t *testing.T) {
	p, m := newTimeout(t, time.Second, timeout.Func(func(context.Context) time.Duration { runtime.Goexit(); return 0 }))
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = p.Do(t.Context(), func(context.Context) error { t.Error("called"); return nil })
	}()
	if <-left; m.Pending() != 0 {
		t.Errorf("%v", m)
	}
}

func TestApply_TheLastOptionWins(t *testing.T) {
	c := timeout.Config{Value: time.Second}
	if keys := c.Apply(); keys != nil || c.Func != nil {
		t.Errorf("no option sets %v", keys)
	}
	if keys := c.Apply(nil); keys != nil {
		t.Errorf("a nil option sets %v", keys)
	}
	says := func(d time.Duration) timeout.Option {
		return timeout.Func(func(context.Context) time.Duration { return d })
	}
	keys := c.Apply(says(1), nil, says(2))
	if !slices.Equal(keys, []string{"func"}) || c.Func(t.Context()) != 2 || c.Value != time.Second {
		t.Errorf("keys %v, says %v", keys, c.Func(t.Context()))
	}
	if c.Apply(timeout.Func(nil)); c.Func != nil {
		t.Error("somebody is asked although the last Func is nil")
	}
	if got := fmt.Sprint(says(1)); got != "Func" {
		t.Errorf("an option prints as %s", got)
	}
}

func TestNew_JoinsAllMistakes(t *testing.T) {
	_, err := timeout.New("reports ", timeout.Config{Value: -1}, nil)
	var paths []string
	for _, e := range policy.ConfigErrors(err) {
		paths = append(paths, e.Path)
		if e.ID != "reports " || e.Policy != "timeout" || e.Hint == "" {
			t.Errorf("mistake %#v", e)
		}
	}
	if want := []string{"clk", "id", "value"}; !slices.Equal(paths, want) {
		t.Errorf("mistakes in %v, want %v", paths, want)
	}
}

// A call that was never entered is told apart, for those who would make it
// elsewhere.
func TestExpired_StartedIsFalseInAQueue(t *testing.T) {
	p, events := listened(t, timeout.Config{Value: time.Second}, clock.NewManual(noon))
	err, tell := p.Expired(t.Context(), time.Second, false)
	if err.Started() || !policy.NotStarted(err) || len(*events) != 0 {
		t.Errorf("started %v, events %v", err.Started(), *events)
	}
	tell()
	if e, ok := (*events)[0].(timeout.Exceeded); !ok || e.WorkDone || e.Limit != time.Second || len(*events) != 1 {
		t.Errorf("events %v", *events)
	}
	if err := p.Exceeded(t.Context(), time.Second, true, false, nil); !err.Started() || !errors.Is(err, timeout.ErrExceeded) {
		t.Errorf("%v, started %v", err, err.Started())
	}
	wantTimedOut(t, p, 2)
	deaf, _ := newTimeout(t, time.Second)
	if _, tell := deaf.Expired(t.Context(), time.Second, true); tell != nil {
		t.Error("something to tell although nobody listens")
	}
}
