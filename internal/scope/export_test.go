package scope

// For tests.
var (
	Here   = here
	NameIn = nameIn
)

// Nameless is the name of a bubble without a name.
const Nameless = nameless
