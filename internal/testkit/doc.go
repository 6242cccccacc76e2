// Package testkit is what the tests of several packages need: who counts the
// goroutines of a bubble, who keeps events, and foreign code that misbehaves.
// Only tests import it.
package testkit
