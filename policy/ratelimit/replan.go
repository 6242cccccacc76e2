package ratelimit

import (
	"resilience4cata.dev/go/internal/setting"
	"resilience4cata.dev/go/internal/waitq"
)

// change replaces the settings by what edit makes of the current ones, under
// the lock, so that two changes do not lose each other's fields. Then it calls done,
// unless that is nil.
func (p *Policy) change(edit func(Config) Config, done func()) error {
	var err error
	p.settle(false, func(woken *batch) {
		c := edit(*p.current.Load().config)
		if err = setting.Named(c.Validate(), p.id); err == nil {
			p.replan(&c, woken)
			if done != nil {
				done()
			}
		}
	})
	return err
}

// replan puts a bucket with the settings c in the place of the current one and
// plans those who wait anew. The caller holds the lock.
func (p *Policy) replan(c *Config, woken *batch) {
	now := p.scope.Now()
	old, at := p.locate(now)
	// Who is due by now has earned it at the old rate.
	p.grant(old, at, woken)
	waiting := int64(p.queue.Len())
	debt := p.tat - waiting*old.cost - at // as if nobody had reserved

	b := newBucket(c, now+p.shift)
	// A clock that is a little behind is behind by the same time, not by the same
	// number of permits.
	behind := max(0, debt-old.fill)
	p.tat = b.convert(debt-behind, old) + int64(old.duration(behind))*b.scale
	p.current.Store(b)

	raised := b.fill/b.cost - old.fill/old.cost // permits for those who are first
	var keep waitq.Queue
	granted, refused := 0, 0
	for w := p.queue.Front(); w != nil; w = p.queue.Front() {
		p.queue.Remove(w)
		keep.Push(w)
	}
	for w := keep.Pop(); w != nil; w = keep.Pop() {
		tell := p.async[w]
		// A permit goes to who takes it, and not to a place: one who has left
		// and is still here must not leave it to the next to come.
		if raised > 0 && w.Grant() {
			raised--
			granted++
			p.remove(w)
			woken.add(w, tell)
			continue
		}
		if w.State() != waitq.Waiting {
			p.remove(w) // it has left, and will not find itself here
			continue
		}
		short := p.tat - b.fill + b.cost
		wait := b.duration(max(short, 0))
		if fits(now, wait, w.Max) && short <= maxQueue-b.cost {
			p.queue.Push(w)
			p.tat += b.cost
			continue
		}
		p.remove(w)
		if w.Refuse(&Error{Instance: p.id, Wait: wait}) {
			refused++
			woken.add(w, tell)
		}
	}
	line := p.counts.Line()
	line[admitted].Add(uint64(granted))
	line[rejected].Add(uint64(refused))
	p.grant(b, 0, woken)
	p.arm(b, 0)
}
