// Package config reads the configuration of a registry from a YAML or JSON file
// and from the environment, and says for each setting of an instance which of
// its levels holds.
//
// Most programs call [Load] and, if operators may override values,
// [Config.WithEnv], and give the result to registry.New:
//
//	cfg, err := config.Load("resilience.yaml")
//	if err != nil {
//		log.Fatal(err) // all mistakes at once, each with its place and its way out
//	}
//	reg, err := registry.New(registry.WithConfig(cfg))
//
// A file has up to two sections. Settings that several instances build on stand
// under "configs", those of "default" count for every instance; what is special
// to one stands under "instances", by its id:
//
//	configs:
//	  default: {timeout: {value: 1s}}
//	  slow:    {timeout: {value: 10s}}
//	instances:
//	  reports:
//	    config: slow
//	    retry: {maxAttempts: 3}
//
// The keys, their defaults and ranges are in docs/configuration.md, the codes of
// the mistakes in docs/errors.md.
//
// Reading is strict: an unknown or duplicate key, a null, a value of the wrong
// type and a duration without unit are errors, because a setting that is silently
// ignored shows itself on the day on which it was needed. A value that must be set
// is no mistake of a file that lacks it: code may give it. It is missed when the
// levels are merged, which is when a pipeline is built or reloaded. Anchors and merge keys
// work as YAML has them, and top-level keys that begin with "x-" are free.
//
// Do not use the package for settings of your own beside the policies': it knows
// only those. Do not make instances of what users send, such as one per tenant or
// per request: ids live as long as the registry.
//
// The functions and types that take or return [Code], [Effective] and [Setting]
// are for package registry.
//
// # Guarantees
//
//	what                                                        proved by
//	all mistakes at once, sorted, the same text on every run     TestTenMistakesAreReportedTogether, TestField_CF10_AllMistakesTheSameEachTime
//	an unknown key is an error with the nearest known one        TestField_CF01_MisspeltKeys
//	every mistake has a way out, and what it names is legal      TestMistakes_G4_EachHasAWayOut
//	null is an error, {} is not, an empty document is empty      TestField_CF07_NullAndEmpty
//	YAML and JSON mean the same                                  TestJSONAndYAMLMeanTheSame
//	hostile text costs bounded time and memory                   TestHostileTextIsRefusedInBoundedTime
//	levels override each other in order, and say so              TestConform_71_LevelsOverrideInOrder
//	settings given back through the environment mean the same    FuzzSettingsRoundTrip
//	the parser never panics                                      FuzzParse
//	what the JSON Schema refuses is refused                      module internal/schematest
//	table, Config structs, schema, paths and docs agree          TestTable…, TestDocs…
package config
