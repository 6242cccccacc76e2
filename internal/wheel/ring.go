package wheel

import "sync/atomic"

// ringLen is for how many ticks their times are remembered. The chores fix
// every deadline that still refers to a tick within half of it; 8192 leaves each
// round 4 s at the finest tick, and costs 64 KiB.
const ringLen = 8192

// ring remembers when the latest ticks were. Tick k alone writes, in the order
// seq = k, read the clock, times[k], published = k.
type ring struct {
	published atomic.Int64
	// times is made by the first tick, before it publishes anything, so that a
	// wheel that never arms costs little.
	times []atomic.Int64
}

func (r *ring) publish(k, n int64) {
	if r.times == nil {
		r.times = make([]atomic.Int64, ringLen)
	}
	r.times[k%ringLen].Store(n)
	r.published.Store(k)
}

// after returns the time of the tick after tick j, and false if that tick has
// not published its time yet. If the ring has lost it, after returns the time of
// a later tick: a deadline computed from it is later, never earlier.
//
// How much later? Fixing comes to every slot within ringLen/2 ticks of its
// entry's publication, so whoever still asks for a lost tick is an entry whose
// goroutine stood still between Start and Arm; and the tick that stands in, 3/4
// of the ring ago, came before the publication. The entry is late by no more
// than its goroutine was.
//
// seq is the wheel's: it is ahead of what is being overwritten. times[i] held
// tick i all the time we read it if seq is below i+ringLen afterwards.
func (r *ring) after(j int64, seq *atomic.Int64) (n int64, ok bool) {
	for {
		k := r.published.Load()
		if j >= k {
			return 0, false
		}
		i := max(j+1, k-ringLen*3/4)
		n = r.times[i%ringLen].Load()
		if seq.Load() < i+ringLen {
			return n, true
		}
	}
}
