package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// Check is one rule about the whole tree. Find returns a text for each place that breaks it.
type Check struct {
	Name string
	Find func(*Tree) []string
}

// Checks are all the rules of this package.
var Checks = []Check{
	{"imports follow the table", (*Tree).imports},
	{"go.mod requires only the agreed modules", (*Tree).modules},
	{"policy folders are alike", (*Tree).policyFiles},
	{"packages have a package comment", (*Tree).packageComments},
	{"tables of guarantees name tests that exist", (*Tree).guarantees},
	{"exported names have a comment", (*Tree).comments},
	{"packages with tests watch for leaks", (*Tree).leakTests},
	{"tests sleep in bubbles only", (*Tree).sleeps},
	{"no file is too long", (*Tree).lengths},
}

func (t *Tree) imports() (wrong []string) {
	for _, p := range t.Packages {
		rule, known := ruleFor(Rules, p.Dir)
		if !known {
			wrong = append(wrong, p.Dir+": package has no row in the import table (internal/arch/rules.go)")
			continue
		}
		for _, f := range p.Files {
			if f.Test() {
				continue
			}
			for _, spec := range f.Syntax.Imports {
				if target := importPath(spec); !rule.allows(target) {
					wrong = append(wrong, fmt.Sprintf("%s: package %s must not import %s; it may import %v",
						t.at(spec), p.Dir, strings.TrimPrefix(target, ModulePath+"/"), rule))
				}
			}
		}
	}
	return wrong
}

func importPath(spec *ast.ImportSpec) string {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil { // the parser has accepted it
		panic(err)
	}
	return target
}

// modules reads go.mod by hand: its grammar is a line or a parenthesized block of lines for each directive.
func (t *Tree) modules() (wrong []string) {
	block := ""
	for i, line := range strings.Split(t.GoMod, "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		if block != "" {
			words = append([]string{block}, words...)
		}
		switch {
		case len(words) < 2:
			continue
		case words[1] == "(":
			block = words[0]
		case words[1] == ")":
			block = ""
		case words[0] == "require" && !slices.Contains(Modules, words[1]):
			wrong = append(wrong, fmt.Sprintf("go.mod:%d: module %s is not one of %s; everybody who imports the library would get it",
				i+1, words[1], strings.Join(Modules, ", ")))
		case words[0] == "replace" || words[0] == "exclude":
			wrong = append(wrong, fmt.Sprintf("go.mod:%d: %s has no effect in a module that others require", i+1, words[0]))
		}
	}
	return wrong
}

func (t *Tree) packageComments() (wrong []string) {
	for _, p := range t.Packages {
		var texts []string
		for _, f := range p.Files {
			// The comment of an external test package documents nothing that go doc shows.
			if f.Syntax.Doc != nil && f.Syntax.Name.Name == p.Name() {
				texts = append(texts, f.Syntax.Doc.Text())
			}
		}
		switch {
		case len(texts) == 0:
			wrong = append(wrong, p.Dir+": package has no package comment; write it in doc.go")
		case len(texts) > 1:
			wrong = append(wrong, fmt.Sprintf("%s: %d files have a package comment; go doc joins them, keep one", p.Dir, len(texts)))
		case p.Name() != "main" && !strings.HasPrefix(texts[0], "Package "+p.Name()+" "):
			wrong = append(wrong, fmt.Sprintf("%s: package comment must begin with %q", p.Dir, "Package "+p.Name()+" "))
		}
	}
	return wrong
}

func (t *Tree) leakTests() (wrong []string) {
	for _, p := range t.Packages {
		if !slices.ContainsFunc(p.Files, (*File).Test) {
			continue
		}
		f := p.File("leak_test.go")
		if f == nil {
			wrong = append(wrong, p.Dir+": package has tests but no leak_test.go with goleak.VerifyTestMain(m)")
			continue
		}
		call := findCall(f.Syntax, goleak, "VerifyTestMain")
		switch {
		case call == nil:
			wrong = append(wrong, f.Path+": TestMain must call goleak.VerifyTestMain(m)")
		case len(call.Args) > 1:
			wrong = append(wrong, t.at(call)+": goleak.VerifyTestMain must be called without options; a leak that is ignored stays")
		}
	}
	return wrong
}

// findCall returns the first call of a function of the imported package in TestMain, or nil.
func findCall(f *ast.File, pkg, name string) (call *ast.CallExpr) {
	local := localName(f, pkg)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "TestMain" {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && call == nil && isSelector(c.Fun, local, name) {
				call = c
			}
			return call == nil
		})
	}
	return call
}

func (t *Tree) lengths() (wrong []string) {
	files := slices.Clone(t.Nested)
	for _, p := range t.Packages {
		files = append(files, p.Files...)
	}
	for _, f := range files {
		if f.Lines > MaxLines {
			wrong = append(wrong, fmt.Sprintf("%s: %d lines, more than %d; split it by subject", f.Path, f.Lines, MaxLines))
		}
	}
	return wrong
}

// localName returns the name under which a file imports a package, or "" if it does not.
func localName(f *ast.File, pkg string) string {
	for _, spec := range f.Imports {
		if importPath(spec) != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return pkg[strings.LastIndexByte(pkg, '/')+1:]
	}
	return ""
}

// isSelector reports whether e is pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name || pkg == "" {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
