package arch

import (
	"path"
	"slices"
	"strings"
)

// ModulePath is the path of the root module. Everything below is relative to it.
const ModulePath = "resilience4cata.dev/go"

// MaxLines is the longest that a Go file may be, tests included.
const MaxLines = 500

// The third-party packages, by the module or the import path that all their packages begin with.
const (
	benbjohnson = "github.com/benbjohnson/clock"
	yaml        = "go.yaml.in/yaml/v4"
	goleak      = "go.uber.org/goleak"
	cmp         = "github.com/google/go-cmp"
)

// Modules are all that the go.mod of the root module may require: two at run time, two for tests.
var Modules = []string{benbjohnson, yaml, goleak, cmp}

// Rule is a row of the import table. It covers the non-test files of the packages that Package matches; the standard
// library is always allowed.
type Rule struct {
	Package string   // folder relative to the module, a pattern of path.Match
	May     []string // packages of this module, patterns of path.Match
	Modules []string // third-party modules
}

// public is what a program outside this module can import.
var public = []string{"clock", "policy", "policy/*", "registry", "registry/*", "pipeline"}

// engine is what policies are built with. internal/stack is not among them: it knows the policies.
var engine = []string{"internal/callctx", "internal/scope", "internal/setting", "internal/stripe", "internal/waitq", "internal/wheel"}

// policies are the vocabulary and the state machines.
var policies = []string{"policy", "policy/*"}

// Rules is the import table. The first row that matches a package decides; a package without a row is an error, so that
// nobody adds one without saying where it stands.
//
// The arrows run clock <- internal <- policy <- registry <- pipeline.
var Rules = []Rule{
	{Package: "."}, // the landing page: documentation only
	{Package: "clock", Modules: []string{benbjohnson}},
	{Package: "policy"},
	{Package: "policy/*", May: slices.Concat([]string{"clock", "policy"}, engine)},
	{Package: "registry/config", May: policies, Modules: []string{yaml}},
	{Package: "registry/health", May: []string{"registry"}},
	{Package: "registry", May: slices.Concat([]string{"clock", "registry/config", "internal/stack"}, policies, engine)},
	{Package: "pipeline", May: slices.Concat([]string{"clock", "registry", "internal/stack"}, policies, engine)},

	{Package: "internal/stripe"},
	{Package: "internal/waitq"},
	{Package: "internal/callctx"},
	{Package: "internal/setting", May: []string{"policy"}},
	{Package: "internal/wheel", May: []string{"clock", "internal/stripe"}},
	{Package: "internal/scope", May: []string{
		"clock", "policy", "internal/wheel", "internal/callctx", "internal/stripe", "internal/waitq",
	}},
	{Package: "internal/stack", May: slices.Concat([]string{"clock"}, policies, engine)},
	{Package: "internal/conform", May: slices.Concat(public, engine), Modules: []string{goleak, cmp}}, // a test suite
	{Package: "internal/testkit", May: []string{"clock", "policy"}},                                   // what tests share
	{Package: "internal/arch"},
	{Package: "internal/readme"},

	{Package: "bench", May: public},
	{Package: "examples/*", May: public},
	{Package: "examples/internal/*"}, // what the tests of examples share
	{Package: "docs"},                // pages, and the tests that their code comes from
}

// ruleFor finds the row of the package in folder dir.
func ruleFor(rules []Rule, dir string) (Rule, bool) {
	for _, r := range rules {
		if match(r.Package, dir) {
			return r, true
		}
	}
	return Rule{}, false
}

// allows reports whether a package under the rule may import the given path.
func (r Rule) allows(importPath string) bool {
	if dir, ok := relative(importPath); ok {
		return slices.ContainsFunc(r.May, func(p string) bool { return match(p, dir) })
	}
	if isStandard(importPath) {
		return true
	}
	return slices.ContainsFunc(r.Modules, func(m string) bool { return within(importPath, m) })
}

// String says what the rule allows, for a failure text.
func (r Rule) String() string {
	return strings.Join(slices.Concat([]string{"the standard library"}, r.May, r.Modules), ", ")
}

func match(pattern, dir string) bool {
	ok, err := path.Match(pattern, dir)
	return err == nil && ok
}

// relative turns an import path of this module into a folder.
func relative(importPath string) (dir string, ok bool) {
	if importPath == ModulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, ModulePath+"/")
}

func within(importPath, module string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// isStandard tells the standard library by the missing dot in the first element, as the go command does.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
