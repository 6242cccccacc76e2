package clock

// change is a set of things that happen to a Manual.
type change uint8

const (
	armed change = 1 << iota // an event was armed
	moved                    // the clock was moved, or a callback has returned
	slept                    // a goroutine parked
)

// watcher is one goroutine that looks again after changes of the kinds in on.
// Channels and not a sync.Cond, so that it can watch a context too.
type watcher struct {
	on   change
	wake chan struct{} // holds one token: look again
}

// watch registers a watcher. Whoever registers before it looks misses nothing.
func (m *Manual) watch(on change) *watcher {
	w := &watcher{on: on, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watchers == nil {
		m.watchers = make(map[*watcher]struct{})
	}
	m.watchers[w] = struct{}{}
	return w
}

func (m *Manual) unwatch(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watchers, w)
}

// notify wakes those who watch c. The caller holds m.mu.
func (m *Manual) notify(c change) {
	for w := range m.watchers {
		if w.on&c != 0 {
			poke(w.wake)
		}
	}
}

// announce tells of an event that was armed. On a clock that is not passive a
// parked Wait goes on driving. The caller holds m.mu.
func (m *Manual) announce() {
	m.notify(armed)
	if m.passive.Load() {
		return
	}
	for p := range m.parked {
		poke(p.wake)
	}
}

// poke leaves a token in a channel of capacity one, if it holds none.
func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
