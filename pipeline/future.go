package pipeline

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"resilience4cata.dev/go/internal/scope"
)

// Future is the caller's side of an async call. It is completed once, and all
// its methods are safe for concurrent use, for ever. Pipelines and [NewPromise]
// make futures; the zero value never completes by itself.
//
// A call's future, its first attempt's context and what keeps them together are
// one allocation; hence the fields are few, and what few futures need is made
// when they need it.
type Future[T any] struct {
	state atomic.Uint32 // progress and flags
	of    owner         // never changed
	group sync.WaitGroup
	list  atomic.Pointer[follower[T]]

	// peer is, for a view, a record that leads to the origin; for a promise's
	// future, the attempt that waits for it.
	peer atomic.Pointer[attempt[T]]

	v   T
	err error // v and err are written before state is done
}

// The progress of a future, in the low bits of its state. It only goes up.
const (
	pending  uint32 = iota
	asking          // a call was ended from outside; the user's functions are asked what that comes to
	sealed          // a call's attempts are over; its fallback is running
	deciding        // the result is being written
	done
	progress = 7

	canceledF uint32 = 1 << 3 // the consumer ended it; set with done
	endAsked  uint32 = 1 << 4 // its fallback is asked for the end of the caller's context; set with sealed
	apart     uint32 = 1 << 5 // callbacks get new goroutines: this one is the wheel's, or Close's; set with canceledF

	// Of those who block in Get without a channel.
	opening uint32 = 1 << 6 // the first is opening the group
	opened  uint32 = 1 << 7 // it is open: whoever completes the future closes it
)

// owner is who completes a future.
type owner uint8

const (
	ofPromise owner = iota
	ofCall          // it is the first field of a call
	ofView          // its origin does
)

// follower is somebody who wants to hear of a future's end.
type follower[T any] struct {
	next *follower[T]

	// guest is, for ch, who closes it in a synctest bubble in which the registry was
	// not made: others must not.
	guest *scope.Guest

	// Exactly one of these.
	ch      chan struct{}
	f       func(v T, err error)
	views   *views[T]
	attempt *attempt[T]
	stop    func()      // a promise's OnCancel
	leave   func()      // of a view that is canceled
	late    *outcome[T] // not somebody: what a cancelled promise was completed with
}

var closedChan = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (f *Future[T]) is(p uint32) bool   { return f.state.Load()&progress == p }
func (f *Future[T]) kind(k uint32) bool { return f.state.Load()&k != 0 }
func (f *Future[T]) ended() bool        { return f.is(done) }
func (f *Future[T]) to(from, p uint32) bool {
	for {
		s := f.state.Load()
		if s&progress != from {
			return false
		}
		if f.state.CompareAndSwap(s, s&^progress|p) {
			return true
		}
	}
}

// seal moves a call's future to sealed: the fallback is about to run. endAsked,
// if given, comes with that in one step, so that who hears of the same end by
// another way sees both or none.
func (f *Future[T]) seal(from, asked uint32) bool { return f.to(from, sealed|asked) }

// takeOver moves a call's future to deciding whose end is decided, but for its
// fallback: that is running (sealed), or the user's functions are asked whether it
// is to run (asking). It returns which. again says that it is the caller's end
// once more, which is told in more than one way: what it has begun is not stopped
// by the next news of it.
func (f *Future[T]) takeOver(again bool) (from uint32, ok bool) {
	for {
		s := f.state.Load()
		from = s & progress
		if from != sealed && from != asking || again && (from == asking || s&endAsked != 0) {
			return from, false
		}
		if f.state.CompareAndSwap(s, s&^progress|deciding) {
			return from, true
		}
	}
}

// publish completes a future whose state the caller has moved to deciding.
func (f *Future[T]) publish(v T, err error, canceled uint32) {
	f.v, f.err = v, err
	s := f.state.Load()
	for !f.state.CompareAndSwap(s, s&^progress|done|canceled) { // somebody is opening the group
		s = f.state.Load()
	}
	if s&opened != 0 {
		f.group.Done()
	}
	if f.list.Load() != nil { // who comes later finds that it is over
		f.tellEverybody()
		return
	}
	f.tellPeer()
}

func (f *Future[T]) tellEverybody() {
	defer f.tellPeer() // a callback may end the goroutine
	f.drain()
}

// tellPeer tells the attempt whose stage this is, if it is a promise's.
func (f *Future[T]) tellPeer() {
	if f.of == ofPromise {
		if a := f.peer.Load(); a != nil {
			a.stageEnded()
		}
	}
}

// Get waits for the result. ctx bounds this wait alone: if it ends first, Get
// returns ctx's error, with its cause if it has one, and the work goes on; Poll
// tells whether the future is complete. A complete future wins over a ctx that is
// done. Get does not move a manual clock. It panics if ctx is nil.
func (f *Future[T]) Get(ctx context.Context) (v T, err error) {
	if ctx == nil {
		panic("pipeline: Get: ctx is nil: pass context.Background() if there is no other")
	}
	if f.ended() {
		return f.v, f.err
	}
	if ctx.Done() == nil && !f.observe() {
		f.wait()
		return f.v, f.err
	}
	ch := f.Done()
	select {
	case <-ch:
	case <-ctx.Done():
		if !f.ended() {
			return v, scope.Ended(ctx)
		}
	}
	return f.v, f.err
}

// wait blocks until the future is complete, without a channel: that saves the
// usual Get an allocation. The first to block opens the group, and whoever
// completes the future closes it.
func (f *Future[T]) wait() {
	for {
		s := f.state.Load()
		switch {
		case s&progress == done:
			return
		case s&opened != 0:
			f.group.Wait()
		case s&opening != 0:
			runtime.Gosched() // a matter of instructions
		case f.state.CompareAndSwap(s, s|opening):
			f.group.Add(1)
			if f.state.Or(opened)&progress == done {
				f.group.Done() // it was completed meanwhile
			}
		}
	}
}

// Done returns a channel that is closed when the future is complete.
func (f *Future[T]) Done() <-chan struct{} {
	if f.ended() {
		return closedChan
	}
	var bubble uint64
	if f.observe() {
		bubble = f.call().scope().Visited()
	}
	return f.only(
		func(n *follower[T]) bool { return n.ch != nil && n.servesIn(bubble) },
		func() *follower[T] { return f.newDone(bubble) },
	).ch
}

// only returns the follower that is asked for, and adds a new one if there is none.
func (f *Future[T]) only(is func(n *follower[T]) bool, add func() *follower[T]) *follower[T] {
	var mine *follower[T]
	for {
		head := f.list.Load()
		for n := head; n != nil; n = n.next {
			if is(n) {
				return n
			}
		}
		if mine == nil {
			mine = add()
		}
		mine.next = head
		if f.list.CompareAndSwap(head, mine) {
			break
		}
	}
	if f.ended() { // as in follow
		f.drain()
	}
	return mine
}

// newDone makes a done channel for the given foreign synctest bubble; 0: for
// elsewhere.
func (f *Future[T]) newDone(bubble uint64) *follower[T] {
	if bubble == 0 {
		return &follower[T]{ch: make(chan struct{})}
	}
	// The function hears first: once those who wait for the future have gone, the
	// bubble's time may stand still. Who ends a call elsewhere ends its future, and
	// its context in a moment.
	c, looks := f.call(), 0
	g := scope.NewGuest(bubble, func() bool {
		if !f.ended() {
			return false
		}
		looks++
		return c.tellFunction() || looks > 100
	})
	return &follower[T]{ch: g.Ready, guest: g}
}

// servesIn reports whether one may wait for n's channel in that bubble.
func (n *follower[T]) servesIn(bubble uint64) bool {
	if n.guest == nil {
		return bubble == 0
	}
	return n.guest.Of(bubble)
}

// Poll returns the result if the future is complete.
func (f *Future[T]) Poll() (v T, complete bool, err error) {
	if !f.ended() {
		return v, false, nil
	}
	return f.v, true, f.err
}

// Cancel ends the future with [context.Canceled], and with it the context, the
// deadline, the place in a queue, the stage. It reports whether this call ended
// it. Nothing counts as a timeout, and there is no event but the late one of
// work that is still running. Canceling a view ends that view alone.
func (f *Future[T]) Cancel() bool {
	return f.cancelFor(0)
}

// cancelFor is Cancel for a pipeline that gives its stage up.
func (f *Future[T]) cancelFor(flags uint32) bool {
	if f.of == ofCall {
		return f.own().cancel()
	}
	return f.cancelPlain(flags)
}

// cancelPlain ends a promise's future, or a view. flags may be apart.
func (f *Future[T]) cancelPlain(flags uint32) bool {
	if !f.to(pending, deciding) {
		return false
	}
	var zero T
	f.publish(zero, context.Canceled, canceledF|flags)
	return true
}

// OnComplete calls g with the result, on a goroutine of its own, when the
// future is complete; at once if it is already. A panic of g is contained. It
// panics if g is nil.
func (f *Future[T]) OnComplete(g func(v T, err error)) {
	if g == nil {
		panic("pipeline: OnComplete: g is nil")
	}
	if !f.ended() {
		f.observe()
	}
	f.follow(&follower[T]{f: g})
}

// View returns a second view of the same work. Canceling it ends the view and
// does not reach the work: give views to callers that wait for a shared result.
func (f *Future[T]) View() *Future[T] {
	v := &Future[T]{of: ofView}
	origin := &attempt[T]{}
	origin.stage.Store(f)
	v.peer.Store(origin)
	if !f.ended() {
		f.observe()
	}
	f.views().add(f, v)
	return v
}

// Work returns what the work itself did, whatever the future says.
func (f *Future[T]) Work() *Work[T] {
	for f.of == ofView {
		f = f.peer.Load().stage.Load()
	}
	return &Work[T]{f}
}

// follow adds n, or tells it at once if the future is complete.
func (f *Future[T]) follow(n *follower[T]) {
	for {
		n.next = f.list.Load()
		if f.list.CompareAndSwap(n.next, n) {
			break
		}
	}
	// Whoever completes the future stores its state and then takes the list; we
	// put n on the list and then look at the state. One of us tells n.
	if f.ended() {
		f.drain()
	}
}

// drain tells the followers, in the order in which they came. Each is taken off
// the list by one goroutine. What is linked stays so: Done may be looking through
// the list that it has loaded before.
func (f *Future[T]) drain() {
	n := f.list.Swap(nil)
	if n == nil {
		return
	}
	if n.next == nil {
		f.tell(n)
		return
	}
	var all []*follower[T]
	for ; n != nil; n = n.next {
		all = append(all, n)
	}
	slices.Reverse(all)
	each(all, f.tell)
}

// each calls f for all of them, also if a callback ends the goroutine in between.
func each[E any](all []E, f func(E)) {
	done := 0
	defer func() {
		if done < len(all) {
			each(all[done:], f)
		}
	}()
	for done < len(all) {
		done++
		f(all[done-1])
	}
}

func (f *Future[T]) tell(n *follower[T]) {
	switch {
	case n.guest != nil:
		n.guest.Wake()
	case n.ch != nil:
		close(n.ch)
	case n.views != nil:
		n.views.complete(f)
	case n.leave != nil:
		if f.kind(canceledF) {
			n.leave()
		}
	case n.attempt != nil:
		n.attempt.stageEnded()
		if f.kind(canceledF) {
			f.keep(n)
		}
	case n.late != nil:
		f.keep(n)
	case n.stop != nil:
		switch {
		case f.kind(apart):
			go f.contained(n.stop)
		case f.kind(canceledF):
			f.contained(n.stop)
		}
	case n.f != nil:
		go f.contained(func() { n.f(f.v, f.err) })
	}
}

// keep puts n back on the list of a cancelled future: an attempt whose stage it
// was, or what it was completed with all the same, late. Each looks for the
// other when it is on the list, so whichever comes second finds the first.
func (f *Future[T]) keep(n *follower[T]) {
	n = &follower[T]{attempt: n.attempt, late: n.late} // others may be reading the old one's next
	for {
		n.next = f.list.Load()
		if f.list.CompareAndSwap(n.next, n) {
			break
		}
	}
	late := f.late()
	if late == nil {
		return
	}
	if a := f.peer.Load(); a != nil { // it looks for what was late, too
		a.stageLate(late.v, late.err)
	}
	for k := f.list.Load(); k != nil; k = k.next {
		if k.attempt != nil {
			k.attempt.stageLate(late.v, late.err)
		}
	}
}

// late is what a cancelled promise was completed with all the same, first.
func (f *Future[T]) late() (first *outcome[T]) {
	for k := f.list.Load(); k != nil; k = k.next {
		if k.late != nil {
			first = k.late // the deepest
		}
	}
	return first
}

// call is the call that the future belongs to, or nil.
func (f *Future[T]) call() *call[T] {
	for f.of == ofView {
		f = f.peer.Load().stage.Load()
	}
	if f.of == ofCall {
		return f.own()
	}
	return nil
}

// own is the call whose own future f is: a call begins with its future. Another
// pointer would cost each call an atomic store, and each promise eight bytes.
func (f *Future[T]) own() *call[T] { return (*call[T])(unsafe.Pointer(f)) }

// contained calls a function of the user's; the registry hears of its panic. A
// promise that no pipeline uses has no registry to tell.
func (f *Future[T]) contained(g func()) {
	c := f.call()
	if c == nil {
		if a := f.peer.Load(); a != nil {
			c = a.call
		}
	}
	if c != nil {
		c.p.guard(c.ctx(), kind, g)
		return
	}
	defer func() { _ = recover() }()
	g()
}

// observe is called before somebody waits for the future in a way that ties it
// to the synctest bubble that the caller is in. It reports whether that is a
// bubble in which the registry was not made: then deadlines are moved into it.
func (f *Future[T]) observe() (foreign bool) {
	c := f.call()
	return c != nil && c.observe()
}
