package conform_test

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Every stack, every outcome, every form: after each call no permit is lost, no
// probe and no slot; the one right counter went up (S-2, S-5); nothing is
// pending; started or not is said truly; abandoned work is none once it has
// ended; and no goroutine is left, or the bubble would say so.
func TestMatrix(t *testing.T) {
	for _, form := range forms {
		manual := passive
		if form == direct {
			manual = driving
		}
		for _, mode := range []mode{manual, system} {
			t.Run(string(mode)+"/"+string(form), func(t *testing.T) {
				for _, o := range outcomes {
					if o.forms != nil && !slices.Contains(o.forms, form) {
						continue
					}
					t.Run(o.name, func(t *testing.T) { playColumn(t, form, mode, o) })
				}
			})
		}
	}
}

// playColumn plays one outcome on all stacks in which it can happen, one after
// the other, in one bubble.
func playColumn(t *testing.T, form form, mode mode, o *outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for set := noLayers; set <= allLayers; set++ {
			if !set.has(o.needs) {
				continue
			}
			c := cell{set: set, form: form, mode: mode, outcome: o}
			c.run(t)
			if set.has(fallbackLayer) {
				c.fallbackFails = true
				c.run(t)
			}
		}
	})
}
