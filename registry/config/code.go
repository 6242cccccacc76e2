package config

// The codes of this package's mistakes; docs/errors.md lists them.
const (
	codeDuration = "R4C-ATR-001" // duration does not parse
	codeTimeout  = "R4C-ATR-002" // timeout not positive
	codeRange    = "R4C-ATR-003" // out of range
	codeID       = "R4C-ATR-004" // id empty, padded, not printable
	codeType     = "R4C-ATR-005" // wrong type
	codeEnabled  = "R4C-ATR-006" // enabled is no boolean
	codeConflict = "R4C-ATR-007" // settings that contradict each other

	codeSyntax    = "R4C-REG-001" // the text cannot be parsed
	codeUnknown   = "R4C-REG-002" // unknown key or policy
	codeDuplicate = "R4C-REG-003" // duplicate key
	codeBase      = "R4C-REG-004" // unknown config referenced
	codeNull      = "R4C-REG-005" // null or empty section or value
	codeLimit     = "R4C-REG-006" // too large, too deep, too many
	codeMisplaced = "R4C-REG-007" // a section that cannot apply
	codeFile      = "R4C-REG-008" // the file cannot be read
)
