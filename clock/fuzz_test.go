package clock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
)

// subject is a clock under a fuzzed program: the Manual or its model. Times are
// distances from the start; a stop is of the n-th event ever armed.
type subject interface {
	now() time.Duration
	pending() int
	next() (time.Duration, bool)
	arm(d time.Duration, f func())
	stop(n int) bool
	advance(d time.Duration)
	set(to time.Duration)
	sleep(ctx context.Context, d time.Duration) bool
	drive(ctx context.Context, until func() bool) bool
}

type realSubject struct {
	m      *clock.Manual
	timers []clock.Timer
}

func (s *realSubject) now() time.Duration { return since(s.m) }
func (s *realSubject) pending() int       { return s.m.Pending() }
func (s *realSubject) next() (time.Duration, bool) {
	at, ok := s.m.Next()
	if !ok {
		return 0, false
	}
	return at.Sub(start), true
}

func (s *realSubject) arm(d time.Duration, f func()) {
	s.timers = append(s.timers, s.m.AfterFunc(d, f))
}
func (s *realSubject) stop(n int) bool         { return s.timers[n].Stop() }
func (s *realSubject) advance(d time.Duration) { s.m.Advance(d) }
func (s *realSubject) set(to time.Duration)    { s.m.Set(start.Add(to)) }
func (s *realSubject) sleep(ctx context.Context, d time.Duration) bool {
	return s.m.Sleep(ctx, d) != nil
}

func (s *realSubject) drive(ctx context.Context, until func() bool) bool {
	return s.m.Drive(ctx, until) != nil
}

type modelSubject struct {
	model
	timers []*modelEvent
}

func (s *modelSubject) now() time.Duration { return s.model.now }
func (s *modelSubject) pending() int       { return len(s.events) }
func (s *modelSubject) next() (time.Duration, bool) {
	e := s.first()
	if e == nil {
		return 0, false
	}
	return e.at, true
}

func (s *modelSubject) arm(d time.Duration, f func()) {
	s.timers = append(s.timers, s.afterFunc(d, f))
}
func (s *modelSubject) stop(n int) bool { return s.model.stop(s.timers[n]) }
func (s *modelSubject) sleep(ctx context.Context, d time.Duration) bool {
	return s.model.sleep(d, func() bool { return ctx.Err() != nil }, false)
}

func (s *modelSubject) drive(ctx context.Context, until func() bool) bool {
	return s.model.drive(until, func() bool { return ctx.Err() != nil })
}

// program interprets two bytes a step, an operation and its argument, on a
// subject; callbacks interpret the steps that come next, whichever loop they are
// in. It writes down all that can be observed.
type program struct {
	s      subject
	code   []byte
	log    []string
	armed  int
	depth  int
	parent context.Context
	ctx    context.Context
	end    context.CancelFunc
}

func (p *program) note(format string, args ...any) {
	next, ok := p.s.next()
	p.log = append(p.log, fmt.Sprintf("%*s%s | now %d pending %d next %d %v", 2*p.depth, "",
		fmt.Sprintf(format, args...), p.s.now(), p.s.pending(), next, ok))
}

// renew gives the program a context that has not ended.
func (p *program) renew() { p.ctx, p.end = context.WithCancel(p.parent) }

func (p *program) run(steps int) {
	for ; steps > 0 && len(p.code) >= 2; steps-- {
		op, arg := p.code[0], p.code[1]
		p.code = p.code[2:]
		p.step(op, int(arg))
	}
}

func (p *program) step(op byte, arg int) {
	d := time.Duration(arg%16 - 2) // small: ties, zero and negative delays are common
	switch op % 8 {
	case 0, 1:
		n, steps := p.armed, arg/16%4
		p.armed++
		p.s.arm(d, func() {
			p.note("event %d", n)
			if p.depth < 8 {
				p.depth++
				p.run(steps)
				p.depth--
			}
		})
		p.note("arm %d after %d", n, d)
	case 2:
		if p.armed > 0 {
			p.note("stop %d: %v", arg%p.armed, p.s.stop(arg%p.armed))
		}
	case 3:
		p.s.advance(d)
		p.note("advanced %d", d)
	case 4:
		to := p.s.now() + d
		p.s.set(to)
		p.note("set to %d", to)
	case 5:
		p.s.arm(d, p.end)
		p.armed++
		p.note("context ends after %d", d)
	case 6:
		p.note("slept %d: %v", d, p.s.sleep(p.ctx, d))
		if p.ctx.Err() != nil && p.depth == 0 {
			p.end()
			p.renew()
		}
	case 7:
		p.note("driven: %v", p.s.drive(p.ctx, func() bool { return p.s.pending() <= arg%4 }))
	}
}

// FuzzManual compares a Manual with the obvious model of one, step by step, with
// callbacks that arm, stop, advance, set, sleep and drive in turn.
func FuzzManual(f *testing.F) {
	f.Add([]byte{0, 5, 0, 5, 3, 10})                      // a tie
	f.Add([]byte{0, 52, 0, 9, 3, 12, 3, 4, 3, 9})         // an Advance in an Advance
	f.Add([]byte{5, 6, 0, 8, 6, 12, 6, 12})               // an interrupted Sleep
	f.Add([]byte{0, 20, 0, 36, 6, 9, 2, 0, 7, 0, 4, 255}) // all in turn
	f.Fuzz(func(t *testing.T, code []byte) {
		if len(code) > 512 {
			t.Skip("longer programs find nothing new")
		}
		var logs [2][]string
		for i, s := range []subject{&realSubject{m: clock.NewManual(start)}, &modelSubject{}} {
			p := &program{s: s, code: code, parent: t.Context()}
			p.renew()
			p.run(len(code))
			p.s.advance(time.Hour)
			p.note("end")
			p.end()
			logs[i] = p.log
		}
		if !slices.Equal(logs[1], logs[0]) {
			t.Errorf("(-model +manual):\n%s", cmp.Diff(logs[1], logs[0]))
		}
	})
}
