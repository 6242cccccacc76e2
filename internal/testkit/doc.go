// Package testkit is what the tests of several packages need: who counts the
// goroutines of a bubble, who keeps events, who runs code outside of a bubble,
// and foreign code that misbehaves. Only tests import it.
package testkit
