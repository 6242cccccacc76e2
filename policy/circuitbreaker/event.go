package circuitbreaker

import (
	"context"
	"log/slog"

	"resilience4cata.dev/go/policy"
)

// StateChanged is published when the breaker changes its state: because of a
// sample, because of the first call after the open time (only a call notices
// that; State alone publishes nothing), or by hand. Each change is published
// once, in order: From is always the To of the event before. The context is
// that of the call that caused the change.
//
// When two changes follow each other closely, the goroutine that publishes the
// first may publish the second too: order is kept and nobody waits for a slow
// listener.
type StateChanged struct {
	policy.Meta
	From, To State
}

// LogValue groups the fields for package log/slog.
func (e StateChanged) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", e.ID()),
		slog.String("from", string(e.From)),
		slog.String("to", string(e.To)),
	)
}

// Rejected is published, with the call's context, when a call is refused.
type Rejected struct{ policy.Meta }

// LogValue groups the fields for package log/slog.
func (e Rejected) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID()))
}

var _, _ policy.Event = StateChanged{}, Rejected{}

// news is a change that waits to be published.
type news struct {
	ctx   context.Context //nolint:containedctx // the call that caused it, for the listener
	event StateChanged
}

// announce publishes the changes that wait, in order and with no lock held, if
// no other goroutine (or an outer frame of this one: listeners may call back)
// is at it. Whoever is at it will find what was added meanwhile.
func (p *Policy) announce() {
	if !p.scope.Listening() {
		return
	}
	p.mu.Lock()
	if p.announcing {
		p.mu.Unlock()
		return
	}
	p.announcing = true
	p.mu.Unlock()

	finished := false
	defer func() {
		if finished {
			return
		}
		// The listener ended the goroutine (a panic is contained by the scope).
		// The rest of the news must not wait for the next change.
		p.mu.Lock()
		p.announcing = false
		p.mu.Unlock()
		p.announce()
	}()
	for {
		next, ok := p.nextNews()
		if !ok {
			break
		}
		p.scope.Publish(next.ctx, next.event)
	}
	finished = true
}

// nextNews takes the oldest news; without any it ends the announcing, under the
// same lock, so that no news falls between the two.
func (p *Policy) nextNews() (next news, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.news) == 0 {
		p.news, p.announcing = nil, false
		return news{}, false
	}
	next = p.news[0]
	p.news[0] = news{}
	p.news = p.news[1:]
	return next, true
}
