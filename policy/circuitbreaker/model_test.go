package circuitbreaker_test

import (
	"time"

	"resilience4cata.dev/go/policy/circuitbreaker"
)

// model is a breaker as one would write it without a thought for speed: a list
// of samples, plain numbers, one goroutine. Time is whole seconds, and so is
// the width of a bucket of the time window, so that expiry is exact.
type model struct {
	c   circuitbreaker.Config
	now time.Duration

	state   circuitbreaker.State // as told by events: "open" until a call notices
	forced  bool
	life    int // what a permit must match to count
	samples []modelSample

	openedAt time.Duration

	places, done, failed, slow int
	lastLeft                   time.Duration
	probeSet                   circuitbreaker.Config

	rejected uint64
	changes  []string
}

type modelSample struct {
	at           time.Duration
	failed, slow bool
}

type modelPermit struct {
	life     int
	start    time.Duration
	slowFrom time.Duration // its generation's SlowCall
	probe    bool
	recorded bool
}

func newModel(c circuitbreaker.Config) *model { return &model{c: c, state: circuitbreaker.Closed} }

func (m *model) to(s circuitbreaker.State) {
	if s != m.state {
		m.changes = append(m.changes, string(m.state)+">"+string(s))
	}
	m.state, m.forced, m.samples = s, false, nil
	m.life++
}

func (m *model) trueState() circuitbreaker.State {
	if m.state == circuitbreaker.Open && !m.forced && m.now >= m.openedAt+m.c.OpenFor {
		return circuitbreaker.HalfOpen
	}
	return m.state
}

// wait is how long calls are refused; refused tells it from "0, by hand".
func (m *model) wait() (d time.Duration, refused bool) {
	switch {
	case m.state == circuitbreaker.Closed:
		return 0, false
	case m.forced:
		return 0, true
	case m.state == circuitbreaker.Open:
		d = m.openedAt + m.c.OpenFor - m.now
	case m.places == 0:
		d = m.lastLeft + m.probeSet.OpenFor - m.now
	}
	return max(d, 0), d > 0
}

// allow returns nil when the call is refused.
func (m *model) allow() *modelPermit {
	if _, refused := m.wait(); refused {
		m.rejected++
		return nil
	}
	if m.state == circuitbreaker.Closed {
		return &modelPermit{life: m.life, start: m.now, slowFrom: m.c.SlowCall}
	}
	if m.state == circuitbreaker.Open || m.places == 0 {
		m.to(circuitbreaker.HalfOpen)
		m.places, m.done, m.failed, m.slow, m.probeSet = m.c.HalfOpenCalls, 0, 0, 0, m.c
	}
	m.places--
	m.lastLeft = m.now
	return &modelPermit{life: m.life, start: m.now, slowFrom: m.probeSet.SlowCall, probe: true}
}

func (m *model) record(p *modelPermit, failed, ignored bool) {
	if p.life != m.life || p.probe && p.recorded {
		return
	}
	p.recorded = true
	slow := p.slowFrom > 0 && m.now-p.start >= p.slowFrom
	if !p.probe {
		if !ignored {
			m.samples = append(m.samples, modelSample{m.now, failed, slow})
			m.judge()
		}
		return
	}
	if ignored {
		m.places++
		return
	}
	m.done++
	if failed {
		m.failed++
	}
	if slow {
		m.slow++
	}
	n := float64(m.probeSet.HalfOpenCalls)
	switch {
	case float64(m.failed)/n >= m.probeSet.FailureRatio,
		m.probeSet.SlowCall > 0 && float64(m.slow)/n >= m.probeSet.SlowRatio:
		m.to(circuitbreaker.Open)
		m.openedAt = m.now
	case m.done == m.probeSet.HalfOpenCalls:
		m.to(circuitbreaker.Closed)
	}
}

// count looks at the samples that are in the window now.
func (m *model) count() (n, failed, slow float64) {
	from := max(0, len(m.samples)-m.c.Window)
	for i, s := range m.samples {
		if m.c.TimeWindow > 0 && m.now-s.at >= m.c.TimeWindow || m.c.TimeWindow == 0 && i < from {
			continue
		}
		n++
		if s.failed {
			failed++
		}
		if s.slow {
			slow++
		}
	}
	return n, failed, slow
}

func (m *model) judge() {
	n, failed, slow := m.count()
	if m.forced || n < float64(m.c.MinCalls) {
		return
	}
	if failed/n >= m.c.FailureRatio || m.c.SlowCall > 0 && slow/n >= m.c.SlowRatio {
		m.to(circuitbreaker.Open)
		m.openedAt = m.now
	}
}

func (m *model) reconfigure(c circuitbreaker.Config) {
	another := c.TimeWindow != m.c.TimeWindow || c.TimeWindow == 0 && c.Window != m.c.Window
	if m.state == circuitbreaker.Closed && another {
		m.samples = nil
		m.life++
	}
	m.c = c
}
