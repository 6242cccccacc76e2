package bulkhead

// Carried is how many admissions the state word counts before they are moved out
// of it.
const Carried = carried

// Marked reports whether the state word says that somebody waits.
func (p *Policy) Marked() bool { return p.load().isMarked() }
