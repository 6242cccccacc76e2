package wheel_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// model is what the wheel must agree with: a heap of deadlines on a perfect
// clock, and for each how late it may be.
type model struct {
	t      *testing.T
	o      *world
	w      *testWheel
	heap   byDeadline
	open   []*modelCall
	lag    int64 // the sum of all stalls
	ticked int64 // the longest tick so far
}

type modelCall struct {
	call
	due   int64 // on a perfect clock
	lag   int64 // model.lag at the start
	fixed int64 // what Deadline said
	ended bool
	pos   int // in model.open
}

type byDeadline []*modelCall

func (h byDeadline) Len() int           { return len(h) }
func (h byDeadline) Less(i, j int) bool { return h[i].due < h[j].due }
func (h byDeadline) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDeadline) Push(x any)        { *h = append(*h, x.(*modelCall)) }
func (h *byDeadline) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}

func (m *model) arm(limit time.Duration) {
	c := &modelCall{lag: m.lag}
	c.onExpire = func(*call) func() {
		m.expired(c)
		return nil
	}
	arm(m.w, &c.call, limit)
	c.due = c.began + c.limit
	c.pos = len(m.open)
	m.open = append(m.open, c)
	heap.Push(&m.heap, c)
	m.ticked = max(m.ticked, m.w.TickLen())
}

func (m *model) end(c *modelCall) {
	c.ended = true
	last := m.open[len(m.open)-1]
	m.open[c.pos], last.pos = last, c.pos
	m.open = m.open[:len(m.open)-1]
}

func (m *model) expired(c *modelCall) {
	now := m.o.clock()
	switch {
	case c.ended:
		m.t.Fatalf("expired after its end")
	case now < c.due:
		m.t.Fatalf("expired %v early", time.Duration(c.due-now))
	case now < c.fixed:
		m.t.Fatalf("expired %v before the deadline that it had shown", time.Duration(c.fixed-now))
	case now > c.due+m.allowed(c):
		m.t.Fatalf("expired %v late, allowed %v", time.Duration(now-c.due), time.Duration(m.allowed(c)))
	}
	m.end(c)
}

// allowed is two ticks, the longest there have been, and the stalls.
func (m *model) allowed(c *modelCall) int64 { return 2*m.ticked + m.lag - c.lag }

// check compares the wheel with the heap.
func (m *model) check() {
	now := m.o.clock()
	for len(m.heap) > 0 {
		c := m.heap[0]
		if !c.ended && c.due+m.allowed(c) >= now {
			break
		}
		if heap.Pop(&m.heap); !c.ended {
			m.t.Fatalf("%v after its deadline it has not expired", time.Duration(now-c.due))
		}
	}
	if got := m.w.Pending(); got != len(m.open) {
		m.t.Fatalf("pending %d, want %d", got, len(m.open))
	}
}

func (m *model) deadline(c *modelCall) {
	d := m.w.Deadline(&c.call)
	if len(m.open)%2 == 0 { // somebody is told, which makes it odd
		if told := m.w.Tell(&c.call); told != d|1 || m.w.Deadline(&c.call) != told {
			m.t.Fatalf("told %d of deadline %d", told, d)
		}
		d |= 1
	}
	switch {
	case c.fixed != 0 && d != c.fixed && d != c.fixed|1:
		m.t.Fatalf("deadline %d, before %d", d, c.fixed)
	case d < c.due:
		m.t.Fatalf("deadline %v before its time", time.Duration(c.due-d))
	}
	c.fixed = d
}

func FuzzAgainstHeap(f *testing.F) {
	f.Add([]byte("\x00\x10\x05\x00\x20\x01\x03\xff\x05"))
	f.Add([]byte{6, 0, 0, 3, 40, 0, 80, 3, 200, 4, 90, 5, 0, 3, 250, 2, 0, 6, 0, 4, 255, 3, 255, 3, 255})
	rng := rand.New(rand.NewPCG(3, 5))
	for range 60 { // long programs, which the fuzzer is slow to find
		program := make([]byte, 2*(1+rng.IntN(120)))
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		o, w := newWorld()
		m := &model{t: t, o: o, w: w, ticked: w.TickLen()}
		for steps := 0; len(program) >= 2 && steps < 120; steps++ {
			op, x := program[0], int64(program[1])
			program = program[2:]
			var c *modelCall
			if len(m.open) > 0 {
				c = m.open[int(x)%len(m.open)]
			}
			switch op % 9 {
			case 0: // magnitudes from 1 ms to 9 h
				m.arm(time.Duration(x+1) * time.Millisecond << (op / 9 % 18))
			case 1:
				m.arm(time.Duration(x) * 333 * time.Microsecond)
			case 2:
				if c != nil {
					if !c.finish() {
						t.Fatal("it is open and not in its slot")
					}
					m.end(c)
				}
			case 3: // up to 4 min
				o.advance(time.Duration(x+1) * 100 * time.Microsecond << (op / 9 % 14))
			case 4: // up to 32 s
				d := time.Millisecond * time.Duration(x+1) << (op / 9 % 8)
				m.lag += int64(d)
				o.stall(d)
			case 5:
				if c != nil {
					m.deadline(c)
				}
			case 6:
				for range 32 + x {
					arm(w, new(call), time.Hour).finish()
				}
				o.advance(0)
			case 7: // ticks, so that the ring moves
				keepBusy(o, w, time.Duration(x*x*w.TickLen()/64))
			case 8:
				if w.SetShortest(time.Duration(x) * 10 * time.Millisecond); x%2 == 0 {
					w.TickNow()
				}
				m.ticked = max(m.ticked, w.TickLen())
			}
			m.check()
		}
		o.advance(18 * time.Hour)
		m.check()
		if len(m.open) != 0 || w.Ticking() {
			t.Fatalf("%d open in the end, ticking %v", len(m.open), w.Ticking())
		}
	})
}
