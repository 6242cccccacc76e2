// Package policy is the vocabulary that all policies share: what an error of a
// policy can answer, what an event carries, and how a mistake in a setting is
// reported. It holds no policy itself; those are in its subfolders.
//
// Do not implement [Error] or [Event] to plug in a policy of your own: the set
// of policies and their order are fixed, see package pipeline.
//
// # Guarantees
//
//	what                                                     proved by
//	NotStarted is true only if no policy error says otherwise TestNotStartedWalksTheWholeTree
//	ConfigErrors finds every joined mistake, in order         TestConfigErrorsFindsAllThatWereJoined
//	a ConfigError names place, path, value and way out        TestConfigErrorText
package policy
