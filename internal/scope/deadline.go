package scope

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"resilience4cata.dev/go/internal/callctx"
	"resilience4cata.dev/go/internal/wheel"
	"resilience4cata.dev/go/policy"
)

// Level is a level of the registry's wheel; nil where there is no wheel.
type Level = wheel.Level[callctx.Context, *callctx.Context]

type sharedWheel = wheel.Wheel[callctx.Context, *callctx.Context]

// Never is a deadline that does not come.
const Never = math.MaxInt64

// Share gives the scope a wheel, as a registry has, if its clock is the
// system's. In a synctest bubble a wheel would be shared state that outlives
// the bubble, and under other clocks it would round what they do exactly: there
// each deadline is a timer of the clock. Call it before the scope is used.
func (s *Scope) Share() {
	if !s.system || s.bubble {
		return
	}
	s.wheel = wheel.New[callctx.Context](wheel.Config[callctx.Context]{
		Now:     s.Now,
		Firing:  callctx.Firing,
		OnPanic: s.panicked,
	})
}

// panicked reports a panic of foreign code that heard of a deadline.
func (s *Scope) panicked(value any, stack []byte) {
	if s.listener != nil {
		s.tell(noCall, policy.CallbackPanic{Meta: s.Meta("timeout", ""), Value: value, Stack: stack})
	}
}

// NewPlan returns a plan for contexts that are armed in this scope.
func (s *Scope) NewPlan(limit time.Duration, cause error, retrying bool) *callctx.Plan {
	p := callctx.NewPlan(limit, cause)
	p.Retrying = retrying
	p.Deadline, p.Passed, p.Overdue, p.Hear = s.deadline, s.passed, s.overdue, hear
	if s.wheel != nil {
		p.Watch = s.watch
	}
	return p
}

// Level returns the wheel's level for a limit, and tells the wheel that this
// limit is in use. It returns nil where there is no wheel.
func (s *Scope) Level(limit time.Duration) *Level {
	if s.wheel == nil {
		return nil
	}
	s.wheel.Use(limit)
	return s.wheel.Level(int64(limit))
}

// Arm starts the plan's limit for c. lv is the level for that limit.
func (s *Scope) Arm(c *callctx.Context, lv *Level) {
	if lv != nil {
		// No clock is read here while calls are frequent.
		if start, bound := s.wheel.Start(int64(c.Plan().Limit)); start != wheel.Refused {
			c.Start(start)
			c.Armed(lv.Arm(c, bound))
			return
		}
	}
	now := s.Now()
	s.hold(c, now).begin(now, After(now, c.Plan().Limit))
}

// ArmUntil arms c with an exact deadline, in Now's time.
func (s *Scope) ArmUntil(c *callctx.Context, lv *Level, deadline int64) {
	now := s.Now()
	if lv == nil || s.foreign(now) {
		s.hold(c, now).begin(now, deadline)
		return
	}
	c.Start(-deadline)
	c.Armed(lv.Arm(c, deadline))
}

// Place is where a context lies whose deadline is not set.
type Place struct {
	scope   *Scope
	level   *Level
	private *private
}

// Reserve gives c its place, so that it can be found and cancelled; Begin sets
// its deadline. It reads no clock where there is a wheel. A nil level is for
// contexts that will not have a deadline.
func (s *Scope) Reserve(c *callctx.Context, lv *Level) Place {
	if s.wheel == nil {
		return Place{scope: s, private: s.hold(c, s.Now())}
	}
	if lv == nil {
		lv = s.wheel.Level(wheel.Never)
	}
	c.Start(reserved)
	c.Armed(lv.Arm(c, wheel.Never))
	return Place{scope: s, level: lv}
}

// reserved is the start of a context on the wheel whose deadline comes later.
const reserved = -wheel.Never

// Begin sets the deadline of c, which was put into this place. now is a reading of
// Now, and the deadline is in its time. The second call for a context has no
// effect.
func (p Place) Begin(c *callctx.Context, now, deadline int64) {
	s := p.scope
	switch {
	case p.private != nil:
		p.private.begin(now, deadline)
	case s.foreign(now):
		if deadline != Never && c.WheelStamp().CompareAndSwap(0, Never) {
			c.Hold(&callctx.Aside{Inside: s.inside(c), Stop: s.moved(c, until(now, deadline))})
		}
	default:
		p.level.Rearm(c, c.Slot(), deadline)
	}
}

// until is deadline − now, saturated: now is negative in a foreign bubble.
func until(now, deadline int64) time.Duration {
	if now < 0 && deadline > math.MaxInt64+now {
		return math.MaxInt64
	}
	return time.Duration(deadline - now)
}

// After is now + d, saturated.
func After(now int64, d time.Duration) int64 {
	if now > 0 && int64(d) >= Never-now {
		return Never
	}
	return now + int64(d)
}

// promise is Deadline for somebody who may act on it.
func (s *Scope) promise(c *callctx.Context) int64 {
	if s.wheel != nil && c.WheelStart() != wheel.Refused {
		return s.wheel.Tell(c)
	}
	return s.Deadline(c)
}

// Deadline is when c is due, in Now's time, or Never. Asking fixes it.
func (s *Scope) Deadline(c *callctx.Context) int64 {
	d := c.WheelStamp().Load()
	switch {
	case c.WheelStart() == wheel.Refused: // it has a private timer, and maybe a negative time
		return d
	case d > 0:
		return d
	case d < 0: // handed out to expire
		return -d
	case s.wheel == nil:
		return Never
	default:
		return s.wheel.Deadline(c)
	}
}

// passed reports whether the deadline of c is over and was exact, or told to
// somebody; what the wheel keeps for itself may be up to two ticks late. It reads
// the clock only then.
func (s *Scope) passed(c *callctx.Context) bool {
	d := c.WheelStamp().Load()
	switch {
	case d == Never:
		return false
	case c.WheelStart() == wheel.Refused || wheel.Told(d):
		return s.Now() >= d
	default:
		return d < 0 // handed out to expire
	}
}

// overdue is how long ago the deadline of c has passed; negative: not yet.
func (s *Scope) overdue(c *callctx.Context) time.Duration {
	d := s.Deadline(c)
	if d == Never {
		return -1
	}
	return time.Duration(s.Now() - d)
}

// hear waits for ctx to hear of an end that is on its way, which takes some turns
// of the scheduler. One that is detached (context.WithoutCancel) never hears.
func hear(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	t := time.NewTimer(time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// deadline answers for a context's Deadline.
func (s *Scope) deadline(c *callctx.Context) (time.Time, bool) {
	d := s.promise(c)
	if d == Never {
		return time.Time{}, false
	}
	return s.At(d), true
}

// watch moves the deadline of a context into the synctest bubble that the
// caller is in, if that is not the wheel's: a channel that is made there may
// only be closed there. It makes the wheel forget the deadline.
func (s *Scope) watch(c *callctx.Context) *callctx.Aside {
	if !s.Foreign() {
		return nil
	}
	a := &callctx.Aside{Inside: s.inside(c)}
	d, stamp := c.Plan().Limit, c.WheelStamp()
	switch {
	case c.Slot() == nil || d <= 0:
		return a
	case c.WheelStart() == reserved && stamp.Load() == 0: // its deadline is to begin
		return a
	}
	for {
		v := stamp.Load()
		if v < 0 { // handed out to expire: that can't be taken back
			d = 0
			break
		}
		if stamp.CompareAndSwap(v, Never) {
			break
		}
	}
	a.Stop = s.moved(c, d)
	return a
}

// moved keeps the deadline of c, which lies on the wheel, by a timer of the
// caller's bubble.
func (s *Scope) moved(c *callctx.Context, d time.Duration) (stop func()) {
	slot := c.Slot()
	t := time.AfterFunc(d, func() {
		expire(c, slot, func(f func()) { go f() })
		c.Tell()
	})
	return func() { t.Stop() }
}

func expire(c *callctx.Context, slot *atomic.Pointer[callctx.Context], later func(func())) {
	if after := c.WheelExpire(slot); after != nil {
		later(after)
	}
}

// Each visits all contexts that have a place, and the slot of each.
func (s *Scope) Each(visit func(c *callctx.Context, slot *atomic.Pointer[callctx.Context])) {
	if s.wheel != nil {
		s.wheel.Each(visit)
	}
	s.mu.Lock()
	all := make([]*private, 0, len(s.privates))
	for p := range s.privates {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		if c := p.context(); c != nil {
			visit(c, &p.slot)
		}
	}
}

// Pending is the number of deadlines that are to come.
func (s *Scope) Pending() int {
	n := 0
	if s.wheel != nil {
		n = s.wheel.Pending()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.privates {
		if p.begun.Load() {
			n++
		}
	}
	return n
}

// Ticking reports whether the wheel ticks: it does while calls are frequent.
func (s *Scope) Ticking() bool { return s.wheel != nil && s.wheel.Ticking() }

// SetShortest tells the wheel the shortest limit in use after a reload.
func (s *Scope) SetShortest(limit time.Duration) {
	if s.wheel != nil {
		s.wheel.SetShortest(limit)
	}
}
