package circuitbreaker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/testkit"
	"resilience4cata.dev/go/policy/circuitbreaker"
)

// modelConfig makes legal settings of four bytes. Windows of time are ten
// seconds, so that a bucket is one.
func modelConfig(b [4]byte) circuitbreaker.Config {
	c := circuitbreaker.Config{
		FailureRatio:  []float64{.1, .5, .75, 1}[b[0]%4],
		Window:        1 + int(b[1]%40),
		OpenFor:       time.Duration(b[2]%5) * time.Second,
		HalfOpenCalls: 1 + int(b[2]/5%4),
	}
	c.MinCalls = 1 + int(b[3])%c.Window
	if b[0]&4 != 0 {
		c.TimeWindow = 10 * time.Second
	}
	if b[0]&8 != 0 {
		c.SlowCall, c.SlowRatio = 2*time.Second, .5
	}
	return c
}

// ops gives each step its meaning by its low five bits: allow, tick, Success,
// Failure, Ignored, New settings, Reset, Open, Closed. The three high bits
// choose among the latest permits, so that outcomes may be late or double.
const ops = "aaaaaaaatttttSSSSSSFFFFFFFIINROC"

// FuzzAgainstModel plays a sequence of calls, outcomes (late, double and missing
// ones too), commands, new settings and steps of the clock on a breaker and on
// the model of it: every answer, state, wait, ratio and event must be the same.
func FuzzAgainstModel(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4 || len(data) > 4096 {
			return
		}
		c := modelConfig([4]byte(data))
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		clk := clock.NewManual(epoch)
		var l testkit.Journal
		p := heard(t, clk, l.Listen)
		if err := p.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		m := newModel(c)
		var permits []circuitbreaker.Permit
		var twins []*modelPermit
		for i, op := range data[4:] {
			pick := len(permits) - 1 - int(op>>5)
			switch do := ops[op%32]; do {
			case 't':
				clk.Advance(time.Second)
				m.now += time.Second
			case 'R':
				p.Reset()
				m.to(circuitbreaker.Closed)
			case 'O':
				p.ForceOpen()
				m.to(circuitbreaker.Open)
				m.forced = true
			case 'C':
				p.ForceClosed()
				m.to(circuitbreaker.Closed)
				m.forced = true
			case 'N':
				next := modelConfig([4]byte{data[0], data[1] ^ op>>7, op, byte(i)})
				if err := p.Reconfigure(next); err != nil {
					t.Fatal(err)
				}
				m.reconfigure(next)
			case 'S', 'F', 'I':
				if pick < 0 {
					continue
				}
				switch do {
				case 'S':
					permits[pick].Success()
				case 'F':
					permits[pick].Failure()
				default:
					permits[pick].Ignored()
				}
				m.record(twins[pick], do == 'F', do == 'I')
			default:
				permit, err := p.Allow()
				twin := m.allow()
				if (err == nil) != (twin != nil) {
					t.Fatalf("step %d: Allow: %v, the model refuses: %v", i, err, twin == nil)
				}
				if err == nil {
					permits, twins = append(permits, permit), append(twins, twin)
				}
			}
			compare(t, i, p, m)
		}
		if diff := cmp.Diff(m.changes, changes(&l)); diff != "" {
			t.Errorf("events (-model +breaker)\n%s", diff)
		}
	})
}

func compare(t *testing.T, step int, p *circuitbreaker.Policy, m *model) {
	t.Helper()
	got := p.Snapshot()
	wait, _ := m.wait()
	if got.State != m.trueState() || p.State() != m.trueState() {
		t.Fatalf("step %d: state %q, the model says %q", step, got.State, m.trueState())
	}
	if got.RetryAfterMs != wait.Milliseconds() || got.Rejected != m.rejected {
		t.Fatalf("step %d: %d ms and %d rejected, the model says %v and %d", step, got.RetryAfterMs, got.Rejected, wait, m.rejected)
	}
	if n, failed, _ := m.count(); m.state == circuitbreaker.Closed && n > 0 && got.FailureRatio != failed/n {
		t.Fatalf("step %d: ratio %v, the model says %v of %v", step, got.FailureRatio, failed, n)
	}
}
