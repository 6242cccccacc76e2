// Package schematest holds the JSON Schema of the configuration file against
// the binder that reads the file: whatever the schema refuses, the binder
// refuses too. It is a module of its own, so that nobody who uses the library
// takes a schema validator with it; its tests are all there is to it.
package schematest
