package bulkhead_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/scope"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy/bulkhead"
)

// model is a bulkhead as plain as it can be: a list of those who wait, and
// numbers. Its clock is in milliseconds.
type model struct {
	c          bulkhead.Config // in force
	given      int             // the limit that was configured last
	inUse, now int
	line       []*place
	all        []*place // everybody who ever stood in line
	admitted   uint64
	rejected   uint64
	closed     bool
}

type place struct {
	due   int // when its wait is over; -1: never
	state waitq.State
	real  queued
}

func (m *model) take() bool {
	if m.inUse >= m.c.MaxConcurrent || len(m.line) > 0 {
		return false
	}
	m.inUse++
	m.admitted++
	return true
}

func (m *model) grant() {
	for m.inUse < m.c.MaxConcurrent && len(m.line) > 0 {
		m.line[0].state = waitq.Granted
		m.line = m.line[1:]
		m.inUse++
		m.admitted++
	}
}

// settle takes those out of the line for whom f holds.
func (m *model) settle(s waitq.State, f func(*place) bool) (n int) {
	m.line = slices.DeleteFunc(slices.Clone(m.line), func(w *place) bool {
		if !f(w) {
			return false
		}
		w.state = s
		n++
		return true
	})
	return n
}

// The commands: the low three bits say what, the others are its argument.
const (
	cmdTry = iota
	cmdRelease
	cmdEnter
	cmdLeave
	cmdLimit
	cmdConfig
	cmdAdvance
	cmdOther
)

// FuzzCommands runs a sequence of commands on a bulkhead and on the model, and
// compares the numbers and the fate of every waiter after each.
func FuzzCommands(f *testing.F) {
	f.Add([]byte{cmdTry, cmdTry, cmdRelease, cmdRelease, cmdRelease})
	f.Add([]byte{cmdTry, cmdTry, cmdEnter | 1<<3, cmdEnter | 5<<3, cmdRelease, cmdAdvance | 9<<3, cmdRelease})
	f.Fuzz(func(t *testing.T, commands []byte) {
		if len(commands) > 300 {
			return
		}
		m := &model{c: bulkhead.Config{MaxConcurrent: 2, Queue: 3, MaxWait: unbounded}, given: 2}
		clk := clock.NewManual(start).Passive()
		s := scope.New(clk, nil)
		p, err := bulkhead.NewIn(s, "b", m.c)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range commands {
			run(t, m, p, s, clk, int(c&7), int(c>>3))
			compare(t, m, p, clk, i)
		}
		for _, w := range m.all {
			if w.state == waitq.Granted || w.state == waitq.Refused {
				<-w.real.woken
				continue
			}
			select {
			case <-w.real.woken:
				t.Errorf("a waiter in state %v was woken", w.state)
			default:
			}
		}
	})
}

func run(t *testing.T, m *model, p *bulkhead.Policy, s *scope.Scope, clk *clock.Manual, cmd, arg int) {
	t.Helper()
	switch cmd {
	case cmdTry:
		want := m.take()
		if !want {
			m.rejected++
		}
		if got := p.TryAcquire(); got != want {
			t.Fatalf("TryAcquire = %v, want %v", got, want)
		}
	case cmdRelease:
		want := m.inUse == 0
		if !want {
			m.inUse--
			m.grant()
		}
		if got := panics(p.Release); got != want {
			t.Fatalf("Release panics: %v, want %v", got, want)
		}
	case cmdEnter:
		enter(t, m, p, arg-1)
	case cmdLeave:
		if len(m.all) == 0 {
			return
		}
		w := m.all[arg%len(m.all)]
		want := m.settle(waitq.Left, func(o *place) bool { return o == w }) == 1
		if got := p.Leave(w.real.Waiter); got != want {
			t.Fatalf("Leave = %v, want %v", got, want)
		}
	case cmdLimit:
		n := arg%6 - 1
		if n >= 0 {
			m.c.MaxConcurrent = n
			m.grant()
		}
		if err := p.SetLimit(n); (err != nil) != (n < 0) {
			t.Fatalf("SetLimit(%d) = %v", n, err)
		}
	case cmdConfig:
		c := bulkhead.Config{MaxConcurrent: arg % 4, Queue: arg/4 - 1, MaxWait: unbounded}
		if c.MaxConcurrent > 0 {
			limit := c.MaxConcurrent
			if limit == m.given {
				limit = m.c.MaxConcurrent
			}
			m.c, m.given = c, c.MaxConcurrent
			m.c.MaxConcurrent = limit
			m.grant()
		}
		if err := p.Reconfigure(c); (err == nil) != (c.MaxConcurrent > 0) {
			t.Fatalf("Reconfigure(%+v) = %v", c, err)
		}
	case cmdAdvance:
		m.now += arg
		m.rejected += uint64(m.settle(waitq.Refused, func(w *place) bool { return w.due >= 0 && w.due <= m.now }))
		clk.Advance(time.Duration(arg) * ms)
	case cmdOther:
		if arg == 0 {
			m.closed = true
			m.settle(waitq.Refused, func(*place) bool { return true })
			s.Close()
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Acquire(ctx); err == nil {
			t.Fatal("Acquire with a context that has ended gave a slot")
		}
	}
}

// enter waits at most wait milliseconds: -1 without a bound, 0 not at all.
func enter(t *testing.T, m *model, p *bulkhead.Policy, wait int) {
	t.Helper()
	maxWait := time.Duration(wait) * ms
	if wait < 0 {
		maxWait = unbounded
	}
	w := &place{due: -1, real: queued{woken: make(chan struct{})}}
	w.real.Waiter = waitq.New(func() { close(w.real.woken) })
	if wait > 0 {
		w.due = m.now + wait
	}
	entered, err := p.EnterAsync(t.Context(), maxWait, w.real.Waiter)
	var wantEntered, wantErr bool
	switch {
	case m.take():
		wantEntered = true
	case wait == 0 || m.c.Queue == 0 || !m.closed && m.c.Queue > 0 && len(m.line) >= m.c.Queue:
		m.rejected++
		wantErr = true
	case m.closed:
		wantErr = true
	default:
		m.line = append(m.line, w)
		m.all = append(m.all, w)
	}
	if entered != wantEntered || (err != nil) != wantErr {
		t.Fatalf("EnterAsync = %v, %v; want %v, error %v", entered, err, wantEntered, wantErr)
	}
}

func compare(t *testing.T, m *model, p *bulkhead.Policy, clk *clock.Manual, i int) {
	t.Helper()
	want := bulkhead.Snapshot{
		ID: "b", Config: m.c, Limit: m.c.MaxConcurrent, InUse: m.inUse, Available: max(0, m.c.MaxConcurrent-m.inUse),
		Waiting: len(m.line), Admitted: m.admitted, Rejected: m.rejected,
	}
	if diff := cmp.Diff(want, p.Snapshot()); diff != "" {
		t.Fatalf("after command %d (-model +got)\n%s", i, diff)
	}
	if p.Marked() != (len(m.line) > 0) {
		t.Fatalf("after command %d: marked: %v, with %d in line", i, p.Marked(), len(m.line))
	}
	timers := 0
	for _, w := range m.line {
		if w.due >= 0 {
			timers++
		}
	}
	if clk.Pending() != timers {
		t.Fatalf("after command %d: %v, want %d", i, clk, timers)
	}
	for j, w := range m.all {
		if w.real.State() != w.state {
			t.Fatalf("after command %d: waiter %d is %v, want %v", i, j, w.real.State(), w.state)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
