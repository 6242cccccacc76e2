package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

var (
	// table finds the lines of a table in a comment, which go doc shows as they are; not those of commands.
	table = regexp.MustCompile(`(?m)^\t(?:[^g]|g[^o]|go[^ ]).*$`)

	// testName finds the tests that a table of guarantees names. One that ends in … stands for all that begin so.
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z_]\w*…?`)

	// discourages finds where a package comment says when not to use the package.
	discourages = regexp.MustCompile(`(?i)\bwhen not to use\b|\bdo not\b`)
)

// guarantees compares the tables in package comments with the tests that there are, and asks the packages that programs
// can import for what a reader needs to choose them.
func (t *Tree) guarantees() (wrong []string) {
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if f.Test() || f.Syntax.Doc == nil {
				continue
			}
			at, text := t.at(f.Syntax.Doc), f.Syntax.Doc.Text()
			names := testName.FindAllString(strings.Join(table.FindAllString(text, -1), "\n"), -1)
			for _, name := range names {
				if !p.hasTest(name) {
					wrong = append(wrong, fmt.Sprintf("%s: %s has no %s, which its package comment names", at, p.Dir, name))
				}
			}
			if !p.public() {
				continue
			}
			if !strings.Contains(text, "# Guarantees\n") || len(names) == 0 {
				wrong = append(wrong, at+": package comment has no table under # Guarantees that names tests")
			}
			if !discourages.MatchString(text) {
				wrong = append(wrong, at+": package comment does not say when not to use the package")
			}
		}
	}
	return wrong
}

func (p *Package) hasTest(name string) bool {
	prefix, open := strings.CutSuffix(name, "…")
	return slices.ContainsFunc(p.Files, func(f *File) bool {
		return f.Test() && slices.ContainsFunc(f.Syntax.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Recv == nil && (fn.Name.Name == name || open && strings.HasPrefix(fn.Name.Name, prefix))
		})
	})
}

// public reports whether programs outside this module can import the package.
func (p *Package) public() bool {
	return slices.ContainsFunc(public, func(pattern string) bool { return match(pattern, p.Dir) })
}

// comments asks for a comment on every exported name of the packages that programs can import: on the name itself, or on
// the group of constants or variables that it stands in.
func (t *Tree) comments() (wrong []string) {
	for _, p := range t.Packages {
		if !p.public() {
			continue
		}
		for _, f := range p.Files {
			if f.Test() {
				continue
			}
			for _, d := range f.Syntax.Decls {
				for _, name := range uncommented(d) {
					wrong = append(wrong, fmt.Sprintf("%s: exported %s has no comment", t.at(name), name.Name))
				}
			}
		}
	}
	return wrong
}

// uncommented returns the exported names of a declaration that no comment is about.
func uncommented(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && ast.IsExported(receiver(d)) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		if d.Doc != nil && d.Tok != token.TYPE {
			return nil
		}
		for _, s := range d.Specs {
			names = append(names, uncommentedSpec(s, d.Doc != nil && !d.Lparen.IsValid())...)
		}
	}
	return names
}

func uncommentedSpec(s ast.Spec, commented bool) (names []*ast.Ident) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && !commented {
			names = append(names, s.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc == nil && s.Comment == nil {
				names = append(names, n)
			}
		}
	}
	return names
}

// receiver is the name of the type that a method belongs to. A function counts as one of an exported type.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return "Function"
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
