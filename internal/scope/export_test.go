package scope

// For tests.
var (
	Here   = here
	NameIn = nameIn
)

// Nameless is the name of a bubble without a name.
const Nameless = nameless

// Moments is the number of instants for which deadlines are kept together.
func (s *Scope) Moments() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.moments)
}
