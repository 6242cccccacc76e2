package timeout_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/timeout"
)

func TestConfig_T12_LimitsThatAreNone(t *testing.T) {
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		errs := policy.ConfigErrors(timeout.Config{Value: d}.Validate())
		if len(errs) != 1 || errs[0].Code != "R4C-ATR-002" || errs[0].Path != "value" {
			t.Errorf("Validate with %v: %v, want R4C-ATR-002 of value", d, errs)
		}
		if _, err := timeout.New("reports", timeout.Config{Value: d}, clock.System()); err == nil {
			t.Errorf("New accepts %v", d)
		}
	}
	for _, d := range []time.Duration{1, time.Second, math.MaxInt64} {
		if err := (timeout.Config{Value: d}).Validate(); err != nil {
			t.Errorf("Validate with %v: %v", d, err)
		}
	}
	if err := timeout.Default().Validate(); err == nil {
		t.Error("the default is valid although it has no limit")
	}
}

func TestNew_RefusesBadArguments(t *testing.T) {
	for _, tc := range []struct {
		name, id string
		clk      clock.Clock
		path     string
	}{
		{"empty id", "", clock.System(), "id"},
		{"padded id", " reports", clock.System(), "id"},
		{"nil clock", "reports", nil, "clk"},
	} {
		p, err := timeout.New(tc.id, limit, tc.clk)
		if errs := policy.ConfigErrors(err); p != nil || len(errs) != 1 || errs[0].Path != tc.path {
			t.Errorf("%s: %v, %v; want a mistake in %s", tc.name, p, err, tc.path)
		}
	}
}

func TestError_T9_Kinds(t *testing.T) {
	own := errors.New("interrupted")
	e := &timeout.Error{Instance: "reports", Limit: 2 * time.Second, Cause: own}
	for target, want := range map[error]bool{
		timeout.ErrExceeded:      true,
		context.DeadlineExceeded: true,
		own:                      true,
		context.Canceled:         false,
	} {
		if got := errors.Is(e, target); got != want {
			t.Errorf("errors.Is(err, %v) = %v, want %v", target, got, want)
		}
	}
	if !errors.Is(&timeout.Error{Cause: context.Canceled}, context.Canceled) {
		t.Error("the function's own cancellation is not found")
	}
	var n net.Error
	if !errors.As(e, &n) || !n.Timeout() {
		t.Error("it is no net.Error with Timeout() == true")
	}
	var p policy.Error
	if !errors.As(e, &p) || p.Policy() != "timeout" || p.ID() != "reports" || !p.Started() {
		t.Errorf("as a policy.Error: %v", p)
	}
}

func TestError_T13_Text(t *testing.T) {
	for _, tc := range []struct {
		err  *timeout.Error
		want string
	}{
		{&timeout.Error{Instance: "reports", Limit: 2 * time.Second}, `timeout "reports": exceeded 2s`},
		{&timeout.Error{Instance: "a \"b\"", Limit: 1, Cause: errors.New("down")}, `timeout "a \"b\"": exceeded 1ns: down`},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("text %s, want %s", got, tc.want)
		}
	}
}

func TestLogsAndJSON(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("e", "err", &timeout.Error{Instance: "reports", Limit: time.Second, Cause: errors.New("down")})
	log.Info("s", "timeout", timeout.Snapshot{Instance: "reports", Config: limit, TimedOut: 3})
	want := "msg=e err.policy=timeout err.id=reports err.limit=1s err.started=true err.cause=down\n" +
		"msg=s timeout.instance=reports timeout.value=2s timeout.timedOut=3\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(timeout.Snapshot{Instance: "reports", Config: limit, TimedOut: 3})
	if got, want := string(text), `{"instance":"reports","config":{"value":"2s"},"timedOut":3}`; err != nil || got != want {
		t.Errorf("JSON %s, %v; want %s", got, err, want)
	}
}
