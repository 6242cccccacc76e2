package registry

import "resilience4cata.dev/go/internal/setting"

// checkID notes what is wrong with an id, which is compared exactly: any text
// that can be printed is legal, as long as no space begins or ends it.
func (m *mistakes) checkID(kind, id, path string) {
	m.take(setting.ID(kind, id, path))
}
